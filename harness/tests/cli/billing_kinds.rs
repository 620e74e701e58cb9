//! Bills of calls that look alike, that no line counts, or whose counters cannot be. Prices are USD per
//! million tokens.

use serde_json::{Value, json};

use crate::billing_variants::{CALL_USD, SONNET, assert_bill, talk, turns};
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
