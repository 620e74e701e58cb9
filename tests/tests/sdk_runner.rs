//! The tool runner of anthropic 2.12.0 in situations beyond the recorded ones, as cases written by
//! hand from docs/sources/anthropic-sdk.md §2.4.

use ctxbench_conform::{Case, replay};
use serde_json::{Value, json};

/// Runs a case. Returns the first difference, if there is one.
fn run(settings: Value, events: &[Value], requests: &[Value], outcome: &Value) -> Option<String> {
    let mut case = json!({
        "kind": "replay", "agent": "anthropic-sdk", "version": "python-2.12.0", "name": "by hand",
        "settings": {"model": "m", "max_tokens": 9},
        "fixed": [base(), {"kind": "tools", "count": 1}],
        "events": events, "requests": requests, "outcome": outcome,
    });
    for (name, value) in settings.as_object().unwrap() {
        case["settings"][name] = value.clone();
    }
    let case = Case::parse(&case.to_string(), "by hand").unwrap();
    replay(&case).unwrap().difference.map(|d| format!("{d:#?}"))
}

fn base() -> Value {
    json!({"kind": "base", "role": "system", "msg": 0, "bytes": 4, "text": "base"})
}

/// Reads events such as `user a`, `reply m0 end_turn x` (`call …` if it makes a call), `compact`
/// with or without instructions, `block c` (`none c` without a summary) and `append`.
fn events(all: &str) -> Vec<Value> {
    let event = |text: &str| match text.split(' ').collect::<Vec<_>>()[..] {
        ["user", text] => json!({"type": "user", "text": text}),
        [kind @ ("reply" | "call"), id, stop, text] => {
            let call = json!({
                "id": "t1", "name": "read", "arguments": "{\"path\":\"f\"}", "output": "out",
                "output_bytes": 3,
            });
            let calls = if kind == "call" { vec![call] } else { vec![] };
            let usage = json!({"input_tokens": 1, "output_tokens": 1});
            json!({
                "type": "reply", "id": id, "text": text, "stop_reason": stop, "usage": usage,
                "calls": calls,
            })
        }
        ["compact"] => json!({"type": "compact"}),
        ["compact", more] => json!({"type": "compact", "instructions": more}),
        [kind @ ("block" | "none"), id] => json!({
            "type": "summary_reply", "id": id, "compaction": (kind == "block").then_some("S"),
            "stop_reason": "compaction", "usage": {},
        }),
        ["append"] => json!({"type": "caller_append", "form": "object"}),
        _ => panic!("{text}"),
    };
    all.split(", ").map(event).collect()
}

/// Reads a request: `sample`, `summary`, or the id of the message that it continues, and its items
/// with the numbers of their messages, such as `1 user a`, `2 call`, `3 output`, `1 summary`.
fn request(text: &str) -> Value {
    let (kind, items) = text.split_once(": ").unwrap_or((text.trim_end_matches(':'), ""));
    let item = |text: &str| {
        let words: Vec<&str> = text.split(' ').collect();
        let msg: u64 = words[0].parse().unwrap();
        match words[1..] {
            ["call"] => json!({
                "kind": "call", "role": "assistant", "msg": msg, "id": "t1", "name": "read",
                "bytes": 12, "text": "{\"path\":\"f\"}",
            }),
            ["output"] => json!({
                "kind": "output", "role": "user", "msg": msg, "id": "t1", "bytes": 3, "text": "out",
            }),
            ["summary"] => json!({
                "kind": "compaction", "role": "assistant", "msg": msg, "bytes": 1, "text": "S",
            }),
            [role, text] => json!({
                "kind": role, "role": role, "msg": msg, "bytes": text.len(), "text": text,
            }),
            _ => panic!("{text}"),
        }
    };
    let items: Vec<Value> = items.split("; ").filter(|i| !i.is_empty()).map(item).collect();
    let begins = matches!(kind, "sample" | "summary");
    let mut params = match begins {
        true => json!({"thread": {"type": "create"}}),
        false => json!({"thread": {"type": "continue", "previous_message_id": kind}}),
    };
    if kind == "summary" {
        params["compaction"] = json!({"type": "summarize"});
    }
    let head = begins.then(base);
    let all: Vec<Value> = head.into_iter().chain(items).collect();
    json!({
        "purpose": if kind == "summary" { "summary" } else { "sample" }, "tools": begins,
        "model": "m", "max_tokens": 9, "params": params, "items": all,
    })
}

fn requests(all: &[&str]) -> Vec<Value> {
    all.iter().map(|text| request(text)).collect()
}

/// Builds an outcome: the number of requests, the executed calls, and `final` or `error`.
fn ended(requests: usize, calls: &[&str], how: &str, value: Value) -> Value {
    json!({"requests": requests, "tool_calls_executed": calls, how: value})
}

const FIRST: &str = "sample: 1 user a";
const HISTORY: &str = "summary: 1 user a; 2 assistant x";

