//! What each run saves against the reference, which takes all finished runs.

use ctxbench_core::strategy::Standing;
use ctxbench_reports::record::{RunRecord, Status, Summary};

/// The runs with savings against the reference row of the same scenario and model.
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
        let saved = |own: f64, all: f64| (all > 0.0).then(|| 100.0 * (1.0 - own / all));
        let summary = Summary {
            saved_pct: saved(r.summary.input_tokens as f64, *tokens as f64),
            cost_saved_pct: saved(r.summary.cost_usd, *cost),
            ..r.summary
        };
        RunRecord { summary, ..r }
    };
    runs.into_iter().map(with).collect()
}
