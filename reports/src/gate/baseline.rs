//! The baseline file: the gated figures of every row, small enough to be kept beside the code.

use std::path::Path;

use ctxbench_core::record::{Results, RunRecord, Status};
use serde::{Deserialize, Serialize};

use crate::json::{self, ReadError};
use crate::{pairs, view};

/// Version of the baseline file; a file of another version is refused.
pub const BASELINE_VERSION: u32 = 1;

/// What later results are held against.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// [`BASELINE_VERSION`].
    pub version: u32,
    /// Name and version of the program that measured it.
    pub generator: String,
    /// Sorted by scenario, strategy and model.
    pub rows: Vec<BaselineRow>,
}

/// The gated figures of one run; numbers are rounded to six decimals, `None` = n/a.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BaselineRow {
    /// Scenario id.
    pub scenario: String,
    /// Strategy label.
    pub strategy: String,
    /// Model name.
    pub model: String,
    /// How it ended.
    pub status: Status,
    /// Recorded steps taken.
    pub steps_completed: u64,
    /// Hard failures.
    pub integrity_failures: u64,
    /// USD.
    pub cost_usd: f64,
    /// Per cent.
    pub saved_pct: Option<f64>,
    /// Per cent.
    pub retention_pct: Option<f64>,
    /// Per cent.
    pub summary_retention_pct: Option<f64>,
    /// Ratio.
    pub prefix_stability: Option<f64>,
}

impl Baseline {
    /// The baseline of these results.
    pub fn from_results(results: &Results) -> Baseline {
        let mut runs = view::told_apart(results).into_owned().runs;
        pairs::sort_runs(&mut runs);
        Baseline { version: BASELINE_VERSION, generator: results.generator.clone(), rows: runs.iter().map(BaselineRow::of).collect() }
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("rows always serialise");
        text.push('\n');
        text
    }

    /// Parses the file; `origin` names it in errors.
    pub fn parse(text: &str, origin: &Path) -> Result<Baseline, ReadError> {
        json::versioned(text, origin, "a baseline", BASELINE_VERSION)
    }
}

impl BaselineRow {
    pub(super) fn of(run: &RunRecord) -> BaselineRow {
        let s = &run.summary;
        BaselineRow {
            scenario: run.scenario.id.clone(),
            strategy: run.strategy.label.clone(),
            model: run.model.clone(),
            status: run.status,
            steps_completed: s.steps_completed,
            integrity_failures: view::integrity(run),
            cost_usd: round(s.cost_usd),
            saved_pct: s.saved_pct.map(round),
            retention_pct: s.retention_pct.map(round),
            summary_retention_pct: s.summary_retention_pct.map(round),
            prefix_stability: s.prefix_stability.map(round),
        }
    }

    pub(super) fn key(&self) -> (&str, &str, &str) {
        (&self.scenario, &self.strategy, &self.model)
    }
}

/// Reads a baseline file.
pub fn read_baseline(path: &Path) -> Result<Baseline, ReadError> {
    Baseline::parse(&json::read_text(path)?, path)
}

/// Six decimals, so that a stored figure and a fresh one compare equal.
fn round(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use proptest::prelude::*;

    #[test]
    fn comes_back_as_written_and_other_versions_are_refused() {
        let b = Baseline::from_results(&sample::results());
        assert_eq!(Baseline::parse(&b.to_text(), Path::new("b.json")).unwrap(), b);
        let error = Baseline::parse(r#"{"version":2}"#, Path::new("b.json")).unwrap_err().to_string();
        assert!(error.contains("version 2 of a baseline, expected version 1"), "{error}");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in ".{0,200}") {
            let _ = Baseline::parse(&text, Path::new("b.json"));
        }
    }
}
