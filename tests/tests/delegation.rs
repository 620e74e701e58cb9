//! Runs with subagents: hand calculations and invariants.

use ctxbench_core::request::Phase;
use ctxbench_core::tokens::o200k;
use ctxbench_replay::Options;
use ctxbench_reports::record::{RequestRecord, Status};
use ctxbench_scenarios::{Scenario, builtin, parse};
use ctxbench_session::fact::Match;

use crate::common::replayed::{MODEL, as_told, run, run_with};
use crate::common::words;

/// Two parallel subagents: `x` answers at once, and `y` reads a file first. Each text has one token
/// per word.
const TWO: &str = include_str!("../data/delegation/two-subagents.jsonl");

fn scenario(text: &str) -> Scenario {
    parse(text.as_bytes(), "two.jsonl").unwrap()
}

/// Latency of Sonnet 4.6 without cache, in ms: 800, 0.03 per input token, 5.5 per output token.
fn ms(r: &RequestRecord) -> u64 {
    (800.0 + 0.03 * r.input_tokens as f64 + 5.5 * r.output_tokens as f64).round() as u64
}

#[test]
fn two_subagents_by_hand() {
    let r = run(&scenario(TWO), "reference");
    assert_eq!(r.status, Status::Completed, "{:?}", r.error);
    for text in ["one", "one two three four five six", "port open now", "one secret word two"] {
        assert_eq!(o200k(text), text.split(' ').count() as u64, "{text}");
    }
    // Every block has 4 tokens in addition to its text; a call is 1 for `{}`, 1 for its name and 4.
    // Prompts and replies: main: 10 + 7 = 17 → two calls 12; + results 3 + 4 and 4 + 4 = 44 → 5; +
    // u2 6 = 55 → 5. x, under the session's prompt: 10 + 6 = 16 → 3 + 4. y, under its own: 6 + 5 =
    // 11 → 6; + 8 = 25 → 8.
    let row = |q: &RequestRecord| {
        let agent = q.agent.as_deref().unwrap_or("main");
        format!("{} {agent}: {} {}", q.seq, q.input_tokens, q.output_tokens)
    };
    let rows: Vec<String> = r.requests.iter().map(row).collect();
    let want = "0 main: 17 12, 1 main: 44 5, 2 main: 55 5, 3 x: 16 7, 4 y: 11 6, 5 y: 25 8";
    assert_eq!(rows.join(", "), want, "of every window");
    // Nothing is cached below 1,024 tokens: 168 input tokens at 3 USD per million, 43 output tokens
    // at 15.
    assert_eq!((r.summary.input_tokens, r.summary.output_tokens, r.summary.requests), (168, 43, 6));
    let s = &r.summary;
    let usd = (168.0 * 3.0 + 43.0 * 15.0) / 1e6;
    assert!((s.cost_usd - usd).abs() < 1e-12, "{}", s.cost_usd);
    // The window metrics are those of the main conversation.
    assert_eq!((s.steps_completed, s.steps_total, s.peak_context_tokens), (3, 3, 55));
    let [dx, dy] = r.delegation.as_slice() else { panic!("{:?}", r.delegation) };
    for (d, agent, call, steps, tokens) in
        [(dx, "x", "c1", 1, (16, 7, 16, Some(3))), (dy, "y", "c2", 2, (36, 14, 25, Some(4)))]
    {
        let found = (&*d.agent, d.call.as_deref(), d.request, d.waited, d.steps);
        assert_eq!(found, (agent, Some(call), Some(0), true, steps));
        let found = (d.input_tokens, d.output_tokens, d.peak_context_tokens, d.result_tokens);
        assert_eq!(found, tokens, "{agent}");
    }
    // Both begin after the first reply. y's file takes the stated 2 s, and the main conversation
    // waits for the slower subagent.
    let q = &r.requests;
    let called = ms(&q[0]);
    assert_eq!((dx.started_ms, q[3].at_ms, q[4].at_ms), (called, called, called));
    assert_eq!((dx.duration_ms, dy.duration_ms), (ms(&q[3]), ms(&q[4]) + 2_000 + ms(&q[5])));
    assert_eq!(q[1].at_ms, called + dy.duration_ms);
    // The port was returned and is present. The secret was not returned. The rule of the main
    // conversation is not in y's window.
    let facts =
        [dx, dy].map(|d| [d.delegated_facts, d.returned_facts, d.needed_outside, d.kept_outside]);
    assert_eq!(facts, [[1, 1, 1, 1], [1, 0, 1, 0]]);
    let pair =
        |id: &str| r.facts.iter().find(|f| f.fact == id).map(|f| (f.found, f.request)).unwrap();
    assert_eq!(pair("port"), (Match::Verbatim, Some(2)));
    assert_eq!(pair("secret"), (Match::Absent, Some(2)));
    assert_eq!(pair("rule"), (Match::Absent, Some(5)), "looked for where it is needed");
    // Neither the secret nor the rule reached the agent that needs it, so no strategy lost them.
    let undelivered: Vec<&str> =
        r.facts.iter().filter(|f| f.undelivered).map(|f| f.fact.as_str()).collect();
    assert_eq!((undelivered, r.pair_recall_pct(None)), (vec!["rule", "secret"], Some(100.0)));
}

