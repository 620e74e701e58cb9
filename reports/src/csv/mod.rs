//! The CSV files: a row per run, per request, per compaction, per (fact, need) pair, per rewind,
//! per restart and format, per subagent, per goal, per
//! agent and model.

mod columns;

use crate::formats::{Artifact, Format, ReportError};
use crate::metrics::{Cell, METRICS, ToCell};
use crate::plots::Looks;
use crate::record::{FactRecord, Results, RunRecord};
use crate::{fmt, goals, seeds, spend};

/// The format for `report --format csv`.
pub(crate) const FORMAT: Format = Format { name: "csv", render };

/// Name in the head, and what stands below it.
type Column<T> = (&'static str, fn(&T) -> Cell);

fn render(results: &Results, _: &Looks) -> Result<Vec<Artifact>, ReportError> {
    Ok(FILES
        .iter()
        .map(|(name, text)| Artifact { file: (*name).into(), text: text(results) })
        .collect())
}

/// Writes a whole file of some results.
type Content = fn(&Results) -> String;

/// Every file; numbers have at most six decimals, unknown is `n/a`.
const FILES: [(&str, Content); 9] = [
    ("summary.csv", summary),
    ("requests.csv", |r| file(r, columns::REQUESTS, |run| &run.requests)),
    ("compactions.csv", |r| file(r, columns::COMPACTIONS, |run| &run.compactions)),
    ("facts.csv", |r| file_with(r, columns::FACTS, |run| &run.facts, &[("text", fact_text)])),
    ("rewind.csv", |r| file(r, columns::REWINDS, |run| &run.rewinds)),
    ("resume.csv", |r| file(r, columns::RESUME, |run| &run.resume)),
    ("delegation.csv", |r| file(r, columns::DELEGATION, |run| &run.delegation)),
    ("goals.csv", goals),
    ("costs.csv", costs),
];

/// The columns of the contract, a row per run.
fn summary(results: &Results) -> String {
    let seeded = seeds::several(results);
    let head = METRICS.iter().map(|m| m.column).chain(seeded.then_some("seed"));
    let rows =
        results.runs.iter().map(|r| r.columns().map(|(_, cell)| cell).chain(seed(r, seeded)));
    write(head, rows)
}

/// A row for everything of one kind in every run, between what tells runs apart.
fn file<T>(results: &Results, columns: &[Column<T>], of: fn(&RunRecord) -> &Vec<T>) -> String {
    file_with(results, columns, of, &[])
}

/// A column that takes the run, too.
type Wide<T> = (&'static str, fn(&RunRecord, &T) -> Cell);

/// The same with columns that take more than the row's own record, behind its own.
fn file_with<T>(
    results: &Results,
    columns: &[Column<T>],
    of: fn(&RunRecord) -> &Vec<T>,
    wide: &[Wide<T>],
) -> String {
    let items = results.runs.iter().flat_map(|r| of(r).iter().map(move |item| (r, item)));
    lines(seeds::several(results), columns, items, wide)
}

/// A row for every goal and every row that it is about.
fn goals(results: &Results) -> String {
    let held = |r| goals::judged(r, &results.goals).into_iter().map(move |j| (r, j));
    let all: Vec<_> = results.runs.iter().flat_map(held).collect();
    let items = all.iter().map(|(r, j)| (*r, j));
    lines(seeds::several(results), &columns::goals(), items, &[])
}

/// A row for every agent and model of every run.
fn costs(results: &Results) -> String {
    let parts = |r| spend::parts(r).into_iter().map(move |p| (r, p));
    let all: Vec<_> = results.runs.iter().flat_map(parts).collect();
    lines(seeds::several(results), columns::COSTS, all.iter().map(|(r, p)| (*r, p)), &[])
}

/// The head, and a line for each item of a run.
fn lines<'a, T: 'a>(
    seeded: bool,
    columns: &[Column<T>],
    items: impl Iterator<Item = (&'a RunRecord, &'a T)>,
    wide: &[Wide<T>],
) -> String {
    let head = ["scenario", "strategy", "model"]
        .into_iter()
        .chain(columns.iter().map(|(name, _)| *name))
        .chain(wide.iter().map(|(name, _)| *name))
        .chain(["summariser"])
        .chain(seeded.then_some("seed"));
    let rows = items.map(|(r, item)| {
        [&r.scenario.id, &r.strategy.label, &r.model]
            .into_iter()
            .map(ToCell::cell)
            .chain(columns.iter().map(|(_, cell)| cell(item)))
            .chain(wide.iter().map(move |(_, cell)| cell(r, item)))
            .chain([r.summariser.cell()])
            .chain(seed(r, seeded))
    });
    write(head, rows)
}

/// The fact with the words around it where it arises.
fn fact_text(run: &RunRecord, pair: &FactRecord) -> Cell {
    let life = run.lives.iter().find(|l| l.fact == pair.fact);
    life.filter(|l| !l.text.is_empty()).map(|l| l.text.clone()).cell()
}

/// The last column where runs were repeated with several seeds.
fn seed(r: &RunRecord, seeded: bool) -> Option<Cell> {
    seeded.then(|| r.seed.cell())
}

fn text(cell: Cell) -> String {
    match cell {
        Cell::Int(n) => n.to_string(),
        Cell::Real(x) => fmt::exact(x),
        Cell::Word(w) => w,
        Cell::Na => "n/a".into(),
    }
}

fn write<'a>(
    head: impl Iterator<Item = &'a str>,
    rows: impl Iterator<Item = impl Iterator<Item = Cell>>,
) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(head).expect("writing to memory");
    for row in rows {
        out.write_record(row.map(text)).expect("writing to memory, rows as long as the head");
    }
    let bytes = out.into_inner().expect("writing to memory");
    String::from_utf8(bytes).expect("made of strings")
}

