//! Compacting when the prompt cache has expired anyway.

use ctxbench_core::request::Purpose;
use ctxbench_replay::Options;
use ctxbench_reports::record::{RequestRecord, RunRecord};
use ctxbench_scenarios::Scenario;

use super::sessions::Talk;
use super::{Figure, Measure, Unit, saved, single};
use crate::common::replayed::{as_told, run, run_with};

pub const IDLE: Figure = Figure {
    by: "Quotient Labs, Benchmarking Context Optimization, 2026-06-16",
    link: "https://www.quotientlabs.com/blog/benchmarking-context-optimization",
    claim: "a compaction after more than five idle minutes costs no cache misses, since the cache has expired, and saves dollars from the next message on; rewriting the context at every message must make it 92 % smaller to save anything.",
    conditions: "Claude Code with a cache lifetime of 300 s, Opus prices: 6.25 USD per million \
                 tokens written, 0.50 read. Their compaction does not call the model.",
    tried: "a session with 20 results of 3,000 tokens, a pause of ten minutes, and 20 more. \
            `claude-code:microcompact=time,micro_gap_ms=300000` clears old results after such a \
            pause without asking a model; with `cache_ttl=1h` the cache still lives when it does. \
            For the second claim 600 turns of 100 tokens, claude-opus-4-6: `sliding-window` in a \
            window of 5,000 tokens drops the oldest turn at each message once it is full, and \
            rewrites everything.",
    trial: idle,
};

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

/// Returns the requests of the turns.
fn turns(record: &RunRecord) -> Vec<&RequestRecord> {
    record.requests.iter().filter(|q| q.purpose == Purpose::Sample).collect()
}

/// Returns how much smaller the prompt must be, in percent, for rewriting it to cost no more than
/// reading the whole prompt from the cache.
fn break_even() -> f64 {
    let options = Options { window: Some(5_000), ..as_told() };
    let model = "claude-opus-4-6";
    let whole = run_with(model, &chat(), "reference", &as_told());
    let rewritten = run_with(model, &chat(), "sliding-window:high=0.9,low=0.9", &options);
    let (whole, rewritten) = (turns(&whole), turns(&rewritten));
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
    let first = turns(record).into_iter().find(|q| q.at_ms >= PAUSE_MS);
    first.unwrap().cache_read as f64
}

fn idle() -> Vec<Measure> {
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
    vec![
        Measure::exact(
            "tokens no longer read from the cache after the pause, cache expired",
            "0",
            0.0,
            lost(&kept, &cold),
        ),
        Measure::new(
            Unit::Count,
            "the same, cache alive",
            "some",
            (1.0, f64::INFINITY),
            single(lost(&kept_warm, &warm)),
        ),
        Measure::new(
            Unit::Saved,
            "dollars saved by compacting in the pause",
            "some",
            (f64::MIN_POSITIVE, 100.0),
            single(saved(cold.summary.cost_usd, kept.summary.cost_usd)),
        ),
        Measure::new(
            Unit::Saved,
            "smaller prompt at which rewriting each time breaks even",
            "92 %",
            (91.5, 92.5),
            single(break_even()),
        ),
    ]
}
