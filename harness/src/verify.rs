//! Expected answers of scenarios against what was measured: benchmarks are tests too.

use ctxbench_core::strategy::Standing;
use ctxbench_reports::Cell;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

/// How results stand to what a scenario expects.
#[derive(Debug)]
pub struct Verified {
    /// Expected values that were looked at.
    pub checks: usize,
    /// What is not as expected, a sentence each.
    pub wrong: Vec<String>,
}

/// Holds results against a scenario's `[expect]`. Only strategies that were run are looked at.
pub fn verify(scenario: &Scenario, records: &[RunRecord]) -> Verified {
    let runs: Vec<&RunRecord> = records.iter().filter(|r| r.scenario.id == scenario.id).collect();
    let (mut checks, mut out) = (0, Vec::new());
    if let Some(reference) = runs.iter().find(|r| r.strategy.standing == Standing::Hypothetical) {
        let mut same = |what: &str, want: Option<u64>, got: u64| {
            checks += usize::from(want.is_some());
            if want.is_some_and(|w| w != got) {
                out.push(format!(
                    "{}: {what} should be {}, found {got}",
                    scenario.id,
                    want.unwrap_or_default()
                ));
            }
        };
        same("recorded steps", scenario.expect.steps, reference.summary.steps_total);
        same("requests of the reference", scenario.expect.requests, reference.summary.requests);
    }
    for (name, expected) in &scenario.expect.strategies {
        let Some(expected) = expected.as_table() else {
            out.push(format!(
                "{}: [expect.{name}] should be a table of summary columns",
                scenario.id
            ));
            continue;
        };
        if let Err(e) = Spec::parse(name) {
            out.push(format!("{}: [expect.{name}]: {e}", scenario.id));
        }
        for r in runs.iter().filter(|r| r.strategy.label == *name) {
            let columns: Vec<_> = r.columns().collect();
            checks += expected.len();
            for (column, want) in expected {
                let cell = columns.iter().find(|(n, _)| n == column).map(|(_, c)| c);
                out.extend(
                    differs(cell, want)
                        .map(|why| format!("{} × {name}: {column} {why}", scenario.id)),
                );
            }
        }
    }
    Verified { checks, wrong: out }
}

/// Why a cell is not what is wanted: a number or word to be met, or a table with `min` and `max`.
fn differs(cell: Option<&Cell>, want: &toml::Value) -> Option<String> {
    let got = match cell {
        None => return Some("is not a column of summary.csv".into()),
        Some(Cell::Int(n)) => *n as f64,
        Some(Cell::Real(x)) => *x,
        Some(Cell::Word(w)) => {
            return (want.as_str() != Some(w)).then(|| format!("should be {want}, found {w}"));
        }
        Some(Cell::Na) => {
            return (want.as_str() != Some("n/a")).then(|| format!("should be {want}, found n/a"));
        }
    };
    let number = |v: &toml::Value| v.as_float().or_else(|| v.as_integer().map(|n| n as f64));
    match want {
        toml::Value::Table(t) => {
            let low = t.get("min").and_then(number).is_some_and(|m| got < m);
            let high = t.get("max").and_then(number).is_some_and(|m| got > m);
            (low || high).then(|| format!("should lie within {want}, found {got}"))
        }
        v => match number(v) {
            Some(n) if (n - got).abs() <= 1e-6 => None,
            _ => Some(format!("should be {want}, found {got}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ranges_and_words() {
        let v = |s: &str| s.parse::<toml::Table>().unwrap()["x"].clone();
        assert_eq!(differs(Some(&Cell::Int(3)), &v("x = 3")), None);
        assert!(differs(Some(&Cell::Int(3)), &v("x = 4")).is_some());
        assert_eq!(differs(Some(&Cell::Real(50.0)), &v("x = {min = 40, max = 60}")), None);
        assert!(differs(Some(&Cell::Real(61.0)), &v("x = {min = 40, max = 60}")).is_some());
        assert_eq!(differs(Some(&Cell::Na), &v("x = \"n/a\"")), None);
        assert_eq!(differs(Some(&Cell::Word("completed".into())), &v("x = \"completed\"")), None);
        assert!(differs(None, &v("x = 1")).is_some());
    }
}
