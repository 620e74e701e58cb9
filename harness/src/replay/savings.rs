//! Savings of each run against the reference; needs all finished runs.

use ctxbench_core::strategy::Standing;
use ctxbench_reports::record::{RequestRecord, RunRecord, Status, Summary};

/// Adds savings against the reference row of the same scenario and model.
pub fn with_savings(runs: Vec<RunRecord>) -> Vec<RunRecord> {
    let completed = |r: &&RunRecord| r.status == Status::Completed;
    let reference: Vec<(String, String, u64, f64)> = runs
        .iter()
        .filter(completed)
        .filter(|r| r.strategy.standing == Standing::Hypothetical)
        .map(|r| {
            (r.scenario.id.clone(), r.model.clone(), r.summary.input_tokens, r.summary.cost_usd)
        })
        .collect();
    let with = |r: RunRecord| {
        let mut same = reference.iter().filter(|(s, m, ..)| *s == r.scenario.id && *m == r.model);
        let Some((_, _, tokens, cost)) = same.next().filter(|_| completed(&&r)) else { return r };
        // A recording that lacks some counters cost more than the other counters show.
        let unbilled = r.compactions.iter().any(|c| c.cost_usd.is_none())
            || r.strategy.standing == Standing::Recorded
                && r.requests.iter().any(RequestRecord::is_billed_elsewhere);
        if r.summary.steps_completed < r.summary.steps_total || unbilled {
            return r;
        }
        let saved = |own: f64, all: f64| (all > 0.0).then(|| 100.0 * (1.0 - own / all));
        let usd = r.summary.cost_estimate_usd.unwrap_or(r.summary.cost_usd);
        let summary = Summary {
            saved_pct: saved(r.summary.input_tokens as f64, *tokens as f64),
            cost_saved_pct: saved(usd, *cost),
            ..r.summary
        };
        RunRecord { summary, ..r }
    };
    runs.into_iter().map(with).collect()
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
    }
}
