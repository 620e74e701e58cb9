use ctxbench_session::Session;
use serde_json::json;

use super::super::Source;
use super::super::testing;
use super::*;

fn import(text: &str) -> (Session, Vec<String>) {
    let source = Source::of_bytes(text.as_bytes(), "rollout-1.jsonl");
    let loaded = testing::import("codex", &source).remove(0);
    (loaded.session, loaded.warnings)
}

/// Counters with these tokens of input, output and reasoning, and the total input so far.
fn count(total: u64, input: u64, reasoning: u64) -> String {
    let last =
        json!({"input_tokens": input, "output_tokens": 9, "reasoning_output_tokens": reasoning});
    let info = json!({"total_token_usage": {"input_tokens": total}, "last_token_usage": last});
    json!({"type": "event_msg", "payload": {"type": "token_count", "info": info}}).to_string()
}

fn item(payload: Value) -> String {
    json!({"type": "response_item", "payload": payload}).to_string()
}

#[test]
fn encrypted_reasoning_is_as_large_as_the_provider_counted() {
    let thought = |size: usize| {
        item(json!({"type": "reasoning", "summary": [], "encrypted_content": "A".repeat(size)}))
    };
    let asked = item(json!({"type": "message", "role": "user", "content": "go"}));
    let (session, _) = import(&[asked, thought(870), thought(870), count(10, 10, 14)].join("\n"));
    let sizes: Vec<u64> = session.entries[1].content().iter().map(|p| p.size().opaque).collect();
    assert_eq!(sizes, [7, 7]);
}
