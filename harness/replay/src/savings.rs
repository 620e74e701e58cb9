//! Savings of each run against the reference; needs all finished runs.

use ctxbench_core::strategy::Standing;
use ctxbench_core::{Usage, model};
use ctxbench_reports::cache_shares;
use ctxbench_reports::record::{RequestRecord, RunRecord, Status, Summary};

/// Adds savings against the reference row of the same scenario and model. A recording saves dollars
/// only by compactions, and only with a cache like that of the reference.
pub fn with_savings(runs: Vec<RunRecord>) -> Vec<RunRecord> {
    let completed = |r: &&RunRecord| r.status == Status::Completed;
    let reference: Vec<(String, String, Summary)> = runs
        .iter()
        .filter(completed)
        .filter(|r| r.strategy.standing == Standing::Hypothetical)
        .map(|r| (r.scenario.id.clone(), r.model.clone(), r.summary.clone()))
        .collect();
    let with = |mut r: RunRecord| {
        let mut same = reference.iter().filter(|(s, m, ..)| *s == r.scenario.id && *m == r.model);
        let Some((_, _, all)) = same.next().filter(|_| completed(&&r)) else { return r };
        let is_recorded = r.strategy.standing == Standing::Recorded;
        let has_other_cache = is_recorded && cache_shares(&r.summary, all).is_some();
        if has_other_cache {
            r.summary.cost_with_cache_usd = Some(with_cache(&r.requests, all));
        }
        // A recording that lacks some counters or prices cost more than the other counters show.
        let unbilled = r.compactions.iter().any(|c| c.cost_usd.is_none())
            || is_recorded && r.requests.iter().any(RequestRecord::is_unbilled);
        if r.summary.steps_completed < r.summary.steps_total || unbilled {
            return r;
        }
        let saved = |own: f64, all: f64| (all > 0.0).then(|| 100.0 * (1.0 - own / all));
        let usd = r.summary.cost_estimate_usd.unwrap_or(r.summary.cost_usd);
        let is_of_policy = !is_recorded || r.summary.compactions > 0 && !has_other_cache;
        r.summary.saved_pct = saved(r.summary.input_tokens as f64, all.input_tokens as f64);
        r.summary.cost_saved_pct = saved(usd, all.cost_usd).filter(|_| is_of_policy);
        r
    };
    runs.into_iter().map(with).collect()
}

/// Returns the cost in USD of recorded calls if the cache had served and written the shares of their
/// prompts that it does in the reference.
fn with_cache(calls: &[RequestRecord], reference: &Summary) -> f64 {
    let part = |tokens: u64, of: u64| {
        (tokens as f64 * of as f64 / reference.input_tokens.max(1) as f64) as u64
    };
    let usd = |q: &RequestRecord| {
        let cache_read = part(q.input_tokens, reference.cache_read_tokens);
        let cache_write = part(q.input_tokens, reference.cache_write_tokens);
        let input = q.input_tokens - cache_read - cache_write;
        let usage =
            Usage { input, cache_read, cache_write, output: q.output_tokens, ..Usage::default() };
        model::priced_as(&q.model).map_or(q.cost_usd, |m| model::cost(m, &usage).total())
    };
    calls.iter().map(usd).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_reports::record::StrategyInfo;

    fn row(standing: Standing, summary: Summary) -> RunRecord {
        let strategy = StrategyInfo { standing, ..StrategyInfo::default() };
        RunRecord { strategy, summary, status: Status::Completed, ..RunRecord::default() }
    }

    fn test_summary(tokens: u64, usd: f64) -> Summary {
        Summary {
            steps_completed: 4,
            steps_total: 4,
            compactions: 1,
            input_tokens: tokens,
            cost_usd: usd,
            ..Summary::default()
        }
    }

    fn saved(recorded: Summary) -> (Option<f64>, Option<f64>) {
        let reference = row(Standing::Hypothetical, test_summary(1_000, 10.0));
        let runs = with_savings(vec![reference, row(Standing::Recorded, recorded)]);
        (runs[1].summary.saved_pct, runs[1].summary.cost_saved_pct)
    }

    #[test]
    fn a_recording_is_held_by_its_likely_dollars_and_only_whole() {
        assert_eq!(saved(test_summary(750, 4.0)), (Some(25.0), Some(60.0)));
        let stubs = Summary { cost_estimate_usd: Some(5.0), ..test_summary(750, 4.0) };
        assert_eq!(saved(stubs), (Some(25.0), Some(50.0)));
        let lacking = Summary { steps_completed: 3, ..test_summary(750, 4.0) };
        assert_eq!(saved(lacking), (None, None));
        // Nothing was compacted, or another cache served the prompts.
        let idle = Summary { compactions: 0, ..test_summary(750, 4.0) };
        assert_eq!(saved(idle), (Some(25.0), None));
        let cached = Summary { cache_read_tokens: 200, ..test_summary(750, 4.0) };
        assert_eq!(saved(cached), (Some(25.0), None));
    }

    #[test]
    fn another_cache_has_its_price() {
        let call = RequestRecord {
            model: "claude-sonnet-4-6".into(),
            input_tokens: 100_000,
            output_tokens: 1_000,
            ..RequestRecord::default()
        };
        let reference = Summary {
            input_tokens: 1_000,
            cache_read_tokens: 900,
            cache_write_tokens: 80,
            ..Summary::default()
        };
        // 90,000 read at 0.30, 8,000 written at 3.75, 2,000 at 3, and 1,000 of output at 15.
        let usd = 0.027 + 0.03 + 0.006 + 0.015;
        assert!((with_cache(&[call], &reference) - usd).abs() < 1e-9);
    }
}