#[test]
fn user_who_continues_at_once_waits_for_the_tool_only() {
    let lines = TWO.replace(r#"{"type":"tool","call_id":"c2","output":"one two three four"}"#, "").replace(
        r#"{"type":"user","id":"y0""#,
        "{\"type\":\"tool\",\"call_id\":\"c2\",\"output\":\"started\"}\n{\"type\":\"user\",\"id\":\"y0\"",
    );
    // After the result, the call is found by its request.
    let lines = lines.replace(
        r#""id":"c2","name":"task","arguments":"{}""#,
        r#""id":"c2","name":"task","arguments":"{\"prompt\":\"one\"}""#,
    );
    let r = run(&scenario(&lines), "reference");
    let [x, y] = r.delegation.as_slice() else { panic!("{:?}", r.delegation) };
    assert_eq!((x.waited, y.waited), (true, false));
    assert!(x.duration_ms < 2_000, "{}", x.duration_ms);
    // The call of y returns after the stated 2 s. By then x has finished.
    assert_eq!(r.requests[1].at_ms, ms(&r.requests[0]) + 2_000);
    assert_eq!(y.started_ms, x.started_ms);
}

#[test]
fn uncalled_subagent_costs_nothing_and_loses_its_needs() {
    // The first prompt has 17 tokens.
    let r = run_with(MODEL, &scenario(TWO), "none", &Options { window: Some(15), ..as_told() });
    assert_eq!(r.status, Status::Overflow);
    for d in &r.delegation {
        assert_eq!((d.status, d.cost_usd, d.requests), (Status::NotApplicable, 0.0, 0));
    }
    assert!(r.requests.iter().all(|q| q.agent.is_none()));
    let rule = r.facts.iter().find(|f| f.fact == "rule").unwrap();
    assert_eq!((rule.request, rule.found), (None, Match::Absent));
}

#[test]
fn session_without_subagent_result_is_unfinished() {
    // The main conversation needs at most 60 tokens, x needs 16. A result of 90 is too large for y.
    let two = scenario(&TWO.replace("one secret word two", &words(90)));
    let r = run_with(MODEL, &two, "none", &Options { window: Some(80), ..as_told() });
    assert_eq!((r.summary.steps_completed, r.status), (3, Status::Overflow));
    assert!(r.error.as_deref().is_some_and(|e| e.starts_with("subagent y: ")), "{:?}", r.error);
    let statuses: Vec<Status> = r.delegation.iter().map(|d| d.status).collect();
    assert_eq!(statuses, [Status::Completed, Status::Overflow]);
}

#[test]
fn costs_of_windows_add_up() {
    let scenario = builtin::by_id("delegated-search").unwrap();
    for spec in
        "reference codex opencode claude-code aider openoxide anthropic-sdk sliding-window none"
            .split(' ')
    {
        let r = run(&scenario, spec);
        let all: Vec<&RequestRecord> = r.requests.iter().collect();
        assert!(all.iter().map(|q| q.seq).eq(0..all.len() as u64), "{spec}");
        let of = |agent: Option<&str>| -> Vec<&RequestRecord> {
            all.iter().copied().filter(|q| q.agent.as_deref() == agent).collect()
        };
        let tokens = |rows: &[&RequestRecord]| {
            let sum = |f: fn(&RequestRecord) -> u64| rows.iter().map(|q| f(q)).sum::<u64>();
            let input = sum(|q| q.input_tokens);
            (rows.len() as u64, input, sum(|q| q.output_tokens), sum(|q| q.cache_read))
        };
        let cost = |rows: &[&RequestRecord]| rows.iter().map(|q| q.cost_usd).sum::<f64>();
        let s = &r.summary;
        let found = (s.requests, s.input_tokens, s.output_tokens, s.cache_read_tokens);
        assert_eq!(found, tokens(&all), "{spec}");
        assert_eq!(s.cache_write_tokens, all.iter().map(|q| q.cache_write).sum::<u64>(), "{spec}");
        assert_eq!(s.extra_requests, all.iter().filter(|q| q.extra).count() as u64, "{spec}");
        assert!((s.cost_usd - cost(&all)).abs() < 1e-12, "{spec}: {}", s.cost_usd);
        let agents: u64 = r.delegation.iter().map(|d| d.input_tokens).sum();
        assert_eq!(s.input_tokens, tokens(&of(None)).1 + agents, "{spec}");
        for d in &r.delegation {
            let own = of(Some(&d.agent));
            assert!(!own.is_empty(), "{spec}: {}", d.agent);
            let found = (d.requests, d.input_tokens, d.output_tokens, d.cache_read_tokens);
            assert_eq!(found, tokens(&own), "{spec}");
            assert!((d.cost_usd - cost(&own)).abs() < 1e-12, "{spec}");
            // A background summary may arrive when no request waits for it.
            for q in own.iter().filter(|q| q.phase != Some(Phase::Background)) {
                assert!(q.at_ms >= d.started_ms, "{spec}");
                assert!(q.at_ms + q.latency_ms <= d.started_ms + d.duration_ms, "{spec}");
            }
        }
        assert_eq!(s.integrity_failures, r.integrity.len() as u64, "{spec}");
    }
}
