//! Expected figures of the built-in scenarios: a file in `tests/data/expected/` for each. It has the
//! `steps` and `requests` of the reference, and a table per row with columns of `summary.csv`, each a
//! number, a word or a range.

use std::collections::BTreeSet;

use ctxbench_replay::{Options, models, with_savings};
use ctxbench_reports::Cell;
use ctxbench_reports::record::{Fate, RunRecord};
use ctxbench_scenarios::builtin;
use ctxbench_strategies::Spec;
use toml::{Table, Value};

use crate::common::data;
use crate::common::replayed::run_with;

fn expected(id: &str) -> Table {
    let text = std::fs::read_to_string(data(&format!("expected/{id}.toml"))).unwrap();
    toml::from_str(&text).unwrap()
}

/// All built-in scenarios with expected figures. One is measured by the gate instead.
fn ids() -> impl Iterator<Item = &'static str> {
    builtin::IDS.iter().copied().filter(|id| *id != "login-bug-marathon")
}

/// Runs the expected rows of a scenario that are asked for, compares them, and returns their number.
fn check(id: &str, is_wanted: impl Fn(&str) -> bool) -> usize {
    let scenario = builtin::by_id(id).unwrap();
    let model = models::own(&scenario.session).name.to_string();
    let expected = expected(id);
    let rows = expected.iter().filter_map(|(label, cells)| Some((label, cells.as_table()?)));
    let mut checked = 0;
    for (label, cells) in rows.filter(|(label, _)| is_wanted(label)) {
        let run = |label| run_with(&model, &scenario, label, &Options::default());
        // Savings are against the reference.
        let mut rows = vec![run(label.as_str())];
        if label != "reference" && cells.keys().any(|column| column.contains("saved")) {
            rows.push(run("reference"));
        }
        let row = with_savings(rows).swap_remove(0);
        assert_eq!(row.strategy.label, *label, "{id}: label of the row");
        for (column, want) in cells {
            let found = figure(&row, column);
            assert!(
                fits(&found, want),
                "{id} × {label}: {column} should be {want}, found {found:?}"
            );
        }
        if label == "reference" {
            let found =
                [row.summary.steps_total, row.summary.requests].map(|n| Value::from(n as i64));
            assert_eq!([&expected["steps"], &expected["requests"]], [&found[0], &found[1]], "{id}");
        }
        checked += 1;
    }
    checked
}

/// Returns a column of `summary.csv`, or a figure from the records of facts, requests, rewinds and
/// background summaries.
fn figure(r: &RunRecord, name: &str) -> Cell {
    let count = |n: usize| Cell::Int(n as u64);
    let fate = |fate| count(r.background.iter().filter(|b| b.fate == fate).count());
    let share = |part: u64, all: u64| match all {
        0 => Cell::Na,
        _ => Cell::Real(100.0 * part as f64 / all as f64),
    };
    match name {
        "restore_success_pct" => {
            let files = || r.rewinds.iter().filter_map(|r| r.code.as_ref());
            share(files().map(|c| c.restored).sum(), files().map(|c| c.changed).sum())
        }
        "rewind_equal_pct" => {
            let equal = || r.rewinds.iter().filter_map(|r| r.context_equal);
            share(equal().filter(|equal| *equal).count() as u64, equal().count() as u64)
        }
        "background_late_waited" => fate(Fate::LateWaited),
        "background_stale" => fate(Fate::Stale),
        "invalidated_expired_tokens" => {
            Cell::Int(r.requests.iter().map(|q| q.invalidated_expired_tokens).sum())
        }
        "invalidated_changed_tokens" => {
            Cell::Int(r.requests.iter().map(|q| q.invalidated_changed_tokens).sum())
        }
        _ => match name.strip_prefix("pair_recall_") {
            Some(kind) => {
                let kind =
                    kind.strip_suffix("_pct").map(|kind| serde_json::from_value(kind.into()));
                r.pair_recall_pct(kind.map(Result::unwrap)).map_or(Cell::Na, Cell::Real)
            }
            None => r.columns().find(|(column, _)| *column == name).unwrap().1,
        },
    }
}

fn fits(found: &Cell, want: &Value) -> bool {
    let number = |v: &Value| v.as_float().or(v.as_integer().map(|n| n as f64)).unwrap();
    let found = match found {
        Cell::Int(n) => *n as f64,
        Cell::Real(x) => *x,
        Cell::Word(word) => return want.as_str() == Some(word),
        Cell::Na => return want.as_str() == Some("n/a"),
    };
    match want {
        Value::String(_) => false,
        Value::Table(range) => range.iter().all(|(bound, v)| match bound.as_str() {
            "min" => found >= number(v),
            "max" => found <= number(v),
            other => panic!("{other} is no bound"),
        }),
        want => (number(want) - found).abs() <= 1e-6,
    }
}

/// Rows with settings or of a version.
#[test]
fn variants_have_expected_figures() {
    let plain: BTreeSet<String> = Spec::defaults().iter().map(Spec::label).collect();
    let variants: usize = ids().map(|id| check(id, |label| !plain.contains(label))).sum();
    assert!(variants > 10, "{variants}");
}

#[test]
fn two_scenarios_have_expected_figures() {
    assert!(["login-bug", "two-sessions"].iter().all(|id| check(id, |_| true) > 3));
}

#[test]
#[ignore = "needs minutes"]
fn all_scenarios_have_expected_figures() {
    assert!(ids().all(|id| check(id, |_| true) >= 3));
}

#[test]
fn every_scenario_has_expected_figures() {
    let files = std::fs::read_dir(data("expected")).unwrap();
    let files = files.map(|f| f.unwrap().path().file_stem().unwrap().to_str().unwrap().to_string());
    assert_eq!(files.collect::<BTreeSet<_>>(), ids().map(String::from).collect());
}
