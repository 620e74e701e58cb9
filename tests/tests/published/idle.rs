//! Compacting when the prompt cache has expired anyway.

use ctxbench_replay::Options;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::Scenario;

use super::sessions::Talk;
use super::{Span, saved, single};
use crate::common::replayed::{as_told, run, run_with, samples};

/// Longer than the short lifetime of a cache entry, but shorter than the long one.
const PAUSE_MS: u64 = 600_000;

fn paused() -> Scenario {
    let steps = |talk: Talk| (0..20).fold(talk, |talk, _| talk.step(100, &[3_000])).answer(100);
    let talk = steps(Talk::new("paused").tools(2_000).user(500)).idle(PAUSE_MS);
    steps(talk.user(500)).scenario()
}

fn chat() -> Scenario {
    let talk = Talk::new("chat").system(20);
    (0..600).fold(talk, |talk, _| talk.user(50).answer(50)).scenario()
}

/// Returns how much smaller the prompt must be, in percent, for rewriting it to cost no more than
/// reading the whole prompt from the cache.
fn break_even() -> f64 {
    let options = Options { window: Some(5_000), ..as_told() };
    let model = "claude-opus-4-6";
    let whole = run_with(model, &chat(), "reference", &as_told());
    let rewritten = run_with(model, &chat(), "sliding-window:high=0.9,low=0.9", &options);
    let (whole, rewritten) = (samples(&whole), samples(&rewritten));
    assert_eq!(whole.len(), rewritten.len());
    // Skips the turns before the first dropped turn.
    let both = whole.iter().zip(&rewritten);
    let mut both = both.skip_while(|(w, r)| w.context_tokens == r.context_tokens);
    let at = both.find(|(w, r)| {
        assert_eq!(r.cache_read, 0, "it rewrites everything");
        r.cost_usd <= w.cost_usd
    });
    let (w, r) = at.expect("a turn from which on it is cheaper");
    saved(r.context_tokens as f64, w.context_tokens as f64)
}

/// Returns the tokens that the first turn after the pause reads from the cache.
fn read_after_pause(record: &RunRecord) -> f64 {
    let first = samples(record).into_iter().find(|q| q.at_ms >= PAUSE_MS);
    first.unwrap().cache_read as f64
}

pub fn idle() -> Vec<Span> {
    let session = paused();
    let [kept, cold, kept_warm, warm] = [
        "microcompact=off,cache_ttl=5m",
        "microcompact=time,micro_gap_ms=300000,cache_ttl=5m",
        "microcompact=off,cache_ttl=1h",
        "microcompact=time,micro_gap_ms=300000,cache_ttl=1h",
    ]
    .map(|settings| run(&session, &format!("claude-code:{settings}")));
    assert_eq!([&kept, &cold, &kept_warm, &warm].map(|r| r.summary.compactions), [0, 1, 0, 1]);
    let lost = |without, with| read_after_pause(without) - read_after_pause(with);
    let some_lost = lost(&kept_warm, &warm);
    let dollars = saved(cold.summary.cost_usd, kept.summary.cost_usd);
    [lost(&kept, &cold), some_lost, dollars, break_even()].map(single).to_vec()
}
