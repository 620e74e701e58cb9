use serde_json::json;

use super::super::testing::{assert_contains, counted, describe, import, recorded, times};
use super::*;
use crate::Loaded;

fn all(source: &Source<'_>) -> Loaded {
    import("atif", source).remove(0)
}

#[test]
fn a_trajectory_becomes_a_session_with_its_subagents() {
    let loaded = all(&Source::at(&recorded("atif/agent/trajectory.json")));
    let s = &loaded.session;
    assert_eq!((&*s.header.id, s.header.model.as_deref()), ("run-7", Some("claude-sonnet-4-5")));
    let expected = [
        r#"tools: [{"description":"Reads a file","input_schema":{"type":"object"},"name":"read_file"}]"#,
        "system: Be brief.",
        "user: Which port does the server use? + <image/png 12>",
        "model: (I look into the file.) + Looking. + read_file[c1]{\"path\":\"server.ts\"} + delegate[c2]{}",
        "sub-1/user: look",
        "sub-1/model: seen",
        "result[c2]: app.listen(8443)",
        "result[c1]: It is set there.",
        "model: It listens on port 8443.",
        "user: Thanks.",
        "model: You are welcome.",
    ];
    assert_eq!(describe(s), expected);
    // 120 = 10 + 100 read + 10 written. The counters of the last step cover two requests.
    let [own, sub, rest @ ..] = &counted(s)[..] else { panic!("no replies") };
    let expected = (&Some([10, 100, 10, 20]), &None, &[Some([150, 0, 0, 9]), None][..]);
    assert_eq!((own, sub, rest), expected);
    assert_eq!(times(s), [0, 2_000, 2_000, 2_000]);
    assert_contains(&loaded.warnings[0], &["continues in trajectory.cont-1.json"]);
}

#[test]
fn subagents_in_files_beside_it_are_read_and_others_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let of = |steps: Value| json!({"schema_version": "ATIF-v1.4", "session_id": "s", "agent": {"name": "a", "version": "1"}, "steps": steps});
    let result = |path: &str| json!({"content": "done", "subagent_trajectory_ref": [{"session_id": "x", "trajectory_path": path}]});
    let call = |id: &str| json!({"tool_call_id": id, "function_name": "task", "arguments": {}});
    let main = of(json!([
        {"step_id": 1, "source": "user", "message": "go"},
        {"step_id": 2, "source": "agent", "message": "", "tool_calls": [call("c1"), call("c2"), call("c3")],
         "observation": {"results": [result("sub.json"), result("../outside.json"), result("broken.json")]}},
        {"step_id": 3, "source": "system", "message": "Mind the time.", "observation": {"results": [{"content": "noted"}]}},
        {"step_id": 4, "source": "robot", "message": "x"}]));
    let write = |name: &str, text: String| std::fs::write(dir.path().join(name), text).unwrap();
    write("run.json", main.to_string());
    write("sub.json", of(json!([{"step_id": 1, "source": "user", "message": "look"}])).to_string());
    write("broken.json", "{".into());
    let loaded = all(&Source::at(&dir.path().join("run.json")));
    assert_eq!(loaded.session.header.id, "run");
    let told = describe(&loaded.session);
    let expected = [
        "user: go",
        "model: task[c1]{} + task[c2]{} + task[c3]{}",
        "sub/user: look",
        "result[c1]: done",
        "result[c2]: done",
        "result[c3]: done",
    ];
    assert_eq!(told[..6], expected);
    let warnings = loaded.warnings.join("\n");
    assert!(warnings.contains("broken.json:1: the JSON breaks off here"), "{warnings}");
    assert!(warnings.contains("step of the source \"robot\""), "{warnings}");
    // An included trajectory is not a separate session.
    assert_eq!(crate::load_path(dir.path()).unwrap().scenarios.len(), 1);
}
