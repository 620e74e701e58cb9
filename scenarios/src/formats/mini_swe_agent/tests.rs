use ctxbench_session::Session;
use serde_json::json;

use super::super::testing::{counted, describe, import, recorded, times};
use super::*;

fn all(source: &Source<'_>) -> Session {
    import("mini-swe-agent", source).remove(0).session
}

#[test]
fn blocks_with_commands_become_calls() {
    let s = all(&Source::at(&recorded("mini-swe-agent/github_issue.traj.json")));
    assert_eq!(s.header.id, "github_issue");
    let expected = "Please solve this issue: GitHub Issue: SyntaxError: invalid syntax";
    assert_eq!(s.header.title, expected);
    let told = describe(&s);
    let said = "model: I need to find the correct path to the file. Let me check the current \
                directory structure: + bash[action-2]{\"command\":\"ls -la\"}";
    assert_eq!(told[4], said);
    assert!(told[5].starts_with("result[action-2]: <returncode>0</returncode>"), "{}", told[5]);
    // The output of the last command ends the run.
    assert!(told[told.len() - 1].starts_with("result[action-10]: diff --git"));
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
    assert_eq!(s.header.model.as_deref(), Some("deepseek-chat"));
    assert_eq!(counted(&s), [Some([26, 64, 0, 8])]);
    assert_eq!(times(&s), [0, 1_500]);
}

#[test]
fn a_refused_reply_has_no_result() {
    let text = json!([{"role": "user", "content": "do"},
        {"role": "assistant", "content": "```bash\na\n```\n```bash\nb\n```"},
        {"role": "user", "content": "One command, please."}]);
    let s = all(&Source::of_bytes(text.to_string().as_bytes(), "x.traj.json"));
    assert_eq!(describe(&s)[2], "user: One command, please.");
}
