//! The baseline file: the gated figures of every row, small enough to keep in the repository.

use std::collections::BTreeMap;
use std::path::Path;

use crate::record::yardstick::Yardstick;
use crate::record::{Results, RunRecord, Status};
use ctxbench_util::nearest;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::ReadError;
use crate::json;
use crate::metrics;
use crate::{row_cache, view};

/// Version of the baseline file; a file of another version is refused.
pub const BASELINE_VERSION: u32 = 1;

/// Figures that later results are compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Version of the format.
    pub version: u32,
    /// Name and version of the program that measured it.
    pub generator: String,
    /// All assumptions of the measurement.
    #[serde(default)]
    pub yardstick: Yardstick,
    /// Rows, sorted by scenario, strategy and model.
    pub rows: Vec<BaselineRow>,
}

/// The gated figures of one run; numbers are rounded to six decimals, `None` = n/a.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BaselineRow {
    pub scenario: String,
    pub strategy: String,
    pub model: String,
    /// Hash of the session with its facts.
    pub content: String,
    /// Context window, tokens.
    pub window: u64,
    pub status: Status,
    /// Number of recorded steps that were taken.
    pub steps_completed: u64,
    /// Recorded steps of the session; `None` = it was not begun.
    #[serde(default)]
    pub steps_total: Option<u64>,
    pub integrity_failures: u64,
    /// Stored metrics by column. A value that is n/a is `None`.
    #[serde(flatten, serialize_with = "in_order", deserialize_with = "stored_figures")]
    pub figures: BTreeMap<String, Option<f64>>,
}

impl Baseline {
    pub fn from_results(results: &Results) -> Baseline {
        let mut runs = view::told_apart(results).into_owned().runs;
        row_cache::sort_runs(&mut runs);
        Baseline {
            version: BASELINE_VERSION,
            generator: results.generator.clone(),
            yardstick: results.assumptions.clone(),
            rows: runs.iter().map(BaselineRow::from_run).collect(),
        }
    }

    pub fn to_text(&self) -> String {
        json::pretty(self)
    }

    /// Parses the file; `origin` names it in errors.
    pub fn parse(text: &str, origin: &Path) -> Result<Baseline, ReadError> {
        json::versioned(text, origin, "a baseline", BASELINE_VERSION)
    }
}

impl BaselineRow {
    /// Keys of a row in the file, without the figures.
    const FIELDS: [&str; 9] = [
        "scenario",
        "strategy",
        "model",
        "content",
        "window",
        "status",
        "steps_completed",
        "steps_total",
        "integrity_failures",
    ];

    pub(super) fn from_run(run: &RunRecord) -> BaselineRow {
        let begun = run.summary.requests > 0 || run.summary.steps_total > 0;
        BaselineRow {
            scenario: run.scenario.id.clone(),
            strategy: run.strategy.label.clone(),
            model: run.model.clone(),
            content: run.scenario.content.clone(),
            window: run.window,
            status: run.status,
            steps_completed: run.summary.steps_completed,
            steps_total: begun.then_some(run.summary.steps_total),
            integrity_failures: run.broken_rules(),
            figures: metrics::sorted_columns(|m| &m.gated)
                .into_iter()
                .map(|(m, _)| (m.column, m.measured(run).number().filter(|x| x.is_finite())))
                .map(|(column, x)| (column.to_string(), x.map(round)))
                .collect(),
        }
    }

    pub(super) fn key(&self) -> (&str, &str, &str) {
        (&self.scenario, &self.strategy, &self.model)
    }
}

/// Writes the figures in the order of the table of metrics.
fn in_order<S: Serializer>(
    figures: &BTreeMap<String, Option<f64>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    let stored = metrics::sorted_columns(|m| &m.gated);
    to.collect_map(stored.iter().map(|(m, _)| (m.column, figures.get(m.column).copied().flatten())))
}

/// Rejects unknown keys: a misspelled figure would be ignored and would no longer be gated.
fn stored_figures<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, Option<f64>>, D::Error> {
    let figures = BTreeMap::<String, Option<f64>>::deserialize(from)?;
    let stored = metrics::sorted_columns(|m| &m.gated);
    if let Some(other) = figures.keys().find(|k| stored.iter().all(|(m, _)| m.column != *k)) {
        let columns = stored.iter().map(|(m, _)| m.column);
        let known: Vec<&str> = BaselineRow::FIELDS.into_iter().chain(columns).collect();
        let hint = nearest::hint(other, &known);
        return Err(D::Error::custom(format!("a row has no key `{other}`; {hint}")));
    }
    Ok(figures)
}

pub fn read_baseline(path: &Path) -> Result<Baseline, ReadError> {
    Baseline::parse(&json::read_text(path)?, path)
}

/// Rounds to six decimals, so that stored and new figures compare equal.
fn round(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing;
    use proptest::prelude::*;

    #[test]
    fn comes_back_as_written_and_other_versions_are_refused() {
        let b = Baseline::from_results(&testing::results());
        assert_eq!(Baseline::parse(&b.to_text(), Path::new("b.json")).unwrap(), b);
        let error =
            Baseline::parse(r#"{"version":2}"#, Path::new("b.json")).unwrap_err().to_string();
        assert!(error.contains("version 2 of a baseline, expected version 1"), "{error}");
    }

    #[test]
    fn a_key_that_no_row_has_is_refused_with_the_nearest() {
        let text = Baseline::from_results(&testing::results()).to_text();
        let parse = |from: &str, to: &str| {
            let other = text.replacen(&format!("\"{from}\": "), &format!("\"{to}\": "), 1);
            Baseline::parse(&other, Path::new("b.json")).unwrap_err().to_string()
        };
        for (column, wrong) in [("saved_pct", "saved_pctt"), ("steps_total", "step_total")] {
            let error = parse(column, wrong);
            let said = format!("a row has no key `{wrong}`; did you mean {column}");
            assert!(error.starts_with("b.json, line ") && error.contains(&said), "{error}");
        }
        assert!(parse("yardstick", "yardstik").contains("`yardstik`"));
        // Every written key is known to the reader.
        let row = serde_json::to_value(BaselineRow::default()).unwrap();
        let figures = metrics::sorted_columns(|m| &m.gated).into_iter().map(|(m, _)| m.column);
        let known: BTreeSet<&str> = BaselineRow::FIELDS.into_iter().chain(figures).collect();
        let written = row.as_object().unwrap().keys().map(String::as_str);
        assert_eq!(written.collect::<BTreeSet<_>>(), known);
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in ".{0,200}") {
            let _ = Baseline::parse(&text, Path::new("b.json"));
        }
    }
}
