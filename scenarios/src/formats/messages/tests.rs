use ctxbench_session::Session;
use serde_json::{Value, json};

use super::super::testing::{counted, describe};
use super::super::{Source, detect};
use super::*;
use crate::Loaded;

fn all(text: &str, name: &str) -> Vec<Loaded> {
    let source = Source::of_bytes(text.as_bytes(), name);
    detect(&source).expect("recognised").import_all(&source).unwrap()
}

fn import_one(text: &str) -> Session {
    let mut all = all(text, "chat.json");
    assert_eq!(all.len(), 1);
    all.remove(0).session
}

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

const CHAT_TOLD: [&str; 6] = [
    "system: Be brief.",
    "user: What is in it? + <image/png 26>",
    "model: (hm) + read[c1]{\"p\": 1} + list[c2]{}",
    "result[c2]: a.txt",
    "result[c1]: one + Mind the budget.",
    "model: A cat.",
];

#[test]
fn chat_messages_become_a_session_wherever_they_stand() {
    let list = chat();
    let lines: Vec<String> = list.as_array().unwrap().iter().map(Value::to_string).collect();
    let pretty = serde_json::to_string_pretty(&list).unwrap();
    let wrapped = json!({"model": "gpt-5.5", "messages": list.clone()});
    let logged =
        json!({"id": "r1", "request": {"model": "gpt-5.5", "body": {"messages": list.clone()}}});
    for text in [
        list.to_string(),
        pretty,
        lines.join("\n"),
        wrapped.to_string(),
        serde_json::to_string_pretty(&wrapped).unwrap(),
        logged.to_string(),
        format!("\u{feff}{list}"),
    ] {
        assert_eq!(format_of(&text), Some("openai-chat"), "{text}");
        let session = import_one(&text);
        assert_eq!(describe(&session), CHAT_TOLD, "{text}");
        assert_eq!(counted(&session)[0], Some([36, 64, 0, 20]));
        assert_eq!(session.header.title, "What is in it?");
        assert_eq!(session.header.id, "chat");
    }
    assert_eq!(import_one(&wrapped.to_string()).header.model.as_deref(), Some("gpt-5.5"));
}

#[test]
fn several_conversations_are_several_sessions() {
    let first = json!({"id": "alpha", "title": "First", "messages": chat()});
    let second = json!([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]);
    let lines = format!("{first}\n\n{second}\n");
    let array = serde_json::to_string_pretty(&json!([first, second])).unwrap();
    let wide = |text: &str| -> Vec<u8> {
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
    };
    let in_one_line = json!([first, second]).to_string();
    for text in [&array, &in_one_line] {
        assert_eq!(CHAT.import_all(&Source::of_bytes(&wide(text), "x.json")).unwrap().len(), 2);
    }
    for (text, name) in [(lines, "talks-3"), (array, "talks-2"), (in_one_line, "talks-2")] {
        let all = all(&text, "talks.jsonl");
        let ids: Vec<&str> = all.iter().map(|l| &*l.session.header.id).collect();
        assert_eq!(ids, ["alpha", name]);
        assert_eq!(all[0].session.header.title, "First");
        assert_eq!(describe(&all[0].session), CHAT_TOLD);
        assert_eq!(describe(&all[1].session), ["user: hi", "model: ho"]);
    }
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

/// A stream that breaks off is told, and its protocol is no text of a reply.
#[test]
fn a_stored_stream_is_read_as_its_answer() {
    let event = |kind: &str, more: Value| {
        let mut data = json!({"type": kind});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        format!("event: {kind}\ndata: {data}\n\n")
    };
    let usage = json!({"input_tokens": 25, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "claude-opus-4-6",
        "content": [], "stop_reason": null, "usage": usage});
    let stream = [
        event("message_start", json!({"message": message})),
        event(
            "content_block_start",
            json!({"index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        event(
            "content_block_delta",
            json!({"index": 0, "delta": {"type": "text_delta", "text": "8443."}}),
        ),
        event(
            "message_delta",
            json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 400}}),
        ),
    ];
    let import = |events: &[String]| {
        let request = json!({"model": "claude-opus-4-6", "messages": [{"role": "user", "content": "Which port?"}]});
        let whole = json!({"request": request, "response": events.concat()});
        all(&whole.to_string(), "x.json").remove(0)
    };
    let read = import(&stream);
    assert_eq!(describe(&read.session), ["user: Which port?", "model: 8443."]);
    assert_eq!(counted(&read.session), [Some([25, 0, 0, 400])]);
    let cut = import(&stream[..3]);
    assert_eq!(describe(&cut.session), ["user: Which port?"]);
    assert!(cut.warnings[0].contains("a stored stream that breaks off"), "{:?}", cut.warnings);
}
