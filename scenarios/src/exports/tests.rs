//! Tests of a hand-written session in each format, with the entries that the format cannot express.

use ctxbench_session::Session;
use serde_json::{Value, json};

use super::*;
use crate::jsonl;

const SESSION: &str = r#"{"type":"session","version":1,"id":"s-1","model":"m-1","context_window":9000,"source":{"format":"codex"}}
{"type":"system","text":"Be brief."}
{"type":"memory","path":"AGENTS.md","text":"Use tabs."}
{"type":"tools","definitions":[{"name":"read","description":"Reads.","input_schema":{"type":"object","properties":{}}}]}
{"type":"disk_file","path":"a.rs","text":"fn main() {}"}
{"type":"user","id":"u1","parts":[{"type":"text","text":"What is it?"},{"type":"image","media_type":"image/png","url":"data:image/png;base64,AAAA","name":"shot.png"}],"at":0}
{"type":"assistant","id":"a1","reasoning":"Look first.","text":"I look.","calls":[{"id":"c1","name":"read","arguments":"{\"b\": 1,\n\"a\": 2.50}"},{"id":"c2","name":"task","arguments":"not json"}],"usage":{"input":10,"cache_read":100,"cache_write":5,"output":7},"model":"m-2","at":1500}
{"type":"tool","call_id":"c1","output":"no such file","is_error":true,"at":1600}
{"type":"system","agent":"sub","text":"You help."}
{"type":"user","id":"u2","text":"go","agent":"sub"}
{"type":"assistant","id":"a2","text":"gone","agent":"sub"}
{"type":"tool","call_id":"c2","output":"gone"}
{"type":"compact"}
{"type":"assistant","id":"a3","parts":[{"type":"text","text":"It is a cat."},{"type":"reasoning","text":"Sure.","encrypted":"xyz"}]}
{"type":"fact","id":"f","kind":"value","tokens":["cat"],"arises":"a3","needs":[]}
"#;

fn session() -> Session {
    jsonl::read(SESSION.as_bytes(), "s.jsonl").unwrap().session
}

fn written(name: &str) -> (Value, String, ExportLosses) {
    let mut lost = ExportLosses::default();
    let text = (by_name(name).unwrap().write)(&session(), &mut lost).unwrap();
    assert!(text.ends_with('\n') && text.lines().count() == 1, "{text}");
    (serde_json::from_str(&text).unwrap(), text, lost)
}