/// The text of one file, by its name.
#[cfg(test)]
pub(crate) fn of(name: &str, results: &Results) -> String {
    let (_, text) = FILES.iter().find(|(file, _)| *file == name).expect("a file of that name");
    text(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const CONTRACT: &str = "scenario,strategy,model,status,steps_completed,steps_total,requests,compactions,summary_calls,input_tokens,\
        cache_read_tokens,cache_write_tokens,output_tokens,task_tokens,peak_context_tokens,saved_pct,cost_usd,cost_saved_pct,\
        prefix_stability,invalidated_tokens,cache_read_ratio,blocked_ms,total_ms,step_p50_ms,step_p95_ms,compaction_p50_ms,\
        compaction_p95_ms,retention_pct,summary_retention_pct,retention_goal_pct,retention_constraint_pct,retention_artifact_pct,\
        retention_decision_pct,retention_error_pct,retention_value_pct,retention_todo_pct,retention_superseded_pct,reread_tokens,\
        extra_requests,provider_overflows,user_interventions,trigger_error_tokens,integrity_failures";

    #[test]
    fn columns_begin_as_the_contract_says() {
        assert!(summary(&sample::results()).lines().next().unwrap().starts_with(CONTRACT));
        assert!(summary(&Results::default()).starts_with(CONTRACT));
    }

    #[test]
    fn unknown_is_never_zero_and_hostile_labels_survive() {
        let results = sample::results();
        let text = summary(&results);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let head = reader.headers().unwrap().clone();
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), results.runs.len());
        let column = |name: &str| head.iter().position(|h| h == name).unwrap();
        let none = rows.iter().find(|r| &r[1] == "none").unwrap();
        assert_eq!(&none[column("saved_pct")], "n/a");
        assert_eq!(&none[column("status")], "overflow");
        assert!(rows.iter().any(|r| &r[1] == "x<&\"y"));
    }

    #[test]
    fn a_pair_that_cannot_exist_has_no_figures() {
        let mut results = sample::results();
        results.runs.truncate(1);
        results.runs[0].status = crate::record::Status::NotApplicable;
        let text = summary(&results);
        let row = text.lines().nth(1).unwrap();
        assert!(row.split(',').skip(3).all(|c| c == "n/a"), "{row}");
    }

    #[test]
    fn the_other_files_have_a_row_each() {
        let results = sample::results();
        let count = |text: String| {
            csv::Reader::from_reader(text.as_bytes()).records().map(Result::unwrap).count()
        };
        assert_eq!(
            count(of("requests.csv", &results)),
            results.runs.iter().map(|r| r.requests.len()).sum::<usize>()
        );
        assert_eq!(
            count(of("compactions.csv", &results)),
            results.runs.iter().map(|r| r.compactions.len()).sum::<usize>()
        );
        assert_eq!(count(of("facts.csv", &results)), results.runs.len());
        assert!(of("compactions.csv", &results).contains(",summarise,summary,mid_turn,"));
    }
}
