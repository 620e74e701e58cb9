//! Bills of calls that look alike, that no line counts, or whose counters cannot be. Prices are USD per
//! million tokens.

use serde_json::{Value, json};

use crate::billing_variants::{CALL_USD, SONNET, assert_bill, exchanges, talk, turns};
use crate::common::{CommandFolder, REPLAY, jsonl};

/// Returns a line of a rollout of Codex.
pub fn line(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-10-01T10:00:00.000Z", "type": kind, "payload": payload})
}

pub fn meta(id: &str, more: Value) -> Value {
    let mut payload = json!({"id": id, "cli_version": "0.146.0", "model_provider": "openai"});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line("session_meta", payload)
}

pub fn usage(input: u64, cached: u64, output: u64) -> Value {
    json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output,
        "reasoning_output_tokens": 0, "total_tokens": input + output})
}

fn counted(total: Value, last: Value) -> Value {
    let info = json!({"total_token_usage": total, "last_token_usage": last});
    line("event_msg", json!({"type": "token_count", "info": info}))
}

pub fn item(role: &str, text: &str) -> Value {
    let kind = if role == "user" { "input_text" } else { "output_text" };
    let content = json!([{"type": kind, "text": text}]);
    line("response_item", json!({"type": "message", "role": role, "content": content}))
}

/// Returns a question and a reply of 10,000 and 1,000 tokens, call number `n` of its thread.
pub fn turn(n: u64, ask: &str, reply: &str) -> [Value; 4] {
    let model = line("turn_context", json!({"model": "gpt-5.4"}));
    let total = usage(n * 10_000, 0, n * 1_000);
    [model, item("user", ask), item("assistant", reply), counted(total, usage(10_000, 0, 1_000))]
}

/// GPT-5.4 at 2.5 and 15.
pub const TURN_USD: f64 = 0.025 + 0.015;

#[test]
fn siblings_with_equal_counters_have_a_call_each() {
    let parent = [vec![meta("p", json!({}))], turn(1, "Which port?", "8443.").into()].concat();
    let fork = |id: &str, reply: &str| {
        let own = vec![meta(id, json!({"forked_from_id": "p"}))];
        jsonl(&[own, parent.clone(), turn(2, "Next?", reply).into()].concat())
    };
    let file = |name, text| (name, text);
    let parent_file = file("p.jsonl", jsonl(&parent));
    let forks = [file("a.jsonl", fork("a", "Done.")), file("b.jsonl", fork("b", "Refused."))];
    // The parent's call, and one of each fork.
    assert_bill(&[vec![parent_file.clone()], forks.to_vec()].concat(), 3, 3.0 * TURN_USD);
    assert_bill(&forks, 2, 3.0 * TURN_USD);
    let subagent = |id: &str, reply: &str| {
        let source = json!({"subagent": {"thread_spawn": {"parent_thread_id": "p"}}});
        let from =
            json!({"forked_from_id": "p", "source": source, "subagent_history_start_ordinal": 6});
        let own = vec![meta(id, from)];
        jsonl(&[own, parent.clone(), turn(2, "Next?", reply).into()].concat())
    };
    let files = [
        parent_file,
        file("a.jsonl", subagent("a", "Done.")),
        file("b.jsonl", subagent("b", "Done.")),
    ];
    assert_bill(&files, 3, 3.0 * TURN_USD);
}

/// A fork of a fork names its parent alone. A thread that looks alike made other calls.
#[test]
fn forks_of_forks_repeat_the_calls_of_all_before() {
    let thread = |id: &'static str, from: Value, calls: u64| {
        let turns = (1..=calls).flat_map(|n| turn(n, "Next?", "Done."));
        (id, jsonl(&[vec![meta(id, from)], turns.collect()].concat()))
    };
    let a = thread("a.jsonl", json!({}), 2);
    let b = thread("b.jsonl", json!({"forked_from_id": "a.jsonl"}), 3);
    let c = thread("c.jsonl", json!({"forked_from_id": "b.jsonl"}), 4);
    let subagent = thread("e.jsonl", json!({"parent_thread_id": "c.jsonl"}), 5);
    let alike = thread("d.jsonl", json!({}), 2);
    for (files, calls) in [
        (vec![&a, &b, &c], 4.0),
        (vec![&a, &c], 4.0),
        (vec![&b, &c], 4.0),
        (vec![&a, &b, &c, &subagent], 5.0),
        (vec![&a, &alike], 4.0),
        (vec![&a, &c, &alike], 6.0),
    ] {
        let files: Vec<(&str, String)> = files.into_iter().cloned().collect();
        assert_bill(&files, files.len(), calls * TURN_USD);
    }
}

