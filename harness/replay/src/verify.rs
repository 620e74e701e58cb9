//! Comparison of results with the expected values of scenarios, so that benchmarks serve as tests.

use ctxbench_core::strategy::Standing;
use ctxbench_reports as reports;
use ctxbench_reports::Cell;
use ctxbench_reports::record::{AS_RECORDED, Fate, RunRecord};
use ctxbench_scenarios::{Expected, ExpectedCell, ExpectedRow, Scenario};
use ctxbench_strategies::Spec;
use ctxbench_util::toml_file::TomlError;

/// Result of the comparison of results with a scenario's expected values.
#[derive(Debug)]
pub struct Verified {
    pub checks: usize,
    /// Differences from the expected values, one sentence each.
    pub wrong: Vec<String>,
}

/// Compares results with a scenario's `[expect]` table. Strategies without results are skipped.
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
    for row in &scenario.expect.strategies {
        // The notation of its settings does not matter.
        let spec = Spec::parse(&row.label);
        let label = spec.map_or_else(|_| row.label.clone(), |spec| spec.label());
        for r in runs.iter().filter(|r| r.strategy.label == label) {
            let columns: Vec<_> = r.columns().collect();
            checks += row.cells.len();
            for ExpectedCell { column, value, .. } in &row.cells {
                let listed = columns.iter().find(|(n, _)| n == column).map(|(_, c)| c.clone());
                let cell = listed.or_else(|| derived(column, r));
                let differs = differs(cell.as_ref(), value);
                let at = format!("{} × {}: {column}", scenario.id, row.label);
                out.extend(differs.map(|why| format!("{at} {why}")));
            }
        }
    }
    Verified { checks, wrong: out }
}

/// Returns an error if a scenario expects a column that does not exist.
pub fn check_expectations(scenario: &Scenario) -> Result<(), TomlError> {
    for row in &scenario.expect.strategies {
        let none = RunRecord::default();
        let cells = row.cells.iter().filter(|cell| derived(&cell.column, &none).is_none());
        for ExpectedCell { column, line, .. } in cells {
            let unknown = |hint| format!("no metric is called `{column}`; {hint}");
            reports::column(column).map_err(|hint| wrong(scenario, row, *line, &unknown(hint)))?;
        }
    }
    Ok(())
}

/// Returns a figure that a scenario may expect although it is not a column of `summary.csv`. It can be
/// derived from other files: `pair_recall_<kind>_pct` is a query on `facts.csv`. `None` if the name is
/// unknown.
fn derived(name: &str, r: &RunRecord) -> Option<Cell> {
    let fate = |fate| r.background.iter().filter(|b| b.fate == fate).count() as u64;
    let share = match name {
        "pair_recall_pct" => r.pair_recall_pct(None),
        "restore_success_pct" => crate::rewind::restore_success_pct(&r.rewinds),
        "rewind_equal_pct" => {
            let equal = || r.rewinds.iter().filter_map(|r| r.context_equal);
            let n = equal().count();
            (n > 0).then(|| 100.0 * equal().filter(|equal| *equal).count() as f64 / n as f64)
        }
        "background_late_waited" => return Some(Cell::Int(fate(Fate::LateWaited))),
        "background_stale" => return Some(Cell::Int(fate(Fate::Stale))),
        "invalidated_expired_tokens" => {
            return Some(Cell::Int(r.requests.iter().map(|q| q.invalidated_expired_tokens).sum()));
        }
        "invalidated_changed_tokens" => {
            return Some(Cell::Int(r.requests.iter().map(|q| q.invalidated_changed_tokens).sum()));
        }
        _ => {
            let kind = name.strip_prefix("pair_recall_")?.strip_suffix("_pct")?;
            r.pair_recall_pct(Some(serde_json::from_value(kind.into()).ok()?))
        }
    };
    Some(share.map_or(Cell::Na, Cell::Real))
}

/// Displayed value of an empty cell.
const NO_VALUE: &str = "n/a";

/// Returns an error if a scenario expects something of an unknown strategy. External programs are
/// known by the name that the run gives them.
pub fn check_strategies(specs: &[Spec], scenario: &Scenario) -> Result<(), TomlError> {
    let is_row = |label: &str| label == AS_RECORDED || specs.iter().any(|s| s.label() == label);
    for row in scenario.expect.strategies.iter().filter(|row| !is_row(&row.label)) {
        Spec::parse(&row.label).map_err(|e| wrong(scenario, row, row.line, &e.to_string()))?;
    }
    Ok(())
}

fn wrong(scenario: &Scenario, row: &ExpectedRow, line: usize, why: &str) -> TomlError {
    let what = format!("[expect.{}]: {why}", quoted(&row.label));
    TomlError { file: scenario.expect.file.clone(), line, what }
}

/// Formats a key as in TOML.
fn quoted(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if key.chars().all(bare) { key.to_string() } else { format!("{key:?}") }
}

/// Describes the difference between a cell and the expected value. `None` = they are equal.
fn differs(cell: Option<&Cell>, want: &Expected) -> Option<String> {
    let found = match cell {
        None => return Some("is not a column of summary.csv".into()),
        Some(Cell::Int(n)) => Ok(*n as f64),
        Some(Cell::Real(x)) => Ok(*x),
        Some(Cell::Word(w)) => Err(w.as_str()),
        Some(Cell::Na) => Err(NO_VALUE),
    };
    let as_wanted = match (want, found) {
        (Expected::Number(want), Ok(found)) => (want - found).abs() <= 1e-6,
        (Expected::Word(want), Err(found)) => want == found,
        (Expected::Within(least, most), Ok(found)) => {
            least.is_none_or(|least| found >= least) && most.is_none_or(|most| found <= most)
        }
        _ => false,
    };
    let found = found.map_or_else(str::to_string, |n| n.to_string());
    (!as_wanted).then(|| format!("should be {want}, found {found}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ranges_and_words() {
        let number = Expected::Number;
        let word = |w: &str| Expected::Word(w.into());
        let within = Expected::Within(Some(40.0), Some(60.0));
        let real = |x: f64| Some(Cell::Real(x));
        let done = Some(Cell::Word("completed".into()));
        let differs = |cell: Option<Cell>, want: &Expected| differs(cell.as_ref(), want);
        for (cell, want) in [
            (Some(Cell::Int(3)), number(3.0)),
            (real(50.0), within.clone()),
            (real(61.0), Expected::Within(Some(40.0), None)),
            (Some(Cell::Na), word("n/a")),
            (done.clone(), word("completed")),
        ] {
            assert_eq!(differs(cell, &want), None);
        }
        for (cell, want, said) in [
            (Some(Cell::Int(3)), number(4.0), "should be 4, found 3"),
            (real(61.5), within.clone(), "should be from 40 to 60, found 61.5"),
            (real(1.0), Expected::Within(Some(2.0), None), "should be at least 2, found 1"),
            (done, number(1.0), "should be 1, found completed"),
            (Some(Cell::Na), within, "should be from 40 to 60, found n/a"),
            (None, number(1.0), "is not a column of summary.csv"),
        ] {
            assert_eq!(differs(cell, &want).as_deref(), Some(said));
        }
    }
}
