//! github-action-benchmark: an array of values; the direction holds for a whole file, so there are two.

use ctxbench_core::record::{Results, Status};
use serde::Serialize;

use crate::formats::{Artifact, Format, ReportError};
use crate::{bmf, gate, view};

/// The format for `report --format github-benchmark`.
pub(crate) const FORMAT: Format = Format {
    name: "github-benchmark",
    about: "github-action-benchmark: one file for customSmallerIsBetter, one for customBiggerIsBetter",
    render,
};

/// Column, unit.
const SMALLER: [(&str, &str); 5] = [
    ("cost_usd", "USD"),
    ("input_tokens", "tokens"),
    ("peak_context_tokens", "tokens"),
    ("blocked_ms", "ms"),
    ("integrity_failures", "failures"),
];
/// Column, unit.
const BIGGER: [(&str, &str); 5] = [
    ("saved_pct", "%"),
    ("retention_pct", "%"),
    ("summary_retention_pct", "%"),
    ("prefix_stability", "ratio"),
    ("steps_completed", "steps"),
];

#[derive(Serialize)]
struct Entry {
    name: String,
    unit: &'static str,
    value: f64,
    extra: String,
}

fn render(results: &Results) -> Result<Vec<Artifact>, ReportError> {
    let file = |name: &str, columns: &[(&'static str, &'static str)]| {
        let mut text = serde_json::to_string_pretty(&entries(results, columns)).expect("strings and numbers always serialise");
        text.push('\n');
        Artifact { file: name.into(), text }
    };
    Ok(vec![file("benchmark-smaller-is-better.json", &SMALLER), file("benchmark-bigger-is-better.json", &BIGGER)])
}

/// Figures of unfinished runs are left out, except how far they came and what they broke.
fn entries(results: &Results, columns: &[(&'static str, &'static str)]) -> Vec<Entry> {
    let results = &*view::told_apart(results);
    let mut out = Vec::new();
    for run in results.runs.iter().filter(|r| r.status != Status::NotApplicable) {
        for (metric, unit) in columns {
            if run.status != Status::Completed && !matches!(*metric, "integrity_failures" | "steps_completed") {
                continue;
            }
            let Some(value) = gate::column(run, metric).filter(|x| x.is_finite()) else { continue };
            let extra = format!("{}, steps {}", run.model, view::steps(run));
            out.push(Entry { name: format!("{}: {metric}", bmf::name(run, results)), unit, value, extra });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn two_arrays_with_one_direction_each() {
        let files = render(&sample::results()).unwrap();
        assert_eq!(files.len(), 2);
        for f in &files {
            let json: serde_json::Value = serde_json::from_str(&f.text).unwrap();
            for e in json.as_array().unwrap() {
                assert!(e["name"].is_string() && e["unit"].is_string() && e["value"].is_number(), "{e}");
            }
        }
        assert!(files[0].text.contains("login-bug/codex: cost_usd") && !files[0].text.contains("retention"));
        assert!(files[1].text.contains("login-bug/codex: retention_pct") && !files[1].text.contains("cost_usd"));
    }
}
