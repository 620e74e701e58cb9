//! Copies of calls that lack a name which the original has: the request, the provider's id, or the
//! ids of the entries. Sums are worked out by hand, in USD.

use serde_json::{Value, json};

use crate::billing_kinds::{TURN_USD, item, line, meta, turn, usage};
use crate::billing_variants::{CALL_USD, SONNET, assert_bill, turns};
use crate::common::jsonl;

/// Returns the lines of Claude Code without the names of their requests.
fn unnamed(mut lines: Vec<Value>) -> Vec<Value> {
    let objects = lines.iter_mut().filter_map(Value::as_object_mut);
    objects.for_each(|o| drop(o.remove("requestId")));
    lines
}

#[test]
fn a_copy_without_requests_is_the_same_call() {
    for lines in [unnamed(turns(1, 3)), [unnamed(turns(1, 2)), turns(3, 3)].concat()] {
        let files = [("a.jsonl", jsonl(&turns(1, 2))), ("b.jsonl", jsonl(&lines))];
        assert_bill(&files, 2, 3.0 * CALL_USD);
    }
    // In one file, before or after the line that names it.
    for at in [1, 2] {
        let mut lines = turns(1, 2);
        let mut copy = unnamed(vec![lines[1].clone()]).remove(0);
        copy["uuid"] = "copy".into();
        lines.insert(at, copy);
        let (rows, told) = assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 2.0 * CALL_USD);
        assert_eq!(rows[0]["steps"], 2, "{told}");
    }
    // A reply that two requests got is two calls.
    let mut lines = turns(1, 2);
    lines[3]["message"]["id"] = lines[1]["message"]["id"].clone();
    assert_bill(&[("a.jsonl", jsonl(&lines))], 1, 2.0 * CALL_USD);
    assert_bill(&[("a.jsonl", jsonl(&lines)), ("b.jsonl", jsonl(&lines))], 2, 2.0 * CALL_USD);
}

/// Returns a turn of Codex without its token count, with a record of its usage, or with both.
fn recorded_turn(n: u64, thread: &str, told: &str) -> Vec<Value> {
    let mut lines = turn(n, "Next?", &format!("Answer {n}.")).to_vec();
    if told != "count" {
        let record = json!({"thread_id": thread, "response_id": format!("{thread}{n}"),
            "usage": usage(10_000, 0, 1_000)});
        lines.insert(3, line("token_usage_record", record));
    }
    lines.truncate(if told == "record" { 4 } else { lines.len() });
    lines
}

#[test]
fn a_fork_may_have_token_counts_only_or_records_only() {
    for of_thread in ["count", "record", "both"] {
        for of_fork in ["count", "record", "both"] {
            let history = |told: &str| (1..=2).flat_map(|n| recorded_turn(n, "p", told)).collect();
            let thread = [vec![meta("p", json!({}))], history(of_thread)].concat();
            let own = vec![meta("f", json!({"forked_from_id": "p"}))];
            let fork = [own, history(of_fork), recorded_turn(3, "f", of_fork)].concat();
            let files = [("p.jsonl", jsonl(&thread)), ("f.jsonl", jsonl(&fork))];
            assert_bill(&files, 2, 3.0 * TURN_USD);
            assert_bill(&[files[1].clone(), ("z.jsonl", jsonl(&thread))], 2, 3.0 * TURN_USD);
        }
    }
}

#[test]
fn a_lost_count_is_told_by_the_next_totals() {
    let lines =
        [vec![meta("p", json!({}))], turn(1, "A?", "B.").into(), turn(2, "C?", "D.").into()];
    let text = jsonl(&lines.concat());
    let mut lines: Vec<&str> = text.lines().collect();
    lines[4] = &lines[4][..60];
    assert_bill(&[("p.jsonl", lines.join("\n"))], 1, 2.0 * TURN_USD);
    // Totals that begin high are not of this file if nothing was lost.
    let late = [vec![meta("p", json!({})), item("user", "Go.")], turn(2, "C?", "D.").into()];
    assert_bill(&[("p.jsonl", jsonl(&late.concat()))], 1, TURN_USD);
}

/// Returns a session of pi with ids that begin with `pre`, and times of the entries from minute `from` on.
fn pi(pre: &str, from: u64, replies: u64) -> String {
    let time = |n: u64| format!("2026-10-02T09:{:02}:00.000Z", from + n);
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": pre, "timestamp": time(0), "cwd": "/w"}),
    ];
    for n in 1..=replies {
        let parent = (n > 1).then(|| format!("{pre}a{}", n - 1));
        let ask = json!({"role": "user", "content": "Next?", "timestamp": 1_790_000_000_000 + n});
        let usage = json!({"input": 10_000, "output": 1_000, "cacheRead": 0, "cacheWrite": 0});
        let reply = json!({"role": "assistant", "model": SONNET, "stopReason": "stop", "usage": usage,
            "content": [{"type": "text", "text": "Done."}], "timestamp": 1_790_000_001_000 + n});
        let ids = [format!("{pre}u{n}"), format!("{pre}a{n}")];
        lines.push(json!({"type": "message", "id": ids[0], "parentId": parent, "timestamp": time(n), "message": ask}));
        lines.push(json!({"type": "message", "id": ids[1], "parentId": ids[0], "timestamp": time(n), "message": reply}));
    }
    jsonl(&lines)
}

/// Returns a chat of Qwen Code, like [`pi`].
fn qwen(pre: &str, replies: u64) -> String {
    let line = |kind: &str, n: u64, id: String, parent: Option<String>, message: Value| {
        json!({"uuid": id, "parentUuid": parent, "sessionId": pre, "type": kind, "cwd": "/w",
            "timestamp": format!("2026-10-02T09:{n:02}:00.000Z"), "message": message})
    };
    let turn = |n: u64| {
        let (own, parent) = (format!("{pre}u{n}"), (n > 1).then(|| format!("{pre}a{}", n - 1)));
        let ask = json!({"role": "user", "parts": [{"text": "Next?"}]});
        let said = json!({"role": "model", "parts": [{"text": "Done."}]});
        let mut reply = line("assistant", n, format!("{pre}a{n}"), Some(own.clone()), said);
        reply["model"] = SONNET.into();
        reply["usageMetadata"] = json!({"promptTokenCount": 10_000, "candidatesTokenCount": 1_000,
            "totalTokenCount": 11_000});
        [line("user", n, own, parent, ask), reply]
    };
    jsonl(&(1..=replies).flat_map(turn).collect::<Vec<_>>())
}

#[test]
fn a_copy_with_other_ids_of_its_entries_is_known_by_its_times() {
    let of_pi = [("a.jsonl", pi("a", 0, 2)), ("b.jsonl", pi("b", 30, 3))];
    let of_qwen = [("a.jsonl", qwen("a", 2)), ("b.jsonl", qwen("b", 3))];
    for files in [of_pi, of_qwen] {
        assert_bill(&files, 2, 3.0 * CALL_USD);
    }
}
