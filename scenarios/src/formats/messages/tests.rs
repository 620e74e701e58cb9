use ctxbench_session::Session;
use serde_json::{Value, json};

use super::super::testing::{counted, describe, times};
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
fn old_function_calls_get_ids() {
    let text = json!({"functions": [{"name": "sum", "description": "adds", "parameters": {"type": "object"}}], "messages": [
        {"role": "user", "content": "1+1"},
        {"role": "assistant", "content": null, "function_call": {"name": "sum", "arguments": "[1,1]"}},
        {"role": "function", "name": "sum", "content": "2"},
        {"role": "assistant", "content": "", "function_call": {"name": "sum", "arguments": "[2,1]"}},
        {"role": "function", "name": "sum", "content": "3"}]});
    let expected = [
        "tools: [{\"description\":\"adds\",\"input_schema\":{\"type\":\"object\"},\"name\":\"sum\"}]",
        "user: 1+1",
        "model: sum[call-2][1,1]",
        "result[call-2]: 2",
        "model: sum[call-4][2,1]",
        "result[call-4]: 3",
    ];
    assert_eq!(describe(&import_one(&text.to_string())), expected);
}

#[test]
fn the_answer_to_a_request_is_its_last_reply() {
    let text = json!({"model": "gpt-5.5", "messages": [{"role": "user", "content": "hi"}],
        "response": {"id": "r", "model": "gpt-5.5-2026-04-23",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "ho"}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 2}}});
    let session = import_one(&text.to_string());
    assert_eq!(describe(&session), ["user: hi", "model: ho"]);
    assert_eq!(session.header.model.as_deref(), Some("gpt-5.5-2026-04-23"));
    assert_eq!(counted(&session), [Some([9, 0, 0, 2])]);
}

#[test]
fn items_of_the_responses_api_join_into_replies() {
    let input = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "look"}]},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "X"},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "+x"},
        {"type": "function_call_output", "call_id": "c1", "output": "a"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "cats"}}]);
    let request = json!({"model": "gpt-5.5", "instructions": "Be brief.", "input": input,
        "output": [{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}],
        "usage": {"input_tokens": 50, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 10}}});
    let expected = [
        "system: Be brief.",
        "user: look",
        "model: (hmX) + ls[c1]{} + patch[c2]+x",
        "result[c1]: a",
        "result[c2]: ok",
        "model: [web_search: cats]",
        "model: done",
    ];
    assert_eq!(format_of(&request.to_string()), Some("openai-responses"));
    let session = import_one(&request.to_string());
    assert_eq!(describe(&session), expected);
    assert_eq!(counted(&session)[2], Some([40, 10, 0, 5]));
    // A list of items without other members.
    assert_eq!(format_of(&input.to_string()), Some("openai-responses"));
    assert_eq!(describe(&import_one(&input.to_string())), expected[1..6]);
    let asked = json!({"model": "gpt-5.5", "input": "hi", "output": []});
    assert_eq!(format_of(&asked.to_string()), Some("openai-responses"));
    assert_eq!(describe(&import_one(&asked.to_string())), ["user: hi"]);
}

#[test]
fn anthropic_messages_become_a_session() {
    let request = json!({"model": "claude-sonnet-5", "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "read", "description": "reads", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": "look"},
            {"role": "assistant", "model": "claude-sonnet-5", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "S"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"p": 1}}],
             "usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5, "output_tokens": 9}},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [{"type": "text", "text": "no"}]},
                {"type": "text", "text": "go on"}]}],
        "response": {"id": "msg", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "done"}], "usage": {"input_tokens": 4, "output_tokens": 2}}});
    assert_eq!(format_of(&request.to_string()), Some("anthropic-messages"));
    let session = import_one(&request.to_string());
    let expected = [
        "system: Be brief.",
        "tools: [{\"description\":\"reads\",\"input_schema\":{\"type\":\"object\"},\"name\":\"read\"}]",
        "user: look",
        "model: (hmS) + I look. + read[t1]{\"p\":1}",
        "result![t1]: no",
        "user: go on",
        "model: done",
    ];
    assert_eq!(describe(&session), expected);
    assert_eq!(counted(&session), [Some([3, 10, 5, 9]), Some([4, 0, 0, 2])]);
}

#[test]
fn what_a_tool_of_the_provider_returned_answers_its_call() {
    let page = json!({"type": "web_search_result", "title": "Ports", "url": "https://a.b", "encrypted_content": "EqgB"});
    let failed = json!({"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"});
    let search = |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}});
    let found = |id: &str, content: Value| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": content});
    let text = |t: &str| json!({"type": "text", "text": t});
    let talk = json!({"model": "claude-sonnet-4-6", "messages": [
        {"role": "user", "content": "On which port?"},
        {"role": "assistant", "usage": {"input_tokens": 9, "output_tokens": 5}, "content": [
            text("I look."), search("s1"), found("s1", json!([page])),
            text("Once more."), search("s2"), found("s2", failed), text("8443")]},
    ]});
    assert_eq!(format_of(&talk.to_string()), Some("anthropic-messages"));
    let loaded = all(&talk.to_string(), "chat.json").remove(0);
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let session = loaded.session;
    let told = describe(&session);
    let expected = [
        r#"model: I look. + web_search[s1]{"query":"q"} + Once more. + web_search[s2]{"query":"q"} + 8443"#,
        r#"result[s1]: {"title":"Ports","type":"web_search_result","url":"https://a.b"}"#,
        r#"result![s2]: {"error_code":"max_uses_exceeded","type":"web_search_tool_result_error"}"#,
    ];
    assert_eq!(told[1..], expected);
    // One request was billed.
    assert_eq!(session.header.model.as_deref(), Some("claude-sonnet-4-6"));
    assert_eq!(counted(&session), [Some([9, 0, 0, 5])]);
}