/// The second call reads 4,000 tokens from the cache: 6,000 at 2.5 and 4,000 at 0.25. Before the third,
/// the totals began at 0 again: 8,000 and 500.
#[test]
fn totals_tell_of_each_call_once() {
    let turns = |n: u64| (1..=n).flat_map(|n| turn(n, "Next?", "Done."));
    let mut lines: Vec<Value> = [meta("p", json!({}))].into_iter().chain(turns(3)).collect();
    let totals = [usage(10_000, 0, 1_000), usage(20_000, 4_000, 2_000), usage(8_000, 0, 500)];
    for (at, totals) in [4, 8, 12].into_iter().zip(totals) {
        lines[at] = counted(totals, Value::Null);
    }
    let usd = TURN_USD + 0.031 + 0.0275;
    assert_bill(&[("p.jsonl", jsonl(&lines))], 1, usd);
    // A program that resumes a session may write its counters again.
    let mut lines: Vec<Value> = [meta("p", json!({}))].into_iter().chain(turns(3)).collect();
    lines.splice(9..9, [lines[4].clone(), lines[8].clone()]);
    assert_bill(&[("p.jsonl", jsonl(&lines))], 1, 3.0 * TURN_USD);
}

/// Older subagents repeat their parent's counters and questions, and only its last replies.
#[test]
fn counters_without_replies_are_those_of_a_subagents_parent() {
    let lines = [turn(1, "Which port?", "8443."), turn(2, "And the host?", "localhost.")].concat();
    let parent = [vec![meta("p", json!({}))], lines].concat();
    let own = meta("a", json!({"forked_from_id": "p", "source": {"subagent": "review"}}));
    let mut filtered = parent.clone();
    filtered.remove(3);
    let child = [vec![own], filtered, turn(3, "Review it.", "Fine.").into()].concat();
    let files = [("p.jsonl", jsonl(&parent)), ("a.jsonl", jsonl(&child))];
    assert_bill(&files, 2, 3.0 * TURN_USD);
}

/// The totals grow from 10,000 to 40,000 tokens of input, 8,000 of them cached, while the last call
/// had 10,000: 12,000 at 2.5, 8,000 at 0.25, and 500 of output at 15.
#[test]
fn what_only_the_totals_count_is_billed_once() {
    let missing = 0.03 + 0.002 + 0.0075;
    let after = counted(usage(40_000, 8_000, 2_500), usage(10_000, 0, 1_000));
    let begin = [vec![meta("p", json!({}))], turn(1, "Which port?", "8443.").into()].concat();
    let mut lines = [begin.clone(), turn(2, "Next?", "Done.").into()].concat();
    let last = lines.len() - 1;
    lines[last] = after.clone();
    lines.push(after.clone());
    let here = CommandFolder::with("p.jsonl", jsonl(&lines));
    let told = "line 9: the totals grew by 20000 input and 500 output tokens beyond the counters of \
                the calls; they are billed as a call without a reply";
    here.run("import p.jsonl -o s.jsonl").ok().stderr_contains(&[told]);
    assert_bill(&[("p.jsonl", jsonl(&lines))], 1, 2.0 * TURN_USD + missing);
    let fork = [vec![meta("a", json!({"forked_from_id": "p"}))], lines].concat();
    let copies = [("p.jsonl", jsonl(&fork[1..])), ("a.jsonl", jsonl(&fork))];
    assert_bill(&copies, 2, 2.0 * TURN_USD + missing);
    // A compaction between the two is what the tokens were for.
    let compacted = line("compacted", json!({"message": "So far."}));
    let estimate = counted(usage(30_000, 8_000, 1_500), usage(0, 0, 0));
    let all = [begin, vec![compacted, estimate], turn(2, "Next?", "Done.").into()].concat();
    let all = [all[..all.len() - 1].to_vec(), vec![after]].concat();
    let (rows, told) = assert_bill(&[("p.jsonl", jsonl(&all))], 1, 2.0 * TURN_USD + missing);
    assert_eq!(rows[0]["compactions"], 1, "{told}");
}

