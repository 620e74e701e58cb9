//! Old observations hidden by the client.

use std::path::Path;

use ctxbench_core::model;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::{Scenario, load_path};

use super::sessions::Talk;
use super::{Span, saved, span};
use crate::common::replayed::{MODEL, run};

/// Returns the sessions of a file in `tests/data/trajectories`.
fn trajectories(name: &str) -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/trajectories");
    load_path(&folder.join(name)).unwrap().scenarios
}

pub fn recorded() -> Vec<Span> {
    let sessions = trajectories("ctf__web__i_got_id_demo.traj.gz")
        .into_iter()
        .chain(trajectories("multi_swe_bench-examples-output.jsonl.gz"));
    let (mut short, mut long, mut cached) = (Vec::new(), Vec::new(), Vec::new());
    for session in sessions {
        let [raw, masked] = ["reference", "observation-masking"].map(|spec| run(&session, spec));
        let turns = raw.summary.steps_completed;
        let without = if turns > 40 { &mut long } else { &mut short };
        without.push(saved(uncached(&masked), uncached(&raw)));
        cached.push(saved(masked.summary.cost_usd, raw.summary.cost_usd));
    }
    vec![span(&short), span(&long), span(&cached)]
}

fn issue(turns: usize) -> Scenario {
    let talk = Talk::new("swe-bench").system(1_500).user(1_500);
    (0..turns).fold(talk, |talk, _| talk.step(160, &[840])).answer(160).scenario()
}

/// Returns the cost without a cache in USD.
fn uncached(record: &RunRecord) -> f64 {
    let prices = &model::find(MODEL).unwrap().prices;
    let (input, output) = (record.summary.input_tokens, record.summary.output_tokens);
    (input as f64 * prices.input + output as f64 * prices.output) / 1e6
}

pub fn swe_bench() -> Vec<Span> {
    let mut without = Vec::new();
    let mut ends = Vec::new();
    let mut frontier = Vec::new();
    for session in [30, 60, 100].map(issue) {
        let raw = run(&session, "reference");
        let [a, b] = ["ends", "frontier"]
            .map(|places| run(&session, &format!("observation-masking:breakpoints={places}")));
        without.push(saved(uncached(&a), uncached(&raw)));
        ends.push(saved(a.summary.cost_usd, raw.summary.cost_usd));
        frontier.push(saved(b.summary.cost_usd, raw.summary.cost_usd));
    }
    vec![span(&without), span(&ends), span(&frontier)]
}