#[test]
fn a_session_becomes_a_trajectory() {
    let (value, text, lost) = written("atif");
    let read = json!({"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}});
    let image = json!({"media_type": "image/png", "path": "data:image/png;base64,AAAA"});
    let expected = json!({
        "schema_version": "ATIF-v1.8",
        "session_id": "s-1",
        "trajectory_id": "s-1",
        "agent": {
            "name": "codex", "version": "unknown", "model_name": "m-1",
            "tool_definitions": [{"type": "function", "function": read}],
        },
        "notes": "Times count from the beginning of the session, as if it was 1970.",
        "steps": [
            {"step_id": 1, "source": "system", "message": "Be brief."},
            {"step_id": 2, "source": "system", "message": "AGENTS.md\n\nUse tabs."},
            {"step_id": 3, "source": "user", "timestamp": "1970-01-01T00:00:00.000Z", "message": [
                {"type": "text", "text": "What is it?"}, {"type": "image", "source": image}]},
            {"step_id": 4, "source": "agent", "timestamp": "1970-01-01T00:00:01.500Z", "model_name": "m-2",
             "message": "I look.", "reasoning_content": "Look first.",
             "tool_calls": [
                {"tool_call_id": "c1", "function_name": "read", "arguments": {"b": 1, "a": 2.5}},
                {"tool_call_id": "c2", "function_name": "task", "arguments": {"arguments": "not json"}}],
             "observation": {"results": [
                {"source_call_id": "c1", "content": "no such file", "extra": {"is_error": true}},
                {"source_call_id": "c2", "content": "gone", "subagent_trajectory_ref": [{"trajectory_id": "sub"}]}]},
             "metrics": {"prompt_tokens": 115, "completion_tokens": 7, "cached_tokens": 100,
                         "extra": {"cache_creation_input_tokens": 5}}},
            {"step_id": 5, "source": "agent", "message": "It is a cat.", "reasoning_content": "Sure."},
        ],
        "subagent_trajectories": [{
            "schema_version": "ATIF-v1.8", "trajectory_id": "sub",
            "agent": {"name": "codex", "version": "unknown", "model_name": "m-1"},
            "steps": [
                {"step_id": 1, "source": "system", "message": "You help."},
                {"step_id": 2, "source": "user", "message": "go"},
                {"step_id": 3, "source": "agent", "message": "gone"},
            ],
        }],
    });
    assert_eq!(value, expected);
    // Unchanged, but on one line.
    assert!(text.contains(r#""arguments":{"b": 1, "a": 2.50}"#), "{text}");
    assert_eq!(
        lost.summary().unwrap(),
        "1 × arguments that are not a JSON object, 1 × commands to compact, 1 × encrypted reasoning, \
         1 × facts, 1 × files on disk, 1 × places of parts within a reply, 1 × sizes of window, \
         reply and prefix, 1 × times of results"
    );
}

#[test]
fn a_session_becomes_chat_messages() {
    let (value, _, lost) = written("openai");
    let read = json!({"name": "read", "description": "Reads.", "parameters": {"type": "object", "properties": {}}});
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let expected = json!({
        "model": "m-1",
        "tools": [{"type": "function", "function": read}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "system", "content": "AGENTS.md\n\nUse tabs."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"role": "assistant", "content": "I look.", "tool_calls": [
                call("c1", "read", "{\"b\": 1,\n\"a\": 2.50}"), call("c2", "task", "not json")]},
            {"role": "tool", "tool_call_id": "c1", "content": "no such file"},
            {"role": "tool", "tool_call_id": "c2", "content": "gone"},
            {"role": "assistant", "content": "It is a cat."},
        ],
    });
    assert_eq!(value, expected);
    let lost = lost.summary().unwrap();
    for words in [
        "1 × conversations of subagents",
        "1 × counters",
        "2 × reasoning",
        "3 × times",
        "1 × failures of tools",
    ] {
        assert!(lost.contains(words), "{lost}");
    }
}

#[test]
fn a_session_becomes_messages_of_anthropic() {
    let (value, _, lost) = written("anthropic");
    let text = |t: &str| json!({"type": "text", "text": t});
    let thinking = |t: &str, signature: &str| json!({"type": "thinking", "thinking": t, "signature": signature});
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let expected = json!({
        "model": "m-1",
        "system": [text("Be brief."), text("AGENTS.md\n\nUse tabs.")],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}],
        "messages": [
            {"role": "user", "content": [text("What is it?"), {"type": "image", "source": source}]},
            {"role": "assistant", "content": [
                thinking("Look first.", ""), text("I look."),
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"b": 1, "a": 2.5}},
                {"type": "tool_use", "id": "c2", "name": "task", "input": {"arguments": "not json"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "no such file", "is_error": true},
                {"type": "tool_result", "tool_use_id": "c2", "content": "gone"}]},
            {"role": "assistant", "content": [text("It is a cat."), thinking("Sure.", "xyz")]},
        ],
    });
    assert_eq!(value, expected);
    let lost = lost.summary().unwrap();
    assert!(lost.contains("1 × names of images") && !lost.contains("reasoning"), "{lost}");
}

#[test]
fn our_own_form_loses_nothing_and_a_wrong_name_tells_the_nearest() {
    let mut lost = ExportLosses::default();
    let text = (by_name("session").unwrap().write)(&session(), &mut lost).unwrap();
    assert_eq!(
        (jsonl::read(text.as_bytes(), "s.jsonl").unwrap().session, lost.summary()),
        (session(), None)
    );
    let e = by_name("openia").err().unwrap().to_string();
    assert!(e.contains("did you mean openai"), "{e}");
}

#[test]
fn the_documentation_has_a_row_for_each() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/recordings.md");
    let page = std::fs::read_to_string(path).unwrap();
    let section = page.split("\n### Exports\n").nth(1).unwrap().split("\n## ").next().unwrap();
    for name in names() {
        assert!(section.contains(&format!("\n| `{name}` | ")), "{name}");
    }
}

#[test]
fn arguments_that_no_reader_takes_are_kept_as_text() {
    use ctxbench_core::content::ToolCall;
    for (written, expected) in [
        ("{}", "{}"),
        ("", "{}"),
        (" {\"a\":\r\n[1]} ", " {\"a\":  [1]} "),
        ("[1]", "{\"arguments\":\"[1]\"}"),
        ("{\"a\":1", "{\"arguments\":\"{\\\"a\\\":1\"}"),
        // A lone surrogate, and a number that is too large.
        ("{\"a\":\"\\ud800\"}", "{\"arguments\":\"{\\\"a\\\":\\\"\\\\ud800\\\"}\"}"),
        ("{\"a\":1e999}", "{\"arguments\":\"{\\\"a\\\":1e999}\"}"),
    ] {
        let call = ToolCall::new("c", "read", written);
        let found = conversation::arguments(&call, &mut ExportLosses::default());
        assert_eq!(found.get(), expected.trim(), "{written}");
    }
}
