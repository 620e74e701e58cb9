//! `ctxbench validate` on a changed recording and as JSON; the rest is in `tests/cmd/validate.trycmd`.

use serde_json::{Value, json};

use crate::common::{CommandFolder, data};

/// Sonnet 4.5 drops the reasoning of earlier turns. The same calls by a model that keeps it: both
/// predictions of the recording are wrong, and so is the one of line 10, because no prompt of such a
/// model shrinks.
#[test]
fn a_model_that_keeps_thinking_is_predicted_so() {
    let text = std::fs::read_to_string(data("validate/claude-code-thinking.jsonl")).unwrap();
    let here = CommandFolder::with("dropped.jsonl", &text);
    here.write("kept.jsonl", text.replace("sonnet-4-5-20250929", "opus-4-6"));
    let misses = |name: &str| -> Value {
        let all = here.run(&format!("validate --json {name}")).ok().json();
        let misses = all["files"][0]["misses"].as_array().unwrap();
        misses.iter().map(|m| json!([m["line"], m["cause"], m["predicted"]])).collect()
    };
    let dropped = json!([[8, "thinking", true], [15, "thinking", true]]);
    assert_eq!(misses("dropped.jsonl"), dropped);
    let kept = misses("kept.jsonl");
    let lines: Vec<_> = kept.as_array().unwrap().iter().map(|m| (&m[0], &m[2])).collect();
    assert_eq!(json!(lines), json!([[8, false], [10, false], [15, false]]));
}

#[test]
fn a_reply_with_a_provider_tool_has_counters() {
    let recording = include_str!("../cmd/validate.in/searched.json");
    let here = CommandFolder::with("searched.json", recording);
    here.run("run searched.json --strategy none").ok().lacks(&["without counters"]);
}
