//! JUnit XML: a suite per scenario and model, a case per strategy; or a case per check of the gate.

use std::fmt::Write as _;

use crate::record::{Results, RunRecord, Status};
use ctxbench_core::strategy::Standing;

use crate::fmt::{one_line, xml};
use crate::formats::{Artifact, Format, ReportError};
use crate::gate::{GateReport, Outcome};
use crate::{seeds, view};

/// The format for `report --format junit`.
pub(crate) const FORMAT: Format = Format {
    name: "junit",
    about: "JUnit XML: broken rules and unfinished runs as failures",
    render,
};

fn render(results: &Results) -> Result<Vec<Artifact>, ReportError> {
    Ok(vec![Artifact { file: "junit.xml".into(), text: result_suites(results) }])
}

enum Verdict {
    Ok,
    Skipped(String),
    Failed { kind: &'static str, message: String, text: String },
}

struct Case {
    class: String,
    name: String,
    /// Seconds.
    time: f64,
    verdict: Verdict,
}

/// Cases by strategy: broken rules and products that did not finish fail; pairs that cannot exist
/// are skipped; times are virtual.
pub fn result_suites(results: &Results) -> String {
    let results = &*seeds::averaged(results);
    let several = view::models(results).len() > 1;
    let suites = view::blocks(results).into_iter().map(|b| {
        let run = b.first();
        let mut name = if several {
            format!("{} × {}", run.scenario.id, run.model)
        } else {
            run.scenario.id.clone()
        };
        name.extend(b.summariser.map(|s| format!(" × {s}")));
        let cases = b.runs.iter().map(|r| Case {
            class: name.clone(),
            name: r.strategy.label.clone(),
            time: r.summary.total_ms as f64 / 1000.0,
            verdict: verdict(r),
        });
        (name.clone(), cases.collect())
    });
    document("ctxbench", suites.collect())
}

fn verdict(run: &RunRecord) -> Verdict {
    if let Some(message) = view::integrity_note(run) {
        let lines = run.integrity.iter().map(|f| {
            format!("request {}: {}: {}", f.request, one_line(&f.rule), one_line(&f.detail))
        });
        return Verdict::Failed {
            kind: "integrity",
            message,
            text: lines.collect::<Vec<_>>().join("\n"),
        };
    }
    let product = run.strategy.standing == Standing::Contender;
    match view::ending(run) {
        Some(why) if run.status == Status::NotApplicable => Verdict::Skipped(why),
        Some(why) if product || run.status == Status::Error => {
            Verdict::Failed { kind: "unfinished", message: why.clone(), text: why }
        }
        _ => Verdict::Ok,
    }
}

/// Cases by check: one for every metric of every scenario, strategy and model.
pub fn gate_suites(report: &GateReport) -> String {
    let mut cases: Vec<Case> = Vec::new();
    for (i, fault) in report.faults.iter().enumerate() {
        let verdict = Verdict::Failed { kind: "gate", message: fault.clone(), text: fault.clone() };
        cases.push(Case {
            class: "gate".into(),
            name: format!("fault {}", i + 1),
            time: 0.0,
            verdict,
        });
    }
    for c in &report.checks {
        let verdict = match c.outcome {
            Outcome::Fail => Verdict::Failed {
                kind: "regression",
                message: c.reason.clone(),
                text: c.reason.clone(),
            },
            Outcome::Noted => Verdict::Skipped(c.reason.clone()),
            Outcome::Pass | Outcome::Improved => Verdict::Ok,
        };
        let class = format!("{} × {}", c.scenario, c.strategy);
        cases.push(Case { class, name: format!("{} ({})", c.metric, c.model), time: 0.0, verdict });
    }
    document("ctxbench gate", vec![("gate".into(), cases)])
}

fn document(name: &str, suites: Vec<(String, Vec<Case>)>) -> String {
    let all: Vec<&Case> = suites.iter().flat_map(|(_, c)| c).collect();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{}\" {}>\n",
        xml(name),
        totals(&all)
    );
    for (suite, cases) in &suites {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" {}>",
            attribute(suite),
            totals(&cases.iter().collect::<Vec<_>>())
        );
        for c in cases {
            let head = format!(
                "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
                attribute(&c.class),
                attribute(&c.name),
                c.time
            );
            let _ = match &c.verdict {
                Verdict::Ok => writeln!(out, "{head}/>"),
                Verdict::Skipped(why) => writeln!(
                    out,
                    "{head}>\n      <skipped message=\"{}\"/>\n    </testcase>",
                    attribute(why)
                ),
                Verdict::Failed { kind, message, text } => writeln!(
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

fn totals(cases: &[&Case]) -> String {
    let failed = cases.iter().filter(|c| matches!(c.verdict, Verdict::Failed { .. })).count();
    let skipped = cases.iter().filter(|c| matches!(c.verdict, Verdict::Skipped(_))).count();
    let time: f64 = cases.iter().map(|c| c.time).sum();
    format!(
        "tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{time:.3}\"",
        cases.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Baseline, GateOptions, gate};
    use crate::sample;

    #[test]
    fn counts_and_escapes() {
        let mut results = sample::results();
        results.runs[0].status = Status::NotApplicable;
        let text = result_suites(&results);
        assert!(text.contains("tests=\"12\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{text}");
        assert!(
            text.contains("name=\"x&lt;&amp;&quot;y\"")
                && text.contains("call &lt;a&amp;b&gt; has no result")
        );
        assert_eq!(text.matches("<testcase").count(), 12);
    }

    #[test]
    fn the_gate_has_a_case_for_every_check() {
        let mut worse = sample::results();
        worse.runs[3].summary.cost_usd *= 2.0;
        let report =
            gate(&worse, &Baseline::from_results(&sample::results()), &GateOptions::default());
        let text = gate_suites(&report);
        assert_eq!(text.matches("<testcase").count(), report.checks.len());
        assert_eq!(text.matches("type=\"regression\"").count(), 1);
    }
}
