//! The CSV files, with a row per run, request, compaction, (fact, need) pair, rewind, restart and
//! format, subagent, or agent and model.

mod cell;
mod columns;

use std::borrow::Borrow;
use std::{io, iter};

use ctxbench_core::strategy::Standing;

use crate::error::ReportError;
use crate::metrics::{Cell, METRICS, ToCell};
use crate::record::{FactRecord, RunRecord};
use crate::sheet::{self, Column, heads};
use crate::stored::{Files, StoredResults};
use crate::{fmt, seeds, spend};
use columns::{COMPACTIONS, COSTS, DELEGATION, FACTS, REPLAYED, REQUESTS, RESUME, REWINDS};

/// Rows, created one at a time because a long run has many.
pub(crate) type CellRows<'a> = Box<dyn Iterator<Item = Vec<Cell>> + 'a>;

/// Rows of one kind.
pub(crate) struct Table {
    /// File name without extension.
    pub(crate) name: &'static str,
    /// Own columns of the table. Other tables than the table of runs also have columns that
    /// identify the run.
    columns: fn() -> Vec<&'static str>,
    rows: for<'a> fn(&'a RunRecord) -> CellRows<'a>,
    /// Columns that a recording does not contain.
    replayed: &'static [&'static str],
    pub(crate) of_runs: bool,
}

/// All tables; the database contains the same rows.
pub(crate) const TABLES: [Table; 8] = [
    Table {
        name: "summary",
        columns: || METRICS.iter().map(|m| m.column).collect(),
        rows: |r| Box::new(iter::once(r.columns().map(|(_, cell)| cell).collect())),
        replayed: &[],
        of_runs: true,
    },
    Table {
        replayed: REPLAYED,
        ..inner("requests", || heads(REQUESTS), |r| cells(REQUESTS, &r.requests))
    },
    inner("compactions", || heads(COMPACTIONS), |r| cells(COMPACTIONS, &r.compactions)),
    inner("facts", || [heads(FACTS), vec!["text"]].concat(), |r| facts(r)),
    inner("rewind", || heads(REWINDS), |r| cells(REWINDS, &r.rewinds)),
    inner("resume", || heads(RESUME), |r| cells(RESUME, &r.resume)),
    inner("delegation", || heads(DELEGATION), |r| cells(DELEGATION, &r.delegation)),
    inner("costs", || heads(COSTS), |r| cells(COSTS, spend::parts(r))),
];

/// A table of events inside runs.
const fn inner(
    name: &'static str,
    columns: fn() -> Vec<&'static str>,
    rows: for<'a> fn(&'a RunRecord) -> CellRows<'a>,
) -> Table {
    Table { name, columns, rows, replayed: &[], of_runs: false }
}

fn cells<'a, T, I>(columns: &'static [Column<T, Cell>], items: I) -> CellRows<'a>
where
    I: IntoIterator<Item: Borrow<T>, IntoIter: 'a>,
{
    Box::new(items.into_iter().map(|x| sheet::cells(columns, x.borrow())))
}

/// One row per (fact, need) pair, with an excerpt of the source of the fact.
fn facts(run: &RunRecord) -> CellRows<'_> {
    let lives = run.lives_by_fact();
    let with_text = move |(mut row, pair): (Vec<Cell>, &FactRecord)| {
        let life = lives.get(&*pair.fact);
        row.push(life.filter(|l| !l.text.is_empty()).map(|l| l.text.clone()).cell());
        row
    };
    Box::new(cells(FACTS, &run.facts).zip(&run.facts).map(with_text))
}

impl Table {
    pub(crate) fn head(&self, seeded: bool) -> Vec<&'static str> {
        let own = (self.columns)();
        let mut head = if self.of_runs {
            own
        } else {
            [vec!["scenario", "strategy", "model"], own, vec!["summariser"]].concat()
        };
        head.extend(seeded.then_some("seed"));
        head
    }

    /// Returns the rows of a run, with the same columns as the head.
    fn write_all<'a>(
        &self,
        r: &'a RunRecord,
        seeded: bool,
    ) -> impl Iterator<Item = Vec<Cell>> + use<'a> {
        let of_runs = self.of_runs;
        let recorded = r.strategy.standing == Standing::Recorded && !self.replayed.is_empty();
        let names = if recorded { (self.columns)() } else { vec![] };
        let unknown: Vec<usize> =
            (0..names.len()).filter(|&i| self.replayed.contains(&names[i])).collect();
        (self.rows)(r).map(move |mut row| {
            unknown.iter().for_each(|&i| row[i] = Cell::Na);
            if !of_runs {
                let keys = [&r.scenario.id, &r.strategy.label, &r.model];
                row.splice(0..0, keys.map(ToCell::cell));
                row.push(r.summariser.cell());
            }
            row.extend(seeded.then(|| r.seed.cell()));
            row
        })
    }
}

