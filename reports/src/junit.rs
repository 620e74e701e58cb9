//! JUnit XML. It contains no times: those of a run are virtual, and a JUnit reader would show them as
//! test durations.

use std::fmt::Write as _;

use crate::fmt::{one_line, xml};

pub(crate) struct Case {
    pub(crate) name: String,
    /// Reason of a failure.
    pub(crate) failure: Option<String>,
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
            let _ = match &c.failure {
                None => writeln!(out, "{head}/>"),
                Some(why) => writeln!(
                    out,
                    "{head}>\n      <failure message=\"{}\" type=\"gate\">{}</failure>\n    \
                     </testcase>",
                    attribute(why),
                    xml(why)
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
    let (mut all, mut failed) = (0, 0);
    for c in cases {
        all += 1;
        failed += usize::from(c.failure.is_some());
    }
    format!("tests=\"{all}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\"")
}
