//! Changes that invalidate the prompt cache.

use ctxbench_reports::record::{RequestRecord, RunRecord};
use ctxbench_scenarios::builtin;

use super::sessions::Talk;
use super::{Span, saved, single};
use crate::common::replayed::{as_told, run_with, summaries};

pub fn mutated() -> Vec<Span> {
    let talk = Talk::new("cut").user(30).step(40, &[2_340, 2_125]).step(20, &[10]).answer(20);
    let session = talk.scenario();
    let last = |strategy: &str| -> RequestRecord {
        let record: RunRecord = run_with("deepseek-v4-flash", &session, strategy, &as_told());
        assert_eq!(record.requests[1].input_tokens, 4_535);
        record.requests[2].clone()
    };
    let (appended, cut) = (last("reference"), last("observation-masking:keep=2"));
    let read = |q: &RequestRecord| 100.0 * q.cache_read as f64 / q.input_tokens as f64;
    let dollars = |q: &RequestRecord| {
        0.07 * q.cache_read as f64 + 0.27 * (q.input_tokens - q.cache_read) as f64
    };
    let smaller = saved(cut.input_tokens as f64, appended.input_tokens as f64);
    let cheaper = saved(dollars(&cut), dollars(&appended));
    [smaller, read(&appended), read(&cut), cheaper].map(single).to_vec()
}

pub fn unread() -> Vec<Span> {
    let session = builtin::by_id("ten-compactions").unwrap();
    let record = run_with("claude-haiku-4-5", &session, "opencode", &as_told());
    let all = summaries(&record);
    assert!(all.len() >= 5, "{} summaries", all.len());
    let read: u64 = all.iter().map(|q| q.cache_read).sum();
    let written: u64 = all.iter().map(|q| q.cache_write).sum();
    vec![single(read as f64), single(written as f64)]
}
