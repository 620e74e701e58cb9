//! Formats the gate for other tools: Markdown for a pull request or a step summary, JUnit XML for
//! test reports, and annotations of a GitHub workflow, one command per line on standard output.

use std::fmt::Write as _;

use super::{Check, GateReport, Outcome};
use crate::junit::{self, Case};
use crate::{fmt, grid, markdown};

impl GateReport {
    /// Formats the report as Markdown: a heading with the verdict, a table of failures and
    /// improvements, a list of remarks, and the next step, if there is one.
    pub fn to_markdown(&self, next_step: Option<&str>) -> String {
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
        for (i, line) in next_step.into_iter().flat_map(str::lines).enumerate() {
            let lead = if i == 0 { "\n" } else { "" };
            let _ = writeln!(out, "{lead}    {}", fmt::one_line(line));
        }
        out
    }

    /// Formats the report as JUnit XML: a suite per row and a case per figure. Checks that concern
    /// no single row are in a separate suite.
    pub fn to_junit(&self) -> String {
        let mut suites: Vec<(String, Vec<Case>)> = Vec::new();
        let fault = |(i, text): (usize, &String)| Case {
            name: format!("fault {}", i + 1),
            failure: Some(text.clone()),
        };
        if !self.faults.is_empty() {
            suites.push(("gate".into(), self.faults.iter().enumerate().map(fault).collect()));
        }
        for check in self.checks.iter().filter(|c| c.outcome != Outcome::Noted) {
            let failure = (check.outcome == Outcome::Fail).then(|| check.reason.clone());
            let case = Case { name: check.metric.clone(), failure };
            match suites.last_mut().filter(|(row, _)| *row == check.row) {
                Some((_, cases)) => cases.push(case),
                None => suites.push((check.row.clone(), vec![case])),
            }
        }
        junit::document(&suites)
    }

    /// Formats an `::error` per failed check and fault, and a `::notice` per improvement. GitHub
    /// (<https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>)
    /// shows ten of each kind per step, so the verdict comes first.
    pub fn to_annotations(&self) -> String {
        let mut out = String::new();
        let kind = if self.passed() { "notice" } else { "error" };
        let mut line = |kind: &str, text: &str| {
            let _ = writeln!(out, "::{kind} title=ctxbench gate::{}", escaped(text));
        };
        line(kind, &self.verdict());
        for fault in &self.faults {
            line("error", fault);
        }
        for (kind, outcome) in [("error", Outcome::Fail), ("notice", Outcome::Improved)] {
            for check in self.with_outcome(outcome) {
                line(kind, &check.sentence());
            }
        }
        out
    }
}

/// Escapes line breaks, which end a message, and `%`, which begins an escape.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
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
        let text = report().to_markdown(Some("Lost facts: command\nAll requests: page"));
        assert!(text.starts_with("## ctxbench gate failed\n"), "{text}");
        assert!(text.contains("**another yardstick**"));
        let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("| ")).collect();
        assert_eq!(rows.len(), 3, "{text}");
        let bars = |l: &str| l.replace("\\|", "").matches('|').count();
        assert!(rows.iter().all(|r| bars(r) == 5), "{text}");
        assert!(!text.contains("<b>"), "{text}");
        let end = "- a remark\n\n    Lost facts: command\n    All requests: page\n";
        assert!(text.ends_with(end), "{text}");
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

    #[test]
    fn a_message_stays_one_command() {
        let check = |outcome, reason: &str| Check {
            row: "s × codex".into(),
            metric: "cost_usd".into(),
            outcome,
            reason: reason.into(),
        };
        let report = GateReport {
            checks: vec![
                check(Outcome::Fail, "3 % more\n::error::forged"),
                check(Outcome::Improved, "less"),
                check(Outcome::Pass, "same"),
            ],
            faults: vec!["nothing to compare\r\n".into()],
            ..GateReport::default()
        };
        let text = report.to_annotations();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[0].starts_with("::error title=ctxbench gate::gate failed: 2 of 4 checks"));
        assert_eq!(lines[1], "::error title=ctxbench gate::nothing to compare%0D%0A");
        assert!(lines[2].starts_with("::error title=ctxbench gate::s × codex: 3 %25 more"));
        assert!(lines[2].contains("::error::forged") && !lines[2].starts_with("::error::forged"));
        assert_eq!(lines[3], "::notice title=ctxbench gate::s × codex: less");
    }
}
