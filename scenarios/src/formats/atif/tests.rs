use std::path::Path;

use ctxbench_core::session::{Entry, Session};
use serde_json::json;

use super::super::{Loaded, detect};
use super::*;

fn all(source: &Source<'_>) -> Loaded {
    let format = detect(source).expect("recognised");
    assert_eq!(format.name, "atif");
    format.import_all(source).unwrap().remove(0)
}

fn words(session: &Session) -> Vec<String> {
    let joined = |parts: Vec<Part>| {
        let word = |p: &Part| match p {
            Part::Image(m) => format!("<{}>", m.url),
            Part::Call(c) => format!("{}{}", c.name, c.arguments),
            other => other.text().to_string(),
        };
        parts.iter().map(word).collect::<Vec<_>>().join("|")
    };
    let agent = |e: &Entry| e.agent().map(|a| format!("{a}/")).unwrap_or_default();
    let said = |e: &Entry| match e {
        Entry::System { text, .. } => format!("system {text}"),
        Entry::Tools { definitions, .. } => format!("tools {}", definitions.len()),
        Entry::User(u) => format!("user {}", joined(u.content())),
        Entry::Assistant(a) => format!("model {}", joined(a.content())),
        Entry::Tool(t) => format!("result {}", joined(t.content())),
        other => format!("{other:?}"),
    };
    session.entries.iter().map(|e| format!("{}{}", agent(e), said(e))).collect()
}

#[test]
fn a_trajectory_becomes_a_session_with_its_subagents() {
    let path = "../tests/data/recordings/atif/agent/trajectory.json";
    let loaded = all(&Source::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)));
    let s = &loaded.session;
    assert_eq!((&*s.header.id, s.header.model.as_deref()), ("run-7", Some("claude-sonnet-4-5")));
    assert_eq!(
        words(s),
        [
            "tools 1",
            "system Be brief.",
            "user Which port does the server use?|<images/a.png>",
            "model I look into the file.|Looking.|read_file{\"path\":\"server.ts\"}|delegate{}",
            "sub-1/user look",
            "sub-1/model seen",
            "result app.listen(8443)",
            "result It is set there.",
            "model It listens on port 8443.",
            "user Thanks.",
            "model You are welcome.",
        ]
    );
    let usage = |e: &Entry| match e {
        Entry::Assistant(a) if a.agent.is_none() => {
            Some(a.usage.map(|u| (u.input, u.cache_read, u.cache_write, u.output)))
        }
        _ => None,
    };
    let counted: Vec<_> = s.entries.iter().filter_map(usage).collect();
    // 120 = 10 + 100 read + 10 written. The counters of the last step cover two requests.
    assert_eq!(counted, [Some((10, 100, 10, 20)), Some((150, 0, 0, 9)), None]);
    let at = |e: &Entry| if let Entry::Assistant(a) = e { a.at } else { None };
    assert_eq!(s.entries.iter().filter_map(at).collect::<Vec<_>>(), [2_000]);
    assert!(
        loaded.warnings[0].contains("continues in trajectory.cont-1.json"),
        "{:?}",
        loaded.warnings
    );
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
    let told = words(&loaded.session);
    assert_eq!(
        told[..6],
        [
            "user go",
            "model task{}|task{}|task{}",
            "sub/user look",
            "result done",
            "result done",
            "result done"
        ]
    );
    let warnings = loaded.warnings.join("\n");
    assert!(warnings.contains("broken.json:1: the JSON breaks off here"), "{warnings}");
    assert!(warnings.contains("step of the source \"robot\""), "{warnings}");
    // An included trajectory is not a separate session.
    assert_eq!(crate::load_path(dir.path()).unwrap().scenarios.len(), 1);
}
