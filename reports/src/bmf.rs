//! Bencher Metric Format: one object, benchmark name → measure → value.

use std::collections::BTreeMap;

use crate::record::{Results, RunRecord, Status};
use serde::Serialize;

use crate::metrics::{METRICS, Metric};
use crate::{json, view};

/// Maximum length of a name in Bencher, bytes.
const NAME: usize = 1024;

#[derive(Serialize)]
struct BmfMeasure {
    value: f64,
}

pub(crate) fn text(results: &Results) -> String {
    let results = &*view::told_apart(results);
    let all: BTreeMap<String, BTreeMap<String, BmfMeasure>> = results
        .runs
        .iter()
        .filter(|r| r.status != Status::NotApplicable)
        .map(|r| (name(r, results), measures(r)))
        .collect();
    json::pretty(&all)
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

fn measures(run: &RunRecord) -> BTreeMap<String, BmfMeasure> {
    let measure = |m: &Metric| {
        m.bmf.filter(|w| w.includes(run))?;
        Some((m.column.replace('_', "-"), BmfMeasure { value: m.value(run)? }))
    };
    METRICS.iter().filter_map(measure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn shape_and_omissions() {
        let text = text(&testing::results());
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(json["login-bug/codex"]["cost-usd"]["value"].is_f64());
        assert!(json["login-bug/codex"]["trigger-error-tokens"].is_null());
        assert!(json["login-bug/none"]["cost-usd"].is_null(), "a run that died is not cheap");
        assert!(json["login-bug/none"]["steps-completed"]["value"].is_number());
    }
}
