use std::path::Path;

use ctxbench_core::session::{Entry, Session};
use serde_json::json;

use super::super::detect;
use super::*;

fn all(source: &Source<'_>) -> Session {
    let format = detect(source).expect("recognised");
    assert_eq!(format.name, "mini-swe-agent");
    format.import_all(source).unwrap().remove(0).session
}

#[test]
fn blocks_with_commands_become_calls() {
    let path = "../tests/data/recordings/mini-swe-agent/github_issue.traj.json";
    let s = all(&Source::at(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)));
    assert_eq!(s.header.id, "github_issue");
    assert_eq!(
        s.header.title,
        "Please solve this issue: GitHub Issue: SyntaxError: invalid syntax"
    );
    let Entry::Assistant(a) = &s.entries[4] else { panic!("{:?}", s.entries[4]) };
    let text = "I need to find the correct path to the file. Let me check the current directory \
                structure:";
    assert_eq!(a.content()[0].text(), text);
    assert_eq!(&*a.all_calls()[0].arguments, r#"{"command":"ls -la"}"#);
    let Entry::Tool(t) = &s.entries[5] else { panic!("{:?}", s.entries[5]) };
    assert_eq!(*t.call_id, *a.all_calls()[0].id);
    assert!(t.output.as_deref().unwrap().starts_with("<returncode>0</returncode>"));
    // The output of the last command ends the run.
    assert!(
        matches!(s.entries.last(), Some(Entry::Tool(t)) if t.output.as_deref().unwrap().starts_with("diff --git"))
    );
}

#[test]
fn newer_versions_tell_model_times_and_counters() {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}});
    let text = json!({"info": {"mini_version": "2.2.7", "config": {"model": {"model_name": "deepseek/deepseek-chat"}}},
        "messages": [
            {"role": "system", "content": "S"},
            {"role": "user", "content": "fix it"},
            {"role": "assistant", "content": "I look.", "tool_calls": [call], "extra": {"timestamp": 1_775_802_391.5,
                "response": {"model": "deepseek-chat", "usage": {"prompt_tokens": 90, "completion_tokens": 8, "prompt_cache_hit_tokens": 64}}}},
            {"role": "tool", "tool_call_id": "c1", "content": "a.py", "extra": {"timestamp": 1_775_802_393.0}},
            {"role": "exit", "content": "done", "extra": {"exit_status": "Submitted"}}],
        "trajectory_format": "mini-swe-agent-1.1"});
    let s = all(&Source::of_bytes(text.to_string().as_bytes(), "x.json"));
    let [_, _, Entry::Assistant(a), Entry::Tool(t)] = s.entries.as_slice() else {
        panic!("{:?}", s.entries)
    };
    assert_eq!(a.model.as_deref(), Some("deepseek-chat"));
    assert_eq!(a.usage.map(|u| (u.input, u.cache_read, u.output)), Some((26, 64, 8)));
    assert_eq!((a.at, t.at), (Some(0), Some(1_500)));
}

#[test]
fn a_refused_reply_has_no_result() {
    let text = json!([{"role": "user", "content": "do"},
        {"role": "assistant", "content": "```bash\na\n```\n```bash\nb\n```"},
        {"role": "user", "content": "One command, please."}]);
    let s = all(&Source::of_bytes(text.to_string().as_bytes(), "x.traj.json"));
    assert!(matches!(s.entries.as_slice(), [Entry::User(_), Entry::Assistant(_), Entry::User(_)]));
}