#[test]
fn runner_sends_what_its_source_says() {
    // Name, events, requests, executed calls, last text.
    type Row<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str], &'a str);
    let rows: [Row<'_>; 5] = [
        (
            "a second turn sends only its message",
            "user a, reply m0 end_turn x, user b, reply m1 end_turn y",
            &[FIRST, "m0: 1 user b"],
            &[],
            "y",
        ),
        (
            "a compaction after the final turn replaces it",
            "user a, reply m0 end_turn x, compact, block c, user b, reply m1 end_turn y",
            &[FIRST, HISTORY, "sample: 1 summary; 2 user b"],
            &[],
            "y",
        ),
        (
            "a refused reply leaves history and thread",
            "user a, reply m0 end_turn x, user b, reply m1 refusal no, user c, reply m2 end_turn y",
            &[FIRST, "m0: 1 user b", "sample: 1 user a; 2 assistant x; 3 user b; 4 user c"],
            &[],
            "y",
        ),
        (
            "a compaction after the final turn is the last message",
            "user a, reply m0 end_turn x, compact, block c",
            &[FIRST, HISTORY],
            &[],
            "compaction",
        ),
        (
            "a compaction without a summary is not",
            "user a, reply m0 end_turn x, compact, none c",
            &[FIRST, HISTORY],
            &[],
            "x",
        ),
    ];
    for (name, happened, sent, calls, last) in rows {
        let of = |last: &str| {
            let outcome = ended(sent.len(), calls, "final", json!([last]));
            run(json!({}), &events(happened), &requests(sent), &outcome)
        };
        assert_eq!(of(last), None, "{name}");
        assert!(of("another").is_some(), "{name}");
    }
}

#[test]
fn a_turn_cut_short_with_open_calls_is_not_compacted() {
    for stop in ["max_tokens", "end_turn", "model_context_window_exceeded", "something_new"] {
        // The requested compaction is skipped: its event is used, and no request follows.
        let happened = events(&format!("user a, call m0 {stop} x, compact"));
        let outcome = ended(1, &[], "final", json!(["x"]));
        assert_eq!(run(json!({}), &happened, &requests(&[FIRST]), &outcome), None, "{stop}");
    }
}

#[test]
fn paused_turn_continues_first() {
    let happened = events(
        "user a, call m0 pause_turn x, compact names, call m1 tool_use y, block c, \
         reply m2 end_turn z",
    );
    let history = "summary: 1 user a; 2 assistant x; 2 call; 3 assistant y; 3 call; 4 output";
    let mut sent = requests(&[FIRST, "m0:", history, "sample: 1 summary"]);
    sent[2]["params"]["compaction"]["instructions"] = "names".into();
    let outcome = ended(4, &["f"], "final", json!(["z"]));
    assert_eq!(run(json!({}), &happened, &sent, &outcome), None);
}

#[test]
fn compaction_omits_parameters_that_shape_an_answer() {
    let clear = json!({"edits": [{"type": "clear_tool_uses_20250919"}]});
    let given = json!({
        "context_management": clear, "stop_sequences": ["x"], "tool_choice": {"type": "any"},
        "temperature": 0.5, "output_config": {"format": {"type": "json_schema"}, "effort": "low"},
    });
    let mut sent = requests(&[FIRST, HISTORY]);
    for (name, value) in given.as_object().unwrap() {
        sent[0]["params"][name] = value.clone();
    }
    sent[1]["params"]["temperature"] = 0.5.into();
    sent[1]["params"]["output_config"] = json!({"effort": "low"});
    let happened = events("user a, reply m0 end_turn x, compact, block c");
    let outcome = ended(2, &[], "final", json!(["compaction"]));
    assert_eq!(run(given, &happened, &sent, &outcome), None);
}

#[test]
fn appending_during_compaction_and_a_compaction_edit_are_errors() {
    let error = |requests, calls: &[&str]| ended(requests, calls, "error", json!("value_error"));
    let happened = events("user a, call m0 tool_use x, compact, block c, append");
    let sent = requests(&[FIRST, "summary: 1 user a; 2 assistant x; 2 call; 3 output"]);
    assert_eq!(run(json!({}), &happened, &sent, &error(2, &["f"])), None);
    let edit = json!({"context_management": {"edits": [{"type": "compact_20260112"}]}});
    let happened = events("user a, call m0 tool_use x, compact");
    let mut sent = requests(&[FIRST]);
    sent[0]["params"]["context_management"] = edit["context_management"].clone();
    assert_eq!(run(edit, &happened, &sent, &error(1, &[])), None);
}

#[test]
fn max_iterations_ends_before_compaction() {
    let happened = events("user a, call m0 tool_use x, compact");
    let outcome = ended(1, &["f"], "final", json!(["x"]));
    let settings = json!({"max_iterations": 1});
    assert_eq!(run(settings, &happened, &requests(&[FIRST]), &outcome), None);
}

#[test]
fn two_compactions_and_a_caller_without_threads() {
    let happened = events(
        "user a, reply m0 end_turn x, compact, block c, user b, reply m1 end_turn y, compact, \
         block d, user c, reply m2 end_turn z",
    );
    let mut sent = requests(&[
        FIRST,
        HISTORY,
        "sample: 1 summary; 2 user b",
        "summary: 1 summary; 2 user b; 3 assistant y",
        "sample: 1 summary; 2 user c",
    ]);
    for request in &mut sent {
        request["params"].as_object_mut().unwrap().remove("thread");
    }
    let outcome = ended(5, &[], "final", json!(["z"]));
    assert_eq!(run(json!({"thread": false}), &happened, &sent, &outcome), None);
}
