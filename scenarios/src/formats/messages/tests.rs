use serde_json::{Value, json};

use super::super::testing::describe;
use super::super::{Source, detect};
use super::*;
use crate::Loaded;

fn format_of(text: &str) -> Option<&'static str> {
    detect(&Source::of_bytes(text.as_bytes(), "x.json")).map(|f| f.name)
}

fn chat() -> Value {
    json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": "What is in it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}]},
        {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"p\": 1}"}},
            {"id": "c2", "type": "function", "function": {"name": "list", "arguments": "{}"}}],
         "usage": {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 64}}},
        {"role": "tool", "tool_call_id": "c2", "content": "a.txt"},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "one"}]},
        {"role": "developer", "content": "Mind the budget."},
        {"role": "assistant", "content": "A cat."}
    ])
}

#[test]
fn other_json_is_no_conversation() {
    for text in [
        "",
        "[]",
        "{}",
        "null",
        "[1,2]",
        "{\"messages\":[]}",
        "{\"messages\":\"none\"}",
        "{\"role\":\"admin\",\"content\":\"x\"}",
        "{\"name\":\"package\",\"version\":\"1\"}",
        "[{\"role\":\"user\"}]",
        "{\"input\":\"x\"}",
    ] {
        assert_eq!(format_of(text), None, "{text}");
    }
}

/// Reads a damaged text in each of the three formats.
fn damaged(text: &[u8]) -> Vec<Result<Loaded, String>> {
    let mut out = Vec::new();
    for format in [&CHAT, &RESPONSES, &ANTHROPIC] {
        format.import(&Source::of_bytes(text, "bad.json"), |one| {
            out.push(one.map_err(|e| e.to_string()));
            std::ops::ControlFlow::Continue(())
        });
    }
    out
}

#[test]
fn what_is_damaged_is_refused_or_read_in_part() {
    let good = chat().to_string();
    let error = |text: &[u8], part: &str| {
        for one in damaged(text) {
            let e = one.expect_err("it is damaged");
            assert!(e.contains("bad.json:") && e.contains("expected"), "{e}");
            assert!(e.contains(part), "{part}: {e}");
        }
    };
    // Truncated.
    for one in damaged(&good.as_bytes()[..300]) {
        let warnings = one.unwrap().warnings.join("\n");
        assert!(warnings.contains("bad.json:1: the JSON breaks off here"), "{warnings}");
    }
    error(b"{\"messages\": [", "breaks off");
    // Nothing to read.
    error(b"{\"messages\": []}", "no messages");
    error(b"{\"messages\": 7}", "no messages");
    // Not JSON.
    error(b"\x00\x01 not json", "not readable as JSON");
    // Wrong types.
    let odd = json!([{"role": "user", "content": {"a": []}}, 3, null, {"role": 1, "content": 2},
        {"role": "assistant", "content": 7, "tool_calls": {"id": []}, "usage": "none", "model": 5},
        {"role": "tool", "tool_call_id": {}, "content": true}, {"role": "assistant", "tool_calls": [1, {"function": 2}]}]);
    for one in damaged(odd.to_string().as_bytes()) {
        let warnings = one.unwrap().warnings.join("\n");
        assert!(warnings.contains("bad.json:1: item 2 is not an object"), "{warnings}");
    }
    // A broken line between whole ones.
    let mixed = format!("{{\"messages\":{good}}}\n{{\"messages\":[\n{good}\n");
    let found: Vec<bool> = damaged(mixed.as_bytes()).iter().map(Result::is_ok).collect();
    assert_eq!(found, [true, false, true].repeat(3));
    // Results without calls, and a call twice.
    let twice = json!([{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "none", "content": "o"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "n", "arguments": {"a": 1}}}]},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "n"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "o"}]);
    for one in damaged(twice.to_string().as_bytes()) {
        let expected = ["user: x", "model: n[c]{\"a\":1}", "model: n[c-2]{}", "result[c-2]: o"];
        assert_eq!(describe(&one.unwrap().session), expected);
    }
}
