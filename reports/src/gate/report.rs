//! Results of the gate, and their text for the terminal.

use std::fmt::Write as _;
use std::path::Path;

use crate::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Within the tolerance.
    Pass,
    /// Worse than allowed; the gate fails.
    Fail,
    /// Better by more than the tolerance.
    Improved,
    /// For information only; does not affect the result.
    Noted,
}

/// One metric of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The row: scenario × strategy, with the model where there are several.
    pub row: String,
    /// Column of `summary.csv`, with `floor` or `ceiling` after it for a bound, or `row` for the presence
    /// of the row itself.
    pub metric: String,
    pub outcome: Outcome,
    /// A sentence for people, without the row.
    pub reason: String,
}

impl Check {
    /// The row and the reason in one line.
    pub fn sentence(&self) -> String {
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
    /// Faults that concern no single row. Any fault makes the gate fail.
    pub faults: Vec<String>,
}

impl GateReport {
    /// Returns true if nothing is worse than allowed.
    pub fn passed(&self) -> bool {
        self.faults.is_empty() && self.with_outcome(Outcome::Fail).next().is_none()
    }

    pub fn with_outcome(&self, outcome: Outcome) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(move |c| c.outcome == outcome)
    }

    /// Formats the report for a terminal: failures first, one line each. The verdict is last and is
    /// left out if the gate failed, because the command then prints it as its error.
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
                let _ = writeln!(out, "{word}  {}", c.sentence());
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

    /// Names the command and the page that show why the first failed row of these results got worse.
    pub fn next_step(&self, results: &Path) -> Option<String> {
        let mut failed = self.with_outcome(Outcome::Fail).filter(|c| c.metric != "row");
        let first = failed.next()?;
        let is_recall = |c: &&Check| c.metric.starts_with("recall");
        let forgets = [first].into_iter().chain(failed).find(is_recall);
        let failed = forgets.unwrap_or(first);
        let (scenario, label) = failed.row.split_once(" × ")?;
        // A model or a summarizer may follow.
        let label = label.split(" × ").next()?.split(" [").next()?;
        // A name with a NUL has no quotes and cannot be an argument.
        let quoted = |t: &str| shlex::try_quote(t).map(String::from).ok();
        let dir = quoted(&results.display().to_string())?;
        let (scenario, label) = (quoted(scenario)?, quoted(label)?);
        let page = format!("\nAll requests: {dir}/index.html");
        let page = if results.is_dir() { page } else { String::new() };
        Some(match forgets {
            Some(_) => format!(
                "Lost facts: ctxbench explain {dir} --scenario {scenario} --strategy {label} \
                 --lost{page}"
            ),
            None => format!("All figures: ctxbench report {dir} --details{page}"),
        })
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
        if better > 0 && failed == 0 {
            text.push_str(&format!(
                "; {better} better than the baseline, store a new baseline to keep that"
            ));
        }
        text
    }
}
