//! The gate as annotations of a GitHub workflow: one command per line on standard output
//! (<https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>).

use std::fmt::Write as _;

use super::{GateReport, Outcome};

impl GateReport {
    /// Formats an `::error` per failed check and fault, and a `::notice` per improvement. GitHub
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
    use super::super::{Check, GateReport};
    use super::*;

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
