//! `results.sqlite`: the tables of the CSV files with exact numbers. `n/a` becomes NULL.

use std::iter;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::csv::{self, TABLES, Table};
use crate::error::ReportError;
use crate::metrics::Cell;
use crate::stored::StoredResults;

/// File name in a results folder.
pub(crate) const DATABASE_FILE: &str = "results.sqlite";

/// Type of a column: the simplest type that fits all cells. Typed readers of SQLite need one type
/// per column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Type {
    Unknown,
    Integer,
    Real,
    Text,
}

impl Type {
    fn from_cell(cell: &Cell) -> Type {
        match cell {
            Cell::Na => Type::Unknown,
            Cell::Int(_) => Type::Integer,
            Cell::Real(_) => Type::Real,
            Cell::Word(_) => Type::Text,
        }
    }

    /// Returns the common type. A numeric column with a text such as `never` stays numeric: a text
    /// column would turn its numbers into text, and a numeric column still stores text as text.
    fn with(self, other: Type) -> Type {
        match (self.min(other), self.max(other)) {
            (number @ (Type::Integer | Type::Real), Type::Text) => number,
            (_, most) => most,
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

pub(crate) fn write(stored: &StoredResults<'_>, path: &Path) -> Result<(), ReportError> {
    let types = types(stored)?;
    let failed = |e: rusqlite::Error| {
        let path = path.display();
        ReportError::Refused(format!("{path}: the database could not be written ({e})"))
    };
    let mut db = Connection::open(path).map_err(failed)?;
    let begin = || -> rusqlite::Result<()> {
        // The file is new and private; an interrupted write discards it.
        db.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")?;
        for (table, types) in TABLES.iter().zip(&types) {
            db.execute_batch(&create(table.name, &table.head(true), types, table.of_runs))?;
        }
        db.execute_batch("CREATE TABLE results (name TEXT PRIMARY KEY, value TEXT NOT NULL);")
    };
    begin().map_err(failed)?;
    let change = db.transaction().map_err(failed)?;
    let head = &stored.figures;
    let json = |value: serde_json::Result<String>| value.expect("plain data always serialises");
    for (name, value) in [
        ("version", head.version.to_string()),
        ("generator", head.generator.clone()),
        ("assumptions", json(serde_json::to_string(&head.assumptions))),
    ] {
        let sql = "INSERT INTO results VALUES (?1, ?2)";
        change.execute(sql, (name, value)).map_err(failed)?;
    }
    let insert = |(table, types): (&Table, &Vec<Type>)| {
        format!("INSERT INTO {} VALUES ({})", table.name, vec!["?"; types.len() + 1].join(", "))
    };
    let inserts: Vec<String> = TABLES.iter().zip(&types).map(insert).collect();
    csv::rows(stored, true, &mut |run, table, row| {
        let mut insert = change.prepare_cached(&inserts[table]).map_err(failed)?;
        let all = iter::once(Value::Integer(run)).chain(row.into_iter().map(value));
        insert.execute(params_from_iter(all)).map(drop).map_err(failed)
    })?;
    change.commit().map_err(failed)?;
    db.close().map_err(|(_, e)| failed(e))
}

/// Types of the columns of every table.
fn types(stored: &StoredResults<'_>) -> Result<Vec<Vec<Type>>, ReportError> {
    let unknown = |t: &Table| vec![Type::Unknown; t.head(true).len()];
    let mut types: Vec<Vec<Type>> = TABLES.iter().map(unknown).collect();
    csv::rows(stored, true, &mut |_, table, row| {
        for (known, cell) in types[table].iter_mut().zip(&row) {
            *known = known.with(Type::from_cell(cell));
        }
        Ok(())
    })?;
    Ok(types)
}

/// Statement that creates a table. `run` numbers the rows of `summary` from 1; the other tables
/// refer to it.
fn create(name: &str, columns: &[&str], types: &[Type], of_runs: bool) -> String {
    let columns = columns.iter().zip(types);
    let columns: Vec<String> =
        columns.map(|(name, is)| format!("\"{name}\" {}", is.word())).collect();
    let key = if of_runs { "INTEGER PRIMARY KEY" } else { "INTEGER NOT NULL" };
    format!("CREATE TABLE {name} (run {key}, {})", columns.join(", "))
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
    use crate::record::BreakEven;
    use crate::testing;

    #[test]
    fn it_has_the_rows_of_the_csv_files() {
        let mut results = testing::results();
        results.runs[0].status = crate::record::Status::NotApplicable;
        let never = results.runs.iter_mut().flat_map(|r| r.compactions.first_mut()).next().unwrap();
        never.break_even_calls = Some(BreakEven::Never);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.sqlite");
        write(&StoredResults::new(&results, &results.runs).unwrap(), &path).unwrap();
        let db = Connection::open(&path).unwrap();
        for table in &csv::TABLES {
            let all = testing::files("csv", &results).unwrap();
            let Some(csv) = all.iter().find(|f| f.file == format!("{}.csv", table.name)) else {
                let sql = format!("SELECT count(*) FROM {}", table.name);
                assert_eq!(db.query_row(&sql, (), |r| r.get::<_, i64>(0)), Ok(0), "{sql}");
                continue;
            };
            let mut reader = ::csv::Reader::from_reader(csv.text.as_bytes());
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
        // A text among numbers keeps the column numeric.
        let count = |sql: &str| db.query_row(sql, (), |r| r.get::<_, i64>(0)).unwrap();
        let all = count("SELECT count(*) FROM compactions");
        assert_eq!(count("SELECT count(*) FROM compactions WHERE break_even_calls < 5"), all - 1);
    }
}
