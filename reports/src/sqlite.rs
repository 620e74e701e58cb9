//! `results.sqlite`: the tables of the CSV files with exact numbers, and every row whole as JSON.
//! What the CSV files call `n/a` is NULL here.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::csv::TABLES;
use crate::formats::{Format, Make, ReportError};
use crate::metrics::Cell;
use crate::stored::Stored;

/// The format for `report --format sqlite`.
pub(crate) const FORMAT: Format =
    Format { name: "sqlite", prints: false, make: Make::Database(DATABASE_FILE, write) };

/// Name of the file in a results folder.
pub(crate) const DATABASE_FILE: &str = "results.sqlite";

/// What a column holds, the plainest that fits all its cells: who reads SQLite with types wants
/// one for each column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Type {
    Unknown,
    Integer,
    Real,
    Text,
}

impl Type {
    fn of(cell: &Cell) -> Type {
        match cell {
            Cell::Na => Type::Unknown,
            Cell::Int(_) => Type::Integer,
            Cell::Real(_) => Type::Real,
            Cell::Word(_) => Type::Text,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Type::Integer => "INTEGER",
            Type::Real => "REAL",
            Type::Unknown | Type::Text => "TEXT",
        }
    }
}

pub(crate) fn write(stored: &Stored<'_>, path: &Path) -> Result<(), ReportError> {
    let types = types(stored)?;
    let failed = |source| ReportError::Database { path: path.into(), source };
    let mut db = Connection::open(path).map_err(failed)?;
    let begin = || -> rusqlite::Result<()> {
        // The file is new and nobody else's: what breaks off is thrown away as a whole.
        db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
        for (table, types) in TABLES.iter().zip(&types) {
            db.execute_batch(&create(table.name, &table.head(true), types, table.of_runs))?;
        }
        db.execute_batch("CREATE TABLE results (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    };
    begin().map_err(failed)?;
    let change = db.transaction().map_err(failed)?;
    let head = &stored.figures;
    let json = |value: serde_json::Result<String>| value.expect("plain data always serialises");
    for (name, value) in [
        ("version", head.version.to_string()),
        ("generator", head.generator.clone()),
        ("assumptions", json(serde_json::to_string(&head.assumptions))),
        ("goals", json(serde_json::to_string(&head.goals))),
    ] {
        let sql = "INSERT INTO results VALUES (?1, ?2)";
        change.execute(sql, (name, value)).map_err(failed)?;
    }
    let mut number = 0;
    stored.sessions(&mut |session| {
        for run in session {
            number += 1;
            for (table, types) in TABLES.iter().zip(&types) {
                let marks = vec!["?"; types.len() + 1 + usize::from(table.of_runs)].join(", ");
                let sql = format!("INSERT INTO {} VALUES ({marks})", table.name);
                let mut insert = change.prepare_cached(&sql).map_err(failed)?;
                for row in table.whole(run, &head.goals, true) {
                    let whole =
                        table.of_runs.then(|| Value::Text(json(serde_json::to_string(run))));
                    let cells = row.into_iter().map(value).chain(whole);
                    let all = std::iter::once(Value::Integer(number)).chain(cells);
                    // One by one: SQLite copies what it is given, and a whole row is long.
                    for (at, value) in (1..).zip(all) {
                        insert.raw_bind_parameter(at, value).map_err(failed)?;
                    }
                    insert.raw_execute().map_err(failed)?;
                }
            }
        }
        Ok(())
    })?;
    change.commit().map_err(failed)?;
    db.close().map_err(|(_, e)| failed(e))
}

/// The types of the columns of every table.
fn types(stored: &Stored<'_>) -> Result<Vec<Vec<Type>>, ReportError> {
    let unknown = |t: &crate::csv::Table| vec![Type::Unknown; t.head(true).len()];
    let mut types: Vec<Vec<Type>> = TABLES.iter().map(unknown).collect();
    stored.sessions(&mut |session| {
        for run in session {
            for (table, types) in TABLES.iter().zip(&mut types) {
                for row in table.whole(run, &stored.figures.goals, true) {
                    for (known, cell) in types.iter_mut().zip(&row) {
                        *known = (*known).max(Type::of(cell));
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(types)
}

/// `run` numbers the rows of `summary` from 1; the other tables say by it whose rows theirs are.
fn create(name: &str, columns: &[&str], types: &[Type], of_runs: bool) -> String {
    let columns = columns.iter().zip(types);
    let columns: Vec<String> =
        columns.map(|(name, is)| format!("\"{name}\" {}", is.word())).collect();
    let (key, whole) = match of_runs {
        true => ("INTEGER PRIMARY KEY", ", record TEXT NOT NULL"),
        false => ("INTEGER NOT NULL", ""),
    };
    format!("CREATE TABLE {name} (run {key}, {}{whole})", columns.join(", "))
}

fn value(cell: Cell) -> Value {
    match cell {
        Cell::Na => Value::Null,
        Cell::Int(n) => i64::try_from(n).map_or(Value::Real(n as f64), Value::Integer),
        Cell::Real(x) => Value::Real(x),
        Cell::Word(w) => Value::Text(w),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RunRecord;
    use crate::{csv, sample};

    #[test]
    fn it_holds_what_results_and_csv_files_hold() {
        let mut results = sample::results();
        results.runs[0].status = crate::record::Status::NotApplicable;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.sqlite");
        write(&Stored::new(&results, &results.runs).unwrap(), &path).unwrap();
        let db = Connection::open(&path).unwrap();
        let rows: Vec<String> = db
            .prepare("SELECT record FROM summary ORDER BY run")
            .unwrap()
            .query_map((), |r| r.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let back: Vec<RunRecord> = rows.iter().map(|r| serde_json::from_str(r).unwrap()).collect();
        assert_eq!(back, results.runs);
        for table in &csv::TABLES {
            let text = csv::of(&format!("{}.csv", table.name), &results);
            let mut reader = ::csv::Reader::from_reader(text.as_bytes());
            let head: Vec<String> = reader.headers().unwrap().iter().map(Into::into).collect();
            let quoted: Vec<String> = head.iter().map(|c| format!("\"{c}\"")).collect();
            let sql =
                format!("SELECT {} FROM {} ORDER BY run, rowid", quoted.join(","), table.name);
            let mut select = db.prepare(&sql).unwrap();
            let mut found = select.query(()).unwrap();
            for line in reader.records() {
                let row = found.next().unwrap().unwrap();
                for (i, cell) in line.unwrap().iter().enumerate() {
                    let same = match row.get::<_, Value>(i).unwrap() {
                        Value::Null => cell == "n/a",
                        Value::Text(t) => t == cell,
                        Value::Integer(n) => n.to_string() == cell,
                        Value::Real(x) => (x - cell.parse::<f64>().unwrap()).abs() < 1e-6,
                        Value::Blob(_) => false,
                    };
                    assert!(same, "{}.{} is not {cell}", table.name, head[i]);
                }
            }
            assert!(found.next().unwrap().is_none(), "{}", table.name);
        }
        let types: Vec<String> = db
            .prepare("SELECT type FROM pragma_table_info('requests') WHERE name IN ('input_tokens', 'cost_usd', 'purpose')")
            .unwrap()
            .query_map((), |r| r.get(0))
            .unwrap()
            .map(Result::unwrap)
            .collect();
        assert_eq!(types, ["TEXT", "INTEGER", "REAL"]);
    }
}
