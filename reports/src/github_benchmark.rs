//! github-action-benchmark: an array of values. The direction (smaller or larger is better) applies
//! to a whole file, so there are two files.

use crate::record::{Results, Status};
use serde::Serialize;

use crate::formats::ReportError;
use crate::metrics::{self, Better};
use crate::stored::Files;
use crate::{bmf, json, view};

#[derive(Serialize)]
struct BenchmarkEntry {
    name: String,
    unit: &'static str,
    value: f64,
    extra: String,
}

pub(crate) fn write(results: &Results, files: &mut dyn Files) -> Result<(), ReportError> {
    let mut file = |name, better| files.put(name, &json::pretty(&entries(results, better)));
    file("benchmark-smaller-is-better.json", Better::Lower)?;
    file("benchmark-bigger-is-better.json", Better::Higher)
}

fn entries(results: &Results, better: Better) -> Vec<BenchmarkEntry> {
    let results = &*view::told_apart(results);
    let mut columns = metrics::sorted_columns(|m| &m.github_benchmark);
    columns.retain(|(m, _)| m.better == better);
    let mut out = Vec::new();
    for run in results.runs.iter().filter(|r| r.status != Status::NotApplicable) {
        for (metric, _) in columns.iter().filter(|(_, when)| when.includes(run)) {
            let Some(value) = metric.value(run) else { continue };
            out.push(BenchmarkEntry {
                name: format!("{}: {}", bmf::name(run, results), metric.column),
                unit: metric.unit.name(),
                value,
                extra: format!("{}, steps {}", run.model, view::steps(run)),
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::testing;

    #[test]
    fn two_arrays_with_one_direction_each() {
        let files = testing::files("github-benchmark", &testing::results()).unwrap();
        assert_eq!(files.len(), 2);
        for f in &files {
            let json: serde_json::Value = serde_json::from_str(&f.text).unwrap();
            for e in json.as_array().unwrap() {
                assert!(
                    e["name"].is_string() && e["unit"].is_string() && e["value"].is_number(),
                    "{e}"
                );
            }
        }
        for (i, one, other) in [(0, "cost_usd", "retention"), (1, "needs_kept_pct", "cost_usd")] {
            testing::assert_contains(&files[i].text, &[&format!("login-bug/codex: {one}")]);
            assert!(!files[i].text.contains(other), "{other}");
        }
    }
}
