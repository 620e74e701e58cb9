//! Formats the gate for other tools: Markdown for a pull request or a step summary, and JUnit XML
//! for test reports.

use std::fmt::Write as _;

use super::{Check, GateReport, Outcome};
use crate::junit::{self, Case, TestVerdict};
use crate::{grid, markdown};

impl GateReport {
    /// Formats the report as Markdown: a heading with the verdict, a table of failures and
    /// improvements, and a list of remarks.
    pub fn to_markdown(&self) -> String {
        let sign = if self.passed() { "passed" } else { "failed" };
        let verdict = markdown::text(&self.verdict());
        let mut out = format!("## ctxbench gate {sign}\n\n{verdict}\n");
        for fault in &self.faults {
            let _ = writeln!(out, "\n**{}**", markdown::text(fault));
        }
        let worth = [("fail", Outcome::Fail), ("better", Outcome::Improved)];
        let rows: Vec<Vec<String>> = worth
            .into_iter()
            .flat_map(|(word, o)| self.with_outcome(o).map(move |c| (word, c)))
            .map(|(word, c)| [word, &c.row, &c.metric, &c.reason].map(markdown::text).into())
            .collect();
        if !rows.is_empty() {
            out.push('\n');
            out.push_str(&grid::markdown(&["", "row", "figure", "what"], rows, |_| false));
        }
        let notes = self.with_outcome(Outcome::Noted).map(Check::sentence);
        for (i, note) in notes.chain(self.remarks.iter().cloned()).enumerate() {
            let lead = if i == 0 { "\n" } else { "" };
            let _ = writeln!(out, "{lead}- {}", markdown::text(&note));
        }
        out
    }

    /// Formats the report as JUnit XML: a suite per row and a case per figure. Checks that concern
    /// no single row are in a separate suite.
    pub fn to_junit(&self) -> String {
        let mut suites: Vec<(String, Vec<Case>)> = Vec::new();
        let fault = |(i, text): (usize, &String)| Case {
            name: format!("fault {}", i + 1),
            verdict: failed(text),
        };
        if !self.faults.is_empty() {
            suites.push(("gate".into(), self.faults.iter().enumerate().map(fault).collect()));
        }
        for check in self.checks.iter().filter(|c| c.outcome != Outcome::Noted) {
            let verdict = match check.outcome {
                Outcome::Fail => failed(&check.reason),
                _ => TestVerdict::Ok,
            };
            let case = Case { name: check.metric.clone(), verdict };
            match suites.last_mut().filter(|(row, _)| *row == check.row) {
                Some((_, cases)) => cases.push(case),
                None => suites.push((check.row.clone(), vec![case])),
            }
        }
        junit::document(&suites)
    }
}

fn failed(text: &str) -> TestVerdict {
    TestVerdict::Failed { kind: "gate", message: text.into(), text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: &str, metric: &str, outcome: Outcome) -> Check {
        Check { row: row.into(), metric: metric.into(), outcome, reason: "2 → 3 | x".into() }
    }

    fn report() -> GateReport {
        GateReport {
            checks: vec![
                check("s × codex", "cost_usd", Outcome::Fail),
                check("s × codex", "steps", Outcome::Pass),
                check("s × <b>", "cost_usd", Outcome::Improved),
                check("t × new", "row", Outcome::Noted),
            ],
            remarks: vec!["a remark".into()],
            faults: vec!["another yardstick".into()],
        }
    }

    #[test]
    fn markdown_tells_what_failed_and_no_cell_breaks_its_row() {
        let text = report().to_markdown();
        assert!(text.starts_with("## ctxbench gate failed\n"), "{text}");
        assert!(text.contains("**another yardstick**"));
        let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("| ")).collect();
        assert_eq!(rows.len(), 3, "{text}");
        let bars = |l: &str| l.replace("\\|", "").matches('|').count();
        assert!(rows.iter().all(|r| bars(r) == 5), "{text}");
        assert!(!text.contains("<b>"), "{text}");
        assert!(text.contains("- a remark"));
    }

    #[test]
    fn junit_counts_cases_and_failures() {
        let text = report().to_junit();
        let counts = "tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"0\"";
        assert!(text.contains(counts), "{text}");
        assert!(
            text.contains("<testsuite name=\"s × codex\" tests=\"2\" failures=\"1\""),
            "{text}"
        );
        assert!(text.contains("s × &lt;b&gt;"));
    }
}
