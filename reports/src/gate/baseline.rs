//! The baseline file: the gated figures of every row, small enough to keep in the repository.

use std::collections::BTreeMap;
use std::path::Path;

use crate::record::yardstick::Yardstick;
use crate::record::{Results, RunRecord, Status};
use ctxbench_core::tokens::content_hash;
use serde::{Deserialize, Serialize};

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
    /// Hash of the file without it; empty in memory. A file that was edited is refused.
    #[serde(default)]
    checksum: String,
    /// All assumptions of the measurement.
    pub yardstick: Yardstick,
    /// Rows, sorted by scenario, strategy and model.
    pub rows: Vec<BaselineRow>,
}

/// The gated figures of one run; numbers are rounded to six decimals, `None` = n/a.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BaselineRow {
    pub scenario: String,
    pub strategy: String,
    /// The command, or the name and version of the modelled product, whatever the label.
    #[serde(default)]
    pub program: String,
    pub model: String,
    /// Hash of the session with its facts.
    pub content: String,
    /// Context window, tokens.
    pub window: u64,
    pub status: Status,
    /// Number of recorded steps that were taken.
    pub steps_completed: u64,
    /// Recorded steps of the session; `None` = it was not begun.
    pub steps_total: Option<u64>,
    pub integrity_failures: u64,
    /// Stored metrics by column. A value that is n/a is `None`.
    #[serde(flatten)]
    pub figures: BTreeMap<String, Option<f64>>,
}

impl Baseline {
    pub fn from_results(results: &Results) -> Baseline {
        let mut runs = view::told_apart(results).into_owned().runs;
        row_cache::sort_runs(&mut runs);
        Baseline {
            version: BASELINE_VERSION,
            generator: results.generator.clone(),
            checksum: String::new(),
            yardstick: results.assumptions.clone(),
            rows: runs.iter().map(BaselineRow::from_run).collect(),
        }
    }

    pub fn to_text(&self) -> String {
        let text = json::pretty(self);
        let sum = format!(r#""checksum": "{}""#, checksum(&text));
        text.replacen(r#""checksum": """#, &sum, 1)
    }

    /// Parses the file; `origin` names it in errors. Fails if the file is not as it was written.
    pub fn parse(text: &str, origin: &Path) -> Result<Baseline, ReadError> {
        let mut read: Baseline = json::versioned(text, origin, "a baseline", BASELINE_VERSION)?;
        let sum = std::mem::take(&mut read.checksum);
        let is_as_written = checksum(&text.replacen(&sum, "", 1)) == sum;
        is_as_written.then_some(read).ok_or_else(|| ReadError::Edited { path: origin.into() })
    }
}

/// Returns a hash of the lines of a text, whatever their ends.
fn checksum(text: &str) -> String {
    format!("{:016x}", content_hash(text.lines().collect::<String>().as_bytes()))
}

impl BaselineRow {
    pub(super) fn from_run(run: &RunRecord) -> BaselineRow {
        let ran = &run.strategy;
        let begun = run.summary.requests > 0 || run.summary.steps_total > 0;
        BaselineRow {
            scenario: run.scenario.id.clone(),
            strategy: run.strategy.label.clone(),
            program: ran.command.clone().unwrap_or_else(|| format!("{} {}", ran.name, ran.version)),
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

pub fn read_baseline(path: &Path) -> Result<Baseline, ReadError> {
    Baseline::parse(&json::read_text(path)?, path)
}

/// Rounds to six decimals, so that stored and new figures compare equal.
fn round(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
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
    fn an_edited_file_is_refused_whatever_was_edited() {
        let written = Baseline::from_results(&testing::results()).to_text();
        let parse = |text: &str| Baseline::parse(text, Path::new("b.json"));
        // Git may change the ends of lines.
        assert!(parse(&written.replace('\n', "\r\n")).is_ok());
        let sum = written.lines().find(|l| l.contains("checksum")).unwrap();
        for (from, to) in [
            ("\"completed\"", "\"error\""),
            ("\"saved_pct\"", "\"saved_pctt\""),
            ("\"strategy\": \"codex\"", "\"strategy\": \"c\""),
            (sum, "  \"checksum\": \"\","),
        ] {
            let edited = written.replacen(from, to, 1);
            assert_ne!(edited, written, "{from}");
            assert!(matches!(parse(&edited), Err(ReadError::Edited { .. })), "{from}");
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(text in ".{0,200}") {
            let _ = Baseline::parse(&text, Path::new("b.json"));
        }
    }
}
