//! Changes that invalidate the prompt cache.

use ctxbench_core::request::Purpose;
use ctxbench_reports::record::{RequestRecord, RunRecord};
use ctxbench_scenarios::builtin;

use super::sessions::Talk;
use super::{Figure, Measure, Unit, Verdict, saved, single};
use crate::common::replayed::{as_told, run_with};

pub const MUTATED: Figure = Figure {
    by: "DeepSeek-Reasonix, pull request 238, 2026-05-05",
    link: "https://github.com/esengine/DeepSeek-Reasonix/pull/238",
    claim: "cutting a message in the middle made a warm prompt of 4,542 tokens 51 % smaller and \
            about 90 % dearer: of the appended prompt 98.6 % came from the cache, of the cut one \
            nothing.",
    conditions: "DeepSeek's API, three requests; 0.07 USD per million tokens read from the cache, \
                 0.27 for others. With the printed counts (4,480 of 4,542 tokens read, then 0 of \
                 2,243) the cut prompt costs 83 % more, not 90.",
    tried: "a first prompt of less than the smallest unit of DeepSeek's cache, two results that \
            make it 4,535 tokens, and a small one after which `observation-masking:keep=2` hides \
            the first; deepseek-v4-flash, priced as in the publication.",
    trial: mutated,
};

fn mutated() -> Vec<Measure> {
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
    vec![
        Measure::new(
            Unit::Saved,
            "smaller prompt",
            "51 %",
            (50.5, 51.5),
            single(saved(cut.input_tokens as f64, appended.input_tokens as f64)),
        ),
        Measure::new(
            Unit::Share,
            "read from the cache, appended",
            "98.6 %",
            (98.55, 98.65),
            single(read(&appended)),
        )
        .but(
            Verdict::Differs,
            "hits came in units of 64 tokens then; today's documentation has units that end \
                  where prompts and replies do, and ours follows it",
        ),
        Measure::new(
            Unit::Share,
            "read from the cache, cut",
            "0.0 %",
            (0.0, 0.05),
            single(read(&cut)),
        ),
        Measure::new(
            Unit::Saved,
            "saved by cutting, at the published prices",
            "−90 % (−83 by its counts)",
            (-90.5, -82.5),
            single(saved(dollars(&cut), dollars(&appended))),
        ),
    ]
}

pub const UNREAD_SUMMARIES: Figure = Figure {
    by: "OpenCode, issue 48542, 2026-09-11",
    link: "https://github.com/anomalyco/opencode/issues/48542",
    claim: "OpenCode's requests for summaries write their prompt to Anthropic's cache and read \
            nothing from it: 1,278,055 tokens written and 0 read in 70 compactions.",
    conditions: "seven days of one user, claude-haiku-4-5 for summaries.",
    tried: "the built-in scenario `ten-compactions` with `opencode` and claude-haiku-4-5.",
    trial: unread,
};

fn unread() -> Vec<Measure> {
    let session = builtin::by_id("ten-compactions").unwrap();
    let record = run_with("claude-haiku-4-5", &session, "opencode", &as_told());
    let summaries = record.requests.iter().filter(|q| q.purpose == Purpose::Summary);
    let (mut count, mut read, mut written) = (0_u64, 0, 0);
    for q in summaries {
        count += 1;
        read += q.cache_read;
        written += q.cache_write;
    }
    assert!(count >= 5, "{count} summaries");
    let some = (1.0, f64::INFINITY);
    vec![
        Measure::exact("tokens read by requests for summaries", "0", 0.0, read as f64),
        Measure::new(Unit::Count, "tokens written by them", "some", some, single(written as f64)),
    ]
}
