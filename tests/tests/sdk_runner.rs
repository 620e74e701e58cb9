//! The tool runner of anthropic 2.12.0 in situations beyond the recorded ones, as cases written by
//! hand from docs/sources/anthropic-sdk.md §2.4.

use ctxbench_conform::{Case, replay};
use serde_json::{Value, json};

/// Runs a case. Returns the first difference, if there is one.
fn run(settings: Value, events: Value, requests: Value, outcome: Value) -> Option<String> {
    let case = json!({
        "kind": "replay", "agent": "anthropic-sdk", "version": "python-2.12.0", "name": "by \
         hand", "settings": settings,
        "fixed": [{"kind": "base", "role": "system", "msg": 0, "bytes": 4, "text": "base"}, {"kind": "tools", "count": 1}],
        "events": events, "requests": requests, "outcome": outcome,
    });
    let case = Case::parse(&case.to_string(), "by hand").unwrap();
    replay(&case).unwrap().difference.map(|d| format!("{d:#?}"))
}

fn plain() -> Value {
    json!({"model": "m", "max_tokens": 9})
}

fn user(text: &str) -> Value {
    json!({"type": "user", "text": text})
}

fn reply(id: &str, stop: &str, text: &str) -> Value {
    json!({"type": "reply", "id": id, "text": text, "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1}})
}

fn with_call(mut reply: Value) -> Value {
    let call = json!({"id": "t1", "name": "read", "arguments": "{\"path\":\"f\"}", "output": "out", "output_bytes": 3});
    reply["calls"] = json!([call]);
    reply
}

fn block(id: &str) -> Value {
    json!({"type": "summary_reply", "id": id, "compaction": "S", "stop_reason": "compaction", "usage": {}})
}

/// Builds the first request of a thread: system prompt, then these items.
fn create(purpose: &str, params: Value, items: &[Value]) -> Value {
    let mut all =
        vec![json!({"kind": "base", "role": "system", "msg": 0, "bytes": 4, "text": "base"})];
    all.extend(items.iter().cloned());
    let mut params = params;
    params["thread"] = json!({"type": "create"});
    json!({"purpose": purpose, "tools": true, "model": "m", "max_tokens": 9, "params": params, "items": all})
}

/// Builds an outcome: the number of requests, the executed calls, and `final` or `error`.
fn ended(requests: u64, calls: &[&str], how: &str, value: Value) -> Value {
    json!({"requests": requests, "tool_calls_executed": calls, how: value})
}

/// Builds the request for the first message.
fn first() -> Value {
    create("sample", json!({}), &[text_item("user", 1, "a")])
}

/// Builds a compaction request without options.
fn summarise(items: &[Value]) -> Value {
    create("summary", compaction(), items)
}

fn go_on(after: &str, items: &[Value]) -> Value {
    let params = json!({"thread": {"type": "continue", "previous_message_id": after}});
    json!({"purpose": "sample", "tools": false, "model": "m", "max_tokens": 9, "params": params, "items": items})
}

fn text_item(role: &str, msg: u64, text: &str) -> Value {
    json!({"kind": role, "role": role, "msg": msg, "bytes": text.len(), "text": text})
}

fn called(msg: u64) -> Value {
    json!({"kind": "call", "role": "assistant", "msg": msg, "id": "t1", "name": "read", "bytes": 12, "text": "{\"path\":\"f\"}"})
}

fn output(msg: u64) -> Value {
    json!({"kind": "output", "role": "user", "msg": msg, "id": "t1", "bytes": 3, "text": "out"})
}

fn summary(msg: u64) -> Value {
    json!({"kind": "compaction", "role": "assistant", "msg": msg, "bytes": 1, "text": "S"})
}

fn compaction() -> Value {
    json!({"compaction": {"type": "summarize"}})
}

#[test]
fn a_second_turn_sends_only_its_message() {
    let events =
        json!([user("a"), reply("m0", "end_turn", "x"), user("b"), reply("m1", "end_turn", "y")]);
    let requests = json!([first(), go_on("m0", &[text_item("user", 1, "b")])]);
    let outcome = ended(2, &[], "final", json!(["y"]));
    assert_eq!(run(plain(), events, requests, outcome), None);
}

#[test]
fn compaction_after_final_turn_replaces_it() {
    let compact = json!({"type": "compact"});
    let events = json!([
        user("a"),
        reply("m0", "end_turn", "x"),
        compact,
        block("c"),
        user("b"),
        reply("m1", "end_turn", "y")
    ]);
    let requests = json!([
        first(),
        summarise(&[text_item("user", 1, "a"), text_item("assistant", 2, "x")]),
        create("sample", json!({}), &[summary(1), text_item("user", 2, "b")]),
    ]);
    let outcome = ended(3, &[], "final", json!(["y"]));
    assert_eq!(run(plain(), events, requests, outcome), None);
}

#[test]
fn a_turn_cut_short_with_open_calls_is_not_compacted() {
    for stop in ["max_tokens", "end_turn", "model_context_window_exceeded", "something_new"] {
        let events = json!([user("a"), with_call(reply("m0", stop, "x")), {"type": "compact"}]);
        // The requested compaction is skipped: its event is used, and no request follows.
        let requests = json!([first()]);
        let outcome = ended(1, &[], "final", json!(["x"]));
        assert_eq!(run(plain(), events, requests, outcome), None, "{stop}");
    }
}

#[test]
fn paused_turn_continues_first() {
    let events = json!([
        user("a"), with_call(reply("m0", "pause_turn", "x")), {"type": "compact", "instructions": "names"},
        with_call(reply("m1", "tool_use", "y")), block("c"), reply("m2", "end_turn", "z"),
    ]);
    let asked = json!({"compaction": {"type": "summarize", "instructions": "names"}});
    let history = [
        text_item("user", 1, "a"),
        text_item("assistant", 2, "x"),
        called(2),
        text_item("assistant", 3, "y"),
        called(3),
        output(4),
    ];
    let requests = json!([
        first(),
        go_on("m0", &[]),
        create("summary", asked, &history),
        create("sample", json!({}), &[summary(1)]),
    ]);
    let outcome = ended(4, &["f"], "final", json!(["z"]));
    assert_eq!(run(plain(), events, requests, outcome), None);
}

#[test]
fn a_refused_reply_leaves_history_and_thread() {
    let events = json!([
        user("a"),
        reply("m0", "end_turn", "x"),
        user("b"),
        reply("m1", "refusal", "no"),
        user("c"),
        reply("m2", "end_turn", "y")
    ]);
    let history = [
        text_item("user", 1, "a"),
        text_item("assistant", 2, "x"),
        text_item("user", 3, "b"),
        text_item("user", 4, "c"),
    ];
    let requests = json!([
        first(),
        go_on("m0", &[text_item("user", 1, "b")]),
        create("sample", json!({}), &history),
    ]);
    let outcome = ended(3, &[], "final", json!(["y"]));
    assert_eq!(run(plain(), events, requests, outcome), None);
}

#[test]
fn compaction_omits_parameters_that_shape_an_answer() {
    let clear = json!({"edits": [{"type": "clear_tool_uses_20250919"}]});
    let given = json!({
        "context_management": clear, "stop_sequences": ["x"], "tool_choice": {"type": "any"}, "temperature": 0.5,
        "output_config": {"format": {"type": "json_schema"}, "effort": "low"},
    });
    let mut settings = given.clone();
    (settings["model"], settings["max_tokens"]) = (json!("m"), json!(9));
    let events = json!([user("a"), reply("m0", "end_turn", "x"), {"type": "compact"}, block("c")]);
    let kept = json!({"compaction": {"type": "summarize"}, "temperature": 0.5, "output_config": {"effort": "low"}});
    let requests = json!([
        create("sample", given, &[text_item("user", 1, "a")]),
        create("summary", kept, &[text_item("user", 1, "a"), text_item("assistant", 2, "x")]),
    ]);
    let outcome = ended(2, &[], "final", json!(["compaction"]));
    assert_eq!(run(settings, events, requests, outcome), None);
}

/// docs/sources/anthropic-sdk.md §2.4: a compaction without a summary is not the last message.
#[test]
fn compaction_after_final_turn_is_the_last_message() {
    let run = |summary: Value, last: Value| {
        let events = json!([user("a"), reply("m0", "end_turn", "x"), {"type": "compact"}, summary]);
        let requests = json!([
            first(),
            summarise(&[text_item("user", 1, "a"), text_item("assistant", 2, "x")]),
        ]);
        let outcome = ended(2, &[], "final", last);
        run(plain(), events, requests, outcome)
    };
    assert_eq!(run(block("c"), json!(["compaction"])), None);
    assert!(run(block("c"), json!(["x"])).is_some());
    let mut none = block("c");
    none["compaction"] = Value::Null;
    assert_eq!(run(none.clone(), json!(["x"])), None);
    assert!(run(none, json!(["compaction"])).is_some());
}

/// Rule in docs/sources/anthropic-sdk.md §2.4.
#[test]
fn appending_during_compaction_is_an_error() {
    let append = json!({"type": "caller_append", "form": "object"});
    let asked = with_call(reply("m0", "tool_use", "x"));
    let events = json!([user("a"), asked, {"type": "compact"}, block("c"), append]);
    let history = [text_item("user", 1, "a"), text_item("assistant", 2, "x"), called(2), output(3)];
    let requests = json!([first(), summarise(&history)]);
    let outcome = ended(2, &["f"], "error", json!("value_error"));
    assert_eq!(run(plain(), events, requests, outcome), None);
}

#[test]
fn compaction_with_compaction_edit_is_refused() {
    let settings = json!({"model": "m", "max_tokens": 9, "context_management": {"edits": [{"type": "compact_20260112"}]}});
    let events = json!([user("a"), with_call(reply("m0", "tool_use", "x")), {"type": "compact"}]);
    let params = json!({"context_management": {"edits": [{"type": "compact_20260112"}]}});
    let requests = json!([create("sample", params, &[text_item("user", 1, "a")])]);
    assert_eq!(run(settings, events, requests, ended(1, &[], "error", json!("value_error"))), None);
}

#[test]
fn max_iterations_ends_before_compaction() {
    let settings = json!({"model": "m", "max_tokens": 9, "max_iterations": 1});
    let events = json!([user("a"), with_call(reply("m0", "tool_use", "x")), {"type": "compact"}]);
    let requests = json!([first()]);
    assert_eq!(run(settings, events, requests, ended(1, &["f"], "final", json!(["x"]))), None);
}

#[test]
fn two_compactions_and_a_caller_without_threads() {
    let settings = json!({"model": "m", "max_tokens": 9, "thread": false});
    let whole = |purpose: &str, params: Value, items: &[Value]| {
        let mut r = create(purpose, params, items);
        r["params"].as_object_mut().unwrap().remove("thread");
        r
    };
    let events = json!([
        user("a"), reply("m0", "end_turn", "x"), {"type": "compact"}, block("c"), user("b"), reply("m1", "end_turn", "y"), {"type": "compact"},
        block("d"), user("c"), reply("m2", "end_turn", "z"),
    ]);
    let requests = json!([
        whole("sample", json!({}), &[text_item("user", 1, "a")]),
        whole(
            "summary",
            compaction(),
            &[text_item("user", 1, "a"), text_item("assistant", 2, "x")]
        ),
        whole("sample", json!({}), &[summary(1), text_item("user", 2, "b")]),
        whole(
            "summary",
            compaction(),
            &[summary(1), text_item("user", 2, "b"), text_item("assistant", 3, "y")]
        ),
        whole("sample", json!({}), &[summary(1), text_item("user", 2, "c")]),
    ]);
    assert_eq!(run(settings, events, requests, ended(5, &[], "final", json!(["z"]))), None);
}