#[test]
fn more_cached_tokens_than_the_prompt_has_are_named() {
    // 10,000 at 0.25 and 1,000 at 15.
    let mut rollout = [vec![meta("p", json!({}))], turn(1, "Which port?", "8443.").into()].concat();
    rollout[4] = counted(usage(10_000, 90_000, 1_000), usage(10_000, 90_000, 1_000));
    assert_bill(&[("p.jsonl", jsonl(&rollout))], 1, 0.0025 + 0.015);
    let chat = talk(
        "gpt-5.4",
        json!({"prompt_tokens": 500, "completion_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 900}}),
    );
    assert_bill(&[("a.json", chat.clone())], 1, 0.000_125 + 0.000_15);
    for (file, text, told) in [
        (
            "p.jsonl",
            jsonl(&rollout),
            "p.jsonl:5: 90000 tokens read from the cache, which is more than \
            the prompt of 10000 tokens; taken as 10000",
        ),
        (
            "a.json",
            chat,
            "a.json:1: 900 tokens read from the cache, which is more than the prompt of \
            500 tokens; taken as 500",
        ),
    ] {
        let here = CommandFolder::with(file, text);
        here.run(&format!("import {file} -o s.json")).ok().stderr_contains(&[told]);
    }
}

/// Twenty searches cost 0.2 with GPT-5.4 and 0.5 with GPT-4.1. Fast mode costs six times with Opus
/// 4.6 and twice with Opus 4.8.
#[test]
fn terms_of_a_subagents_reply_are_those_of_its_model() {
    let reference = |main: &str, of_agent: &str, terms: Value| -> f64 {
        let usage = |terms: &Value| {
            let mut usage =
                json!({"input": 10_000, "output": 1_000, "cache_read": 0, "cache_write": 0});
            usage.as_object_mut().unwrap().extend(terms.as_object().unwrap().clone());
            usage
        };
        let call = json!([{"id": "c", "name": "Task", "arguments": "{}"}]);
        let lines = [
            json!({"type": "session", "version": 1, "id": "s", "model": main, "source": {"format": "codex"}}),
            json!({"type": "user", "id": "u", "text": "Go."}),
            json!({"type": "assistant", "id": "a", "model": main, "calls": call, "usage": usage(&json!({}))}),
            json!({"type": "user", "id": "v", "text": "Search.", "agent": "c"}),
            json!({"type": "assistant", "id": "b", "model": of_agent, "text": "Found.", "agent": "c", "usage": usage(&terms)}),
            json!({"type": "tool", "call_id": "c", "output": "Found."}),
            json!({"type": "assistant", "id": "d", "model": main, "text": "Done.", "usage": usage(&json!({}))}),
        ];
        let here = CommandFolder::with("s.jsonl", jsonl(&lines));
        here.run(&format!("run s.jsonl {REPLAY}")).ok();
        let rows = here.csv("out/costs.csv");
        let of = |r: &&crate::common::Row| r["strategy"] == "reference" && r["agent"] == "c";
        rows.iter().find(of).unwrap()["cost_usd"].parse().unwrap()
    };
    let none = json!({});
    let searches = reference("gpt-5.4", "gpt-4.1", json!({"web_searches": 20}));
    let added = searches - reference("gpt-5.4", "gpt-4.1", none.clone());
    assert!((added - 0.5).abs() < 1e-9, "{added}");
    let (main, of_agent) = ("claude-opus-4-8", "claude-opus-4-6");
    let fast = reference(main, of_agent, json!({"speed": "fast"}));
    let standard = reference(main, of_agent, none);
    assert!((fast / standard - 6.0).abs() < 1e-6, "{fast} {standard}");
}

/// Three replies; Aider counted the second and the third, and its sum contains the first.
#[test]
fn aiders_own_sum_covers_replies_without_counters() {
    let chat = |sum: &str| {
        let reply = |ask: &str, told: &str| format!("#### {ask}  \n\nIt is 8443.\n\n{told}");
        let begin = "\n# aider chat started at 2026-10-02 09:00:00\n\n";
        let model = format!("> Main model: {SONNET} with diff edit format  \n\n");
        let tokens = "> Tokens: 10,000 sent, 1,000 received. Cost: $0.045 message, $";
        [
            begin,
            &model,
            &reply("Which port?", ""),
            &reply("Sure?", &format!("{tokens}{sum} session.  \n\n")),
        ]
        .concat()
    };
    for (sum, usd) in [("0.045", CALL_USD), ("0.065", CALL_USD + 0.02)] {
        let files = [(".aider.chat.history.md", chat(sum))];
        let (rows, told) = assert_bill(&files, 1, usd);
        assert!(!told.contains("at least"), "{told}");
        assert_eq!(rows[0]["cost_is_minimum"], false, "{rows:?}");
        let here = CommandFolder::with(".aider.chat.history.md", chat(sum));
        let out = here.run(&format!("run .aider.chat.history.md {REPLAY}")).ok();
        out.lacks(&["session at least"]);
    }
}

#[test]
fn a_torn_line_of_a_session_loses_only_itself() {
    let here = CommandFolder::with("a.jsonl", jsonl(&turns(1, 3)));
    here.run("import a.jsonl -o s.jsonl").ok();
    let text = here.read("s.jsonl");
    let mut lines: Vec<&str> = text.lines().collect();
    lines[4] = &lines[4][..lines[4].len() / 2];
    let (rows, told) = assert_bill(&[("s.jsonl", lines.join("\n"))], 1, 2.0 * CALL_USD);
    assert_eq!(rows[0]["steps"], 2, "{told}");
    assert!(told.contains("s.jsonl:5: not a JSON object"), "{told}");
    here.write("t.jsonl", lines.join("\n"));
    let out = here.run(&format!("run t.jsonl {REPLAY}")).ok();
    out.stderr_contains(&["t.jsonl:5: not a JSON object", "left out"]);
}

/// An answer before the compaction, the compaction, and the answer: 20,000 and 100, 100,000 and 2,000,
/// 9,000 and 300 tokens.
#[test]
fn all_requests_inside_a_recorded_exchange_are_billed() {
    let iteration = |kind: &str, input: u64, output: u64| json!({"type": kind, "input_tokens": input, "output_tokens": output});
    let inside = [
        iteration("message", 20_000, 100),
        iteration("compaction", 100_000, 2_000),
        iteration("message", 9_000, 300),
    ];
    let usage = json!({"input_tokens": 9_000, "output_tokens": 300, "iterations": inside});
    let content =
        json!([{"type": "compaction", "content": "Port 8443."}, {"type": "text", "text": "8443."}]);
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": SONNET,
        "stop_reason": "end_turn", "content": content, "usage": usage});
    let body = json!({"model": SONNET, "max_tokens": 9,
        "messages": [{"role": "user", "content": "Which port?"}]});
    let lines = exchanges("anthropic-messages", "/v1/messages", &[(body, reply.to_string())]);
    let usd = 0.06 + 0.0015 + 0.3 + 0.03 + 0.027 + 0.0045;
    let (rows, _) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, usd);
    assert_eq!((&rows[0]["compactions"], &rows[0]["steps"]), (&json!(1), &json!(1)));
    let here = CommandFolder::with("a.jsonl", jsonl(&lines));
    here.run("import a.jsonl -o s.jsonl").ok();
    assert!(here.read("s.jsonl").contains("\"pre_tokens\":100000"), "{}", here.read("s.jsonl"));
}