#[test]
fn what_tools_of_openai_returned_answers_their_calls() {
    let items = json!([
        {"type": "message", "role": "user", "content": "look"},
        {"type": "code_interpreter_call", "id": "ci", "status": "completed", "container_id": "cn",
         "code": "print(1)", "outputs": [{"type": "logs", "logs": "1\n"},
            {"type": "image", "url": "data:image/png;base64,QUJD"}]},
        {"type": "file_search_call", "id": "fs", "status": "completed", "queries": ["ports"],
         "results": [{"file_id": "f", "filename": "a.md", "score": 0.9, "text": "8443"}]},
        {"type": "mcp_call", "id": "mc1", "server_label": "s", "name": "roll", "arguments": "{\"n\":2}",
         "output": "7", "error": null},
        {"type": "mcp_call", "id": "mc2", "server_label": "s", "name": "roll", "arguments": "{}",
         "output": null, "error": "no dice"},
        {"type": "file_search_call", "id": "f2", "queries": ["none"], "results": []},
        {"type": "web_search_call", "id": "w1", "action": {"type": "search", "query": "cats",
            "sources": [{"type": "url", "url": "https://a.b"}]}},
        {"type": "file_search_call", "id": "f3", "queries": ["x", "y"], "results": null},
        {"type": "web_search_call", "id": "w2", "action": {"type": "open_page", "url": "https://c.d"}},
        {"type": "web_search_call", "id": "w3", "action": {"type": "search", "query": "q", "queries": ["q"]}},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]);
    let file = r#"{"file_id":"f","filename":"a.md","score":0.9,"text":"8443"}"#;
    let reply = [
        r#"code_interpreter[ci]{"code":"print(1)"}"#,
        r#"file_search[fs]{"queries":["ports"]}"#,
        r#"roll[mc1]{"n":2}"#,
        "roll[mc2]{}",
        r#"file_search[f2]{"queries":["none"]}"#,
        r#"web_search[w1]{"query":"cats","type":"search"}"#,
        "[file_search: x, y]",
        "[web_search: https://c.d]",
        "[web_search: q]",
        "done",
    ];
    let expected = [
        "user: look".to_string(),
        format!("model: {}", reply.join(" + ")),
        "result[ci]: 1\n + <image/png 26>".to_string(),
        format!("result[fs]: {file}"),
        "result[mc1]: 7".to_string(),
        "result![mc2]: no dice".to_string(),
        "result[f2]: ".to_string(),
        r#"result[w1]: {"type":"url","url":"https://a.b"}"#.to_string(),
    ];
    let lacking = |n: u32, kind: &str| {
        format!(
            "chat.json: {n} × {kind}, without their results in the recording; kept as a \
             line of text"
        )
    };
    let notes = [lacking(1, "file_search_call"), lacking(2, "web_search_call")];
    let loaded = all(&items.to_string(), "chat.json").remove(0);
    assert_eq!(describe(&loaded.session), expected);
    assert_eq!(loaded.warnings, notes);
    // The same content as an answer to a request.
    let answer = json!({"model": "gpt-5.5", "input": [items[0]],
        "output": items.as_array().unwrap()[1..]});
    let loaded = all(&answer.to_string(), "chat.json").remove(0);
    assert_eq!(describe(&loaded.session), expected);
    assert_eq!(loaded.warnings, notes);
}

#[test]
fn what_a_reply_went_on_with_answers_the_call_of_the_one_before() {
    let talk = json!({"messages": [
        {"role": "user", "content": "On which port?"},
        {"role": "assistant", "stop_reason": "pause_turn", "content": [
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}]},
        {"role": "assistant", "content": [
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
            {"type": "text", "text": "8443"}]},
    ]});
    let loaded = all(&talk.to_string(), "chat.json").remove(0);
    assert_eq!(loaded.warnings, Vec::<String>::new());
    let expected = ["model: web_search[s1]{}", "result[s1]: ", "model: 8443"];
    assert_eq!(describe(&loaded.session)[1..], expected);
}

#[test]
fn times_of_messages_count_from_the_first() {
    let text = json!([
        {"role": "user", "content": "hi", "timestamp": 1_767_905_603},
        {"role": "assistant", "content": "ho", "timestamp": "2026-01-08T20:53:25"}]);
    assert_eq!(times(&import_one(&text.to_string())), [0, 2_000]);
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
