//! Copies of calls that lack a name which the original has: the request or the provider's id. Sums are
//! worked out by hand, in USD.

use serde_json::{Value, json};

use crate::billing_kinds::{TURN_USD, line, meta, turn, usage};
use crate::billing_variants::{CALL_USD, assert_bill, turns};
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