/// Sonnet 4.6: 3.75 and 6 for tokens written for five minutes and an hour.
#[test]
fn lifetimes_of_written_tokens_may_stand_without_their_sum() {
    let usd = (10.0 * 3.0 + 3_000.0 * 3.75 + 7_000.0 * 6.0 + 100.0 * 15.0) / 1e6;
    let made = json!({"ephemeral_5m_input_tokens": 3_000, "ephemeral_1h_input_tokens": 7_000});
    let plain = json!({"input_tokens": 10, "output_tokens": 100, "cache_creation": made});
    let mut zero = plain.clone();
    zero["cache_creation_input_tokens"] = 0.into();
    let content = json!([{"type": "text", "text": "8443."}]);
    for usage in [plain, zero] {
        let mut lines = turns(1, 1);
        lines[1]["message"]["usage"] = usage.clone();
        assert_bill(&[("a.jsonl", jsonl(&lines))], 1, usd);
        let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": SONNET,
            "stop_reason": "end_turn", "content": content, "usage": usage});
        let body = json!({"model": SONNET, "max_tokens": 9,
            "messages": [{"role": "user", "content": "Which port?"}]});
        let stored = json!({"request": body, "response": reply});
        assert_bill(&[("a.json", stored.to_string())], 1, usd);
        let lines = exchanges("anthropic-messages", "/v1/messages", &[(body, reply.to_string())]);
        assert_bill(&[("a.jsonl", jsonl(&lines))], 1, usd);
    }
}

/// Some gateways end a stream with zeros, or with the output alone.
#[test]
fn the_end_of_a_stream_takes_no_counter_back() {
    for (first, last) in [(1_000, 0), (1, 1_000)] {
        let mut lines = turns(1, 1);
        lines[1]["message"]["usage"]["output_tokens"] = first.into();
        let mut end = lines[1].clone();
        (end["uuid"], end["parentUuid"]) = ("end".into(), lines[1]["uuid"].clone());
        end["message"]["content"][0]["text"] = "The end.".into();
        end["message"]["usage"] = json!({"input_tokens": 0, "output_tokens": last});
        lines.push(end);
        assert_bill(&[("a.jsonl", jsonl(&lines))], 1, CALL_USD);
    }
}