/// Writes each table that has a row to a separate file. Numbers have at most six decimals, unknown
/// values are `n/a`, and no text is a formula.
pub(crate) fn write(stored: &StoredResults<'_>, files: &mut dyn Files) -> Result<(), ReportError> {
    let seeded = seeds::several(&stored.figures);
    let mut outs = TABLES.each_ref().map(|_| None);
    rows(stored, seeded, &mut |_, table, row| {
        let (out, table) = (&mut outs[table], &TABLES[table]);
        let out = match out {
            Some(out) => out,
            None => {
                let file = files.create(&format!("{}.csv", table.name))?;
                let out = out.insert(csv::Writer::from_writer(file));
                out.write_record(table.head(seeded)).map_err(io::Error::from)?;
                out
            }
        };
        Ok(out.write_record(row.into_iter().map(text)).map_err(io::Error::from)?)
    })?;
    Ok(outs.iter_mut().flatten().try_for_each(csv::Writer::flush)?)
}

/// Function that takes a row: the number of its run, from 1, the index of its table, and the cells.
type TakeRow<'a> = dyn FnMut(i64, usize, Vec<Cell>) -> Result<(), ReportError> + 'a;

/// Passes the rows of all tables, run by run.
pub(crate) fn rows(
    stored: &StoredResults<'_>,
    seeded: bool,
    take: &mut TakeRow<'_>,
) -> Result<(), ReportError> {
    let mut number = 0;
    stored.sessions(&mut |session| {
        for run in session {
            number += 1;
            for (i, table) in TABLES.iter().enumerate() {
                table.write_all(run, seeded).try_for_each(|row| take(number, i, row))?;
            }
        }
        Ok(())
    })
}

/// Formats a single table, with the same cells as the other files.
pub(crate) fn table_text(
    head: &[&str],
    rows: impl Iterator<Item = Vec<Cell>>,
) -> Result<String, ReportError> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(head).map_err(io::Error::from)?;
    for row in rows {
        out.write_record(row.into_iter().map(text)).map_err(io::Error::from)?;
    }
    let bytes = out.into_inner().map_err(|e| e.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn text(cell: Cell) -> String {
    match cell {
        Cell::Int(n) => n.to_string(),
        Cell::Real(x) => fmt::exact(x),
        Cell::Word(w) => cell::safe(w),
        Cell::Na => "n/a".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, csv_rows, csv_text};

    #[test]
    fn unknown_is_never_zero_and_hostile_labels_survive() {
        let results = testing::results();
        let rows = csv_rows("summary.csv", &results);
        assert_eq!(rows.len(), results.runs.len());
        let none = rows.iter().find(|r| r["strategy"] == "none").unwrap();
        assert_eq!((&*none["saved_pct"], &*none["status"]), ("n/a", "overflow"));
        assert!(rows.iter().any(|r| r["strategy"] == "x<&\"y"));
    }

    #[test]
    fn a_pair_that_cannot_exist_has_no_figures() {
        let mut results = testing::results();
        results.runs.truncate(1);
        results.runs[0].status = crate::record::Status::NotApplicable;
        let text = csv_text("summary.csv", &results);
        let row = text.lines().nth(1).unwrap();
        assert!(row.split(',').skip(3).all(|c| c == "n/a"), "{row}");
    }

    #[test]
    fn the_other_files_have_a_row_each() {
        let results = testing::results();
        let sum = |of: fn(&RunRecord) -> usize| results.runs.iter().map(of).sum::<usize>();
        for (file, rows) in [
            ("requests.csv", sum(|r| r.requests.len())),
            ("compactions.csv", sum(|r| r.compactions.len())),
            ("facts.csv", results.runs.len()),
        ] {
            assert_eq!(csv_rows(file, &results).len(), rows, "{file}");
        }
        assert!(csv_text("compactions.csv", &results).contains(",summarise,summary,mid_turn,"));
    }
}
