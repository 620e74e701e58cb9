//! Bencher Metric Format: one object, benchmark name → measure → value.

use std::collections::BTreeMap;

use ctxbench_core::record::{Results, RunRecord, Status};
use serde::Serialize;

use crate::formats::{Artifact, Format, ReportError};
use crate::gate::column;
use crate::view;

/// The format for `report --format bmf`.
pub(crate) const FORMAT: Format = Format { name: "bmf", about: "Bencher Metric Format, for `bencher run --adapter json`", render };

/// Columns that mean something only for a run that finished.
const FINISHED: [&str; 9] = [
    "input_tokens",
    "task_tokens",
    "peak_context_tokens",
    "saved_pct",
    "cost_usd",
    "prefix_stability",
    "cache_read_ratio",
    "blocked_ms",
    "summary_retention_pct",
];
/// Columns of every run.
const ALWAYS: [&str; 3] = ["steps_completed", "integrity_failures", "retention_pct"];
/// Longest name that Bencher takes, bytes.
const NAME: usize = 1024;

#[derive(Serialize)]
struct Measure {
    value: f64,
}

fn render(results: &Results) -> Result<Vec<Artifact>, ReportError> {
    let results = &*view::told_apart(results);
    let all: BTreeMap<String, BTreeMap<String, Measure>> =
        results.runs.iter().filter(|r| r.status != Status::NotApplicable).map(|r| (name(r, results), measures(r))).collect();
    let mut text = serde_json::to_string_pretty(&all).expect("strings and numbers always serialise");
    text.push('\n');
    Ok(vec![Artifact { file: "bmf.json".into(), text }])
}

/// `scenario/strategy`, with the model when there are several.
pub(crate) fn name(run: &RunRecord, results: &Results) -> String {
    let mut name = format!("{}/{}", run.scenario.id, run.strategy.label);
    if view::models(results).len() > 1 {
        name.push_str(&format!("/{}", run.model));
    }
    let end = (0..=name.len().min(NAME)).rev().find(|i| name.is_char_boundary(*i)).unwrap_or(0);
    name.truncate(end);
    name
}

fn measures(run: &RunRecord) -> BTreeMap<String, Measure> {
    let finished: &[&str] = if run.status == Status::Completed { &FINISHED } else { &[] };
    ALWAYS
        .iter()
        .chain(finished)
        .filter_map(|c| column(run, c).filter(|x| x.is_finite()).map(|value| (c.replace('_', "-"), Measure { value })))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn shape_and_omissions() {
        let text = render(&sample::results()).unwrap().remove(0).text;
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(json["login-bug/codex"]["cost-usd"]["value"].is_f64());
        assert!(json["login-bug/codex"]["trigger-error-tokens"].is_null());
        assert!(json["login-bug/none"]["cost-usd"].is_null(), "a run that died is not cheap");
        assert!(json["login-bug/none"]["steps-completed"]["value"].is_number());
    }
}