/// The provider compacts the prompt of a subagent: 100,000 and 2,000 tokens, then 10 of input, 9,000
/// written for an hour and 300 of output. Only the sum tells the lifetime.
#[test]
fn compactions_inside_a_subagents_reply_are_billed() {
    let made = json!({"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 9_000});
    let inside = json!([{"type": "compaction", "input_tokens": 100_000, "output_tokens": 2_000},
        {"type": "message", "input_tokens": 10, "cache_creation_input_tokens": 9_000, "output_tokens": 300}]);
    let usage = json!({"input_tokens": 10, "cache_creation_input_tokens": 9_000, "output_tokens": 300,
        "cache_creation": made, "iterations": inside});
    let mut lines = turns(1, 2);
    for line in &mut lines[2..] {
        (line["isSidechain"], line["agentId"]) = (true.into(), "x".into());
    }
    lines[3]["message"]["usage"] = usage;
    let usd = CALL_USD + 0.3 + 0.03 + 0.000_03 + 0.054 + 0.004_5;
    let (rows, _) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, usd);
    assert_eq!(rows[0]["compactions"], 0, "of the main conversation");
}

#[test]
fn impossible_counters_of_a_branch_that_was_given_up_are_told() {
    let mut lines = turns(1, 3);
    lines[3]["message"]["usage"]["input_tokens"] = 4_280_000.into();
    lines[4]["parentUuid"] = lines[1]["uuid"].clone();
    let (_, told) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 2.0 * CALL_USD);
    assert!(told.contains("cannot be right and are left out"), "{told}");
}

/// The body of the second request is told by what it adds to the first, which breaks off.
#[test]
fn a_reply_to_a_request_that_cannot_be_read_is_billed() {
    let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": SONNET,
        "stop_reason": "end_turn", "content": [{"type": "text", "text": "8443."}],
        "usage": {"input_tokens": 10_000, "output_tokens": 1_000}});
    let body = json!({"model": SONNET, "max_tokens": 9,
        "messages": [{"role": "user", "content": "Which port?"}]});
    let all = [
        (body.clone(), reply.to_string()),
        (body.clone(), reply.to_string()),
        (body, reply.to_string()),
    ];
    let mut lines = exchanges("anthropic-messages", "/v1/messages", &all);
    lines[2]["body"] = json!({"bytes": 900, "like": 7, "head": 9, "tail": 9, "text": ""});
    let (_, told) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 3.0 * CALL_USD);
    assert!(told.contains("a.jsonl:3: its body is like that of exchange 7"), "{told}");
}

/// 5,000 tokens of input for an hour in the cache, of pi and of a fork that names them otherwise.
#[test]
fn written_tokens_with_the_long_lifetime_are_told_by_pi_too() {
    for more in [json!({"cacheWrite1h": 5_000}), json!({"cttl": {"ephemeral1h": 5_000}})] {
        let mut usage = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 5_000});
        usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let time = "2026-10-02T09:00:00.000Z";
        let message = |role: &str| {
            json!({"role": role, "content": "Text.", "model": SONNET, "stopReason": "stop",
                "usage": usage, "timestamp": 1_790_000_000_000_u64})
        };
        let lines = [
            json!({"type": "session", "id": "s", "timestamp": time, "cwd": "/w"}),
            json!({"type": "message", "timestamp": time, "message": message("user")}),
            json!({"type": "message", "timestamp": time, "message": message("assistant")}),
        ];
        assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 0.03);
    }
}

#[test]
fn what_subagents_of_cline_used_is_billed() {
    let history = json!([{"role": "user", "content": "Find the port."}, {"role": "assistant", "content": "8443."}]);
    let request = |say: &str, ms: u64| {
        let text = json!({"tokensIn": 10_000, "tokensOut": 1_000, "cost": 0.045}).to_string();
        json!({"ts": 1_791_000_000_000 + ms, "type": "say", "say": say, "text": text})
    };
    let ui = json!([request("api_req_started", 1), request("subagent_usage", 2)]);
    let used = json!({"model_usage": [{"ts": 1, "model_id": SONNET}]});
    let files = [
        ("1/api_conversation_history.json", history.to_string()),
        ("1/ui_messages.json", ui.to_string()),
        ("1/task_metadata.json", used.to_string()),
    ];
    assert_bill(&files, 1, 2.0 * CALL_USD);
}
