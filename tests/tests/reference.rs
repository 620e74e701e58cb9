//! Hand calculation of the 100 % row: an append-only session has a closed formula.

use ctxbench_core::block::total_tokens;
use ctxbench_core::host::Event;
use ctxbench_core::model;
use ctxbench_core::model::Counting;
use ctxbench_core::tokens::o200k;
use ctxbench_replay::{FullReplay, with_savings};
use ctxbench_reports::record::{RunRecord, Status};
use ctxbench_scenarios::{FaultOn, builtin};
use ctxbench_session::{Entry, Session};

use crate::common::replayed;

fn run(scenario: &str, strategy: &str) -> RunRecord {
    run_in_full(scenario, strategy).replayed.record
}

fn run_in_full(scenario: &str, strategy: &str) -> FullReplay {
    let scenario = builtin::by_id(scenario).unwrap();
    replayed::run_in_full(replayed::MODEL, &scenario, strategy, &replayed::as_told())
}

/// Returns the sizes of prompt and reply of every recorded reply, directly from the session: o200k
/// of each text, of a call's name and arguments, and 4 for every block.
fn sizes(session: &Session) -> Vec<(u64, u64)> {
    let block = |text: &str| o200k(text) + 4;
    let (mut prompt, mut out) = (0, Vec::new());
    for e in &session.entries {
        match e {
            Entry::System { text, .. } => prompt += block(text),
            Entry::Tools { definitions, .. } => {
                prompt += o200k(&serde_json::to_string(definitions).unwrap())
            }
            Entry::User(u) => prompt += block(u.text.as_deref().unwrap()),
            Entry::Tool(t) => prompt += block(t.output.as_deref().unwrap()),
            Entry::Assistant(a) => {
                let text = a.text.as_deref().map_or(0, block);
                let calls: u64 = a.calls.iter().map(|c| block(&c.arguments) + o200k(&c.name)).sum();
                out.push((prompt, text + calls));
                prompt += text + calls;
            }
            _ => {}
        }
    }
    out
}

#[test]
fn reference_cost_matches_closed_formula() {
    let session = builtin::by_id("login-bug").unwrap().session;
    let sizes = sizes(&session);
    // Breakpoints are at the end of every request, so each reads the prefix of the previous one
    // and writes the rest. Below 1,024 tokens nothing is cached (claude-sonnet-4-6). USD per
    // million: 3 in, 3.75 write, 0.30 read, 15 out.
    let cached = |n: u64| if n >= 1_024 { n } else { 0 };
    let mut usd = 0.0;
    let mut before = 0;
    for &(prompt, reply) in &sizes {
        let read = cached(before);
        let write = cached(prompt) - read;
        let input = prompt - read - write;
        usd +=
            (input as f64 * 3.0 + write as f64 * 3.75 + read as f64 * 0.30 + reply as f64 * 15.0)
                / 1e6;
        before = prompt;
    }
    let record = run("login-bug", "reference");
    let input: u64 = sizes.iter().map(|(p, _)| p).sum();
    assert_eq!(record.summary.input_tokens, input);
    assert_eq!(record.summary.output_tokens, sizes.iter().map(|(_, r)| r).sum::<u64>());
    assert_eq!(record.summary.peak_context_tokens, sizes.last().unwrap().0);
    let billed = record.summary.cost_usd;
    assert!((billed - usd).abs() < 1e-9, "{billed} and by hand {usd}");
}

#[test]
fn reference_saves_nothing_and_keeps_everything() {
    for scenario in builtin::all().unwrap() {
        let id = scenario.id.as_str();
        let FullReplay { replayed, events, .. } = run_in_full(id, "reference");
        let runs = with_savings(vec![replayed.record]);
        let r = &runs[0];
        assert_eq!(r.status, Status::Completed, "{id}");
        let tokens = |blocks: &[_]| total_tokens(&Counting::O200K, blocks);
        // A rewind removes later messages from every context.
        let back = events.iter().any(|e| match &e.event {
            Event::Rewound { before, after, .. } => tokens(after) < tokens(before),
            _ => false,
        });
        let stability = r.summary.prefix_stability;
        assert_eq!(stability == Some(1.0), !back, "{id}: {stability:?}");
        assert_eq!(r.summary.saved_pct, Some(0.0), "{id}");
        assert_eq!(r.pair_recall_pct(None), Some(100.0), "{id}");
        // No strategy regains facts that a subagent's result omits.
        let undelivered = r.facts.iter().filter(|f| f.undelivered).count() as u64;
        let lost = r.delegation.iter().map(|d| d.needed_outside - d.kept_outside).sum::<u64>();
        assert_eq!(undelivered, lost, "{id}");
        assert_eq!(undelivered > 0, id == "delegated-search", "{id}");
        assert_eq!(r.summary.compactions, 0, "{id}");
        if !scenario.faults.iter().any(|f| f.on == FaultOn::Sample) {
            assert_eq!((r.summary.integrity_failures, r.summary.extra_requests), (0, 0), "{id}");
        }
    }
}

#[test]
fn keep_nothing_retains_at_most_ten_per_cent() {
    for id in builtin::IDS.iter() {
        let r = run(id, "keep-nothing");
        assert!(r.pair_recall_pct(None).unwrap() <= 10.0, "{id}: {:?}", r.pair_recall_pct(None));
    }
}

#[test]
fn costs_and_tokens_add_up_over_requests() {
    for strategy in ["codex", "opencode", "claude-code", "aider", "openoxide", "anthropic-sdk"] {
        let r = run("login-bug-tight", strategy);
        let p = &model::find("claude-sonnet-4-6").unwrap().prices;
        let weak = &model::find("claude-haiku-4-5").unwrap().prices;
        let mut usd = 0.0;
        for q in &r.requests {
            let p = if &*q.model == "claude-haiku-4-5" { weak } else { p };
            let fresh = q.input_tokens - q.cache_read - q.cache_write;
            usd += (fresh as f64 * p.input
                + q.cache_write as f64 * p.write_5m
                + q.cache_read as f64 * p.read
                + q.output_tokens as f64 * p.output)
                / 1e6;
        }
        let billed = r.summary.cost_usd;
        assert!((billed - usd).abs() < 1e-9, "{strategy}: {billed} and summed {usd}");
        assert_eq!(r.summary.input_tokens, r.requests.iter().map(|q| q.input_tokens).sum::<u64>());
    }
}
