//! What the gate found, and how it is told.

use std::fmt::Write as _;

use crate::fmt;

/// How one check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Within what is allowed.
    Pass,
    /// Worse than allowed: the gate is red.
    Fail,
    /// Better by more than the tolerance.
    Improved,
    /// Worth knowing, decides nothing.
    Noted,
}

/// One metric of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The row: scenario × strategy, with the model where there are several.
    pub row: String,
    /// Column of `summary.csv`, or `row` for the presence of the row itself.
    pub metric: String,
    /// How it came out.
    pub outcome: Outcome,
    /// A sentence for people, without the row.
    pub reason: String,
}

impl Check {
    /// The whole sentence.
    pub fn told(&self) -> String {
        fmt::one_line(&format!("{}: {}", self.row, self.reason))
    }
}

/// Everything the gate checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateReport {
    /// Every check, in the order of the rows.
    pub checks: Vec<Check>,
    /// Remarks on the gate itself.
    pub remarks: Vec<String>,
    /// Reasons that concern no single row; any of them makes the gate red.
    pub faults: Vec<String>,
}

impl GateReport {
    /// Nothing is worse than allowed.
    pub fn passed(&self) -> bool {
        self.faults.is_empty() && self.with_outcome(Outcome::Fail).next().is_none()
    }

    /// The checks with this outcome.
    pub fn with_outcome(&self, outcome: Outcome) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |c| c.outcome == outcome)
    }

    /// For a terminal: failures first, one line each, the verdict last. A failed one is without it:
    /// it is the error that the command ends with.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        for fault in &self.faults {
            let _ = writeln!(out, "FAIL      {fault}");
        }
        for (word, outcome) in [
            ("FAIL    ", Outcome::Fail),
            ("better  ", Outcome::Improved),
            ("note    ", Outcome::Noted),
        ] {
            for c in self.with_outcome(outcome) {
                let _ = writeln!(out, "{word}  {}", c.told());
            }
        }
        for remark in &self.remarks {
            let _ = writeln!(out, "note      {remark}");
        }
        if self.passed() {
            let _ = writeln!(out, "{}", self.verdict());
        }
        out
    }

    /// The result in one sentence.
    pub fn verdict(&self) -> String {
        let failed = self.with_outcome(Outcome::Fail).count() + self.faults.len();
        let better = self.with_outcome(Outcome::Improved).count();
        let total = self.checks.iter().filter(|c| c.outcome != Outcome::Noted).count();
        let mut text = if failed > 0 {
            format!("gate failed: {failed} of {} checks", total + self.faults.len())
        } else {
            format!("gate passed: {total} checks")
        };
        if better > 0 {
            text.push_str(&format!(
                "; {better} better than the baseline, store a new baseline to keep that"
            ));
        }
        text
    }
}
