//! Facts next to the counters of the calls: hidden output, lost lines, unknown prices.

use serde_json::{Value, json};

use crate::billing_variants::SONNET;
use crate::common::{CommandFolder, REPLAY, data, jsonl};

/// The reply shows a few tokens, and 3,000 were counted: thinking that the recording lacks. With a
/// model of another provider, its size is not known.
#[test]
fn output_beyond_the_visible_reply_is_billed_in_a_replay() {
    let usage = json!({"input": 10_000, "output": 3_000});
    let lines = [
        json!({"type": "session", "version": 1, "id": "s", "model": SONNET, "source": {"format": "claude-code"}}),
        json!({"type": "user", "id": "u", "text": "Which port?"}),
        json!({"type": "assistant", "id": "a", "text": "8443.", "usage": usage}),
    ];
    let here = CommandFolder::with("s.jsonl", jsonl(&lines));
    let output = |more: &str| -> u64 {
        here.run(&format!("run s.jsonl {REPLAY} {more}")).ok();
        here.row("out", "reference")["output_tokens"].parse().unwrap()
    };
    assert_eq!(output(""), 3_000);
    assert!(output("--model gpt-5.4") < 100);
    assert!(output("--calibrate off") < 100);
}

#[test]
fn a_lost_line_is_told_by_validate_and_costs_no_other_call() {
    let text = std::fs::read_to_string(data("validate/claude-code-thinking.jsonl")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.insert(1, "\0\0 torn");
    let here = CommandFolder::with("whole.jsonl", &text);
    here.write("torn.jsonl", lines.join("\n"));
    let calls = |name: &str| -> Value {
        let all = here.run(&format!("validate --json {name}")).ok().json();
        all["files"][0]["compared"].clone()
    };
    assert_eq!(calls("torn.jsonl"), calls("whole.jsonl"));
    here.run("validate torn.jsonl").ok().stderr_contains(&["torn.jsonl:2: not a JSON object"]);
}

/// A session of OpenCode as a folder of files.
#[test]
fn validate_finds_a_folder_that_is_a_recording() {
    let here = CommandFolder::new();
    let tokens = json!({"input": 900, "output": 5, "cache": {"read": 0, "write": 0}});
    let write =
        |path: &str, value: Value| here.write(&format!("in/storage/{path}"), value.to_string());
    write("session/p/ses_1.json", json!({"id": "ses_1", "projectID": "p", "title": "t"}));
    for (id, role, text) in [("msg_1", "user", "go"), ("msg_2", "assistant", "done")] {
        let info = json!({"id": id, "sessionID": "ses_1", "role": role, "tokens": tokens});
        write(&format!("message/ses_1/{id}.json"), info);
        let part = json!({"id": "prt_1", "messageID": id, "type": "text", "text": text});
        write(&format!("part/{id}/prt_1.json"), part);
    }
    let all = here.run("validate --json in").ok().json();
    assert_eq!(all["files"].as_array().map(Vec::len), Some(1), "{all}");
}

/// `explain` has the remarks of `list` about a price.
#[test]
fn what_is_not_priced_is_told_by_explain_too() {
    let usage = json!({"input": 10_000, "output": 100, "tier": "flex"});
    let lines = [
        json!({"type": "session", "version": 1, "id": "s", "model": "gpt-5.3-codex", "source": {"format": "codex"}}),
        json!({"type": "user", "id": "u", "text": "Which port?"}),
        json!({"type": "assistant", "id": "a", "text": "8443.", "usage": usage}),
    ];
    let here = CommandFolder::with("s.jsonl", jsonl(&lines));
    let told = "list price, without service tier \"flex\"";
    here.run("explain s.jsonl --contents").ok().prints(&[told]);
}

#[test]
fn the_peak_includes_a_prompt_that_the_provider_summarized() {
    let usage = json!({"input_tokens": 9_010, "output_tokens": 300, "iterations": [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 9_010, "output_tokens": 300}]});
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn",
        "model": "claude-opus-4-6", "content": [{"type": "text", "text": "8443"}], "usage": usage});
    let asked = json!({"model": "claude-opus-4-6", "messages": [{"role": "user", "content": "Which port?"}]});
    let stored = json!({"request": asked, "response": reply}).to_string();
    let here = CommandFolder::with("a.json", stored);
    here.run(&format!("run a.json {REPLAY}")).ok();
    assert_eq!(here.row("out", "as-recorded")["peak_context_tokens"], "180000");
}
