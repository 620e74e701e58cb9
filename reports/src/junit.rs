//! JUnit XML: a suite per scenario and model, a case per strategy. It contains no times: those of a
//! run are virtual, and a JUnit reader would show them as test durations.

use std::fmt::Write as _;

use crate::record::{Results, Rule, RunRecord, Status};
use ctxbench_core::strategy::Standing;

use crate::fmt::{one_line, xml};
use crate::{seeds, view};

pub(crate) enum TestVerdict {
    Ok,
    Skipped(String),
    Failed { kind: &'static str, message: String, text: String },
}

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) verdict: TestVerdict,
}

/// Cases by strategy. Broken rules and unfinished products fail; pairs that cannot exist are
/// skipped. Rows other than products may exceed the window: the control that never compacts does so
/// by design.
pub(crate) fn suites(results: &Results) -> String {
    let results = &*seeds::averaged(results);
    let several = view::models(results).len() > 1;
    let suites = view::blocks(results).into_iter().map(|b| {
        let run = b.first();
        let model = if several { format!(" × {}", run.model) } else { String::new() };
        let mut name = format!("{}{model}", run.scenario.id);
        name.extend(b.summariser.map(|s| format!(" × {s}")));
        let case =
            |run: &RunRecord| Case { name: run.strategy.label.clone(), verdict: verdict(run) };
        (name, b.runs.into_iter().map(case).collect())
    });
    document(&suites.collect::<Vec<_>>())
}

fn verdict(run: &RunRecord) -> TestVerdict {
    let product = run.strategy.standing == Standing::Contender;
    let by_design = !product
        && !run.integrity.is_empty()
        && run.integrity.iter().all(|f| f.rule == Rule::OverTheWindow);
    if let Some(message) = view::broken_rules(run).filter(|_| !by_design) {
        let lines = run
            .integrity
            .iter()
            .map(|f| format!("request {}: {}: {}", f.request, f.rule, one_line(&f.detail)));
        return TestVerdict::Failed {
            kind: "integrity",
            message,
            text: lines.collect::<Vec<_>>().join("\n"),
        };
    }
    match view::ending(run) {
        Some(why) if run.status == Status::NotApplicable => TestVerdict::Skipped(why),
        Some(why) if product || run.status == Status::Error => {
            TestVerdict::Failed { kind: "unfinished", message: why.clone(), text: why }
        }
        _ => TestVerdict::Ok,
    }
}

/// Beginning of every JUnit document of ctxbench.
pub const JUNIT_HEAD: &str =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"ctxbench\"";

/// Suites by name, each with its cases.
pub(crate) fn document(suites: &[(String, Vec<Case>)]) -> String {
    let mut out = format!("{JUNIT_HEAD} {}>\n", totals(suites.iter().flat_map(|(_, cases)| cases)));
    for (suite, cases) in suites {
        let suite = attribute(suite);
        let _ = writeln!(out, "  <testsuite name=\"{suite}\" {}>", totals(cases.iter()));
        for c in cases {
            let head =
                format!("    <testcase classname=\"{suite}\" name=\"{}\"", attribute(&c.name));
            let _ = match &c.verdict {
                TestVerdict::Ok => writeln!(out, "{head}/>"),
                TestVerdict::Skipped(why) => writeln!(
                    out,
                    "{head}>\n      <skipped message=\"{}\"/>\n    </testcase>",
                    attribute(why)
                ),
                TestVerdict::Failed { kind, message, text } => writeln!(
                    out,
                    "{head}>\n      <failure message=\"{}\" type=\"{kind}\">{}</failure>\n    \
                     </testcase>",
                    attribute(message),
                    xml(text)
                ),
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn attribute(text: &str) -> String {
    xml(&one_line(text))
}

fn totals<'a>(cases: impl Iterator<Item = &'a Case>) -> String {
    let (mut all, mut failed, mut skipped) = (0, 0, 0);
    for c in cases {
        all += 1;
        failed += usize::from(matches!(c.verdict, TestVerdict::Failed { .. }));
        skipped += usize::from(matches!(c.verdict, TestVerdict::Skipped(_)));
    }
    format!("tests=\"{all}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::IntegrityFailure;
    use crate::testing;

    #[test]
    fn counts_and_escapes() {
        let mut results = testing::results();
        results.runs[0].status = Status::NotApplicable;
        let text = suites(&results);
        assert!(text.contains("tests=\"12\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{text}");
        testing::assert_contains(
            &text,
            &["name=\"x&lt;&amp;&quot;y\"", "call &lt;a&amp;b&gt; has no result"],
        );
        assert_eq!(text.matches("<testcase").count(), 12);
        assert!(!text.contains("time="), "virtual time is no time of a test");
    }

    #[test]
    fn a_yardstick_may_run_into_the_window_and_a_product_may_not() {
        let failed = |label: &str, rule: Rule| {
            let mut r = testing::run("s", label, 1);
            r.status = Status::Overflow;
            let detail = "9 tokens in a window of 8".to_string();
            r.integrity = vec![IntegrityFailure { request: 3, rule, detail }];
            matches!(verdict(&r), TestVerdict::Failed { .. })
        };
        for control in ["none", "keep-nothing", "reference"] {
            assert!(!failed(control, Rule::OverTheWindow), "{control}");
            assert!(failed(control, Rule::OrphanedCall), "{control} shows a fault of ours");
        }
        assert!(failed("codex", Rule::OverTheWindow));
    }
}
