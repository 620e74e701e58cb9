//! Databases in which agents keep their sessions, opened read-only.

use std::cell::Cell;
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::ffi::{Error, SQLITE_TOOBIG};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use super::source::{self, DATABASE, log_of};
use super::unpack::{MAX_HELD_BYTES, Packing, READINGS, max_unpacked};
use crate::formats::prelude::*;

/// Returns whether a file is a database with these tables.
pub(super) fn has_tables(head: &Head, tables: &[&str]) -> bool {
    let has = |table: &&str| {
        let ends = ["{} ", "{}(", "`{}`", "\"{}\"", "IF NOT EXISTS {} "];
        ends.iter().any(|end| head.text.contains(&format!("TABLE {}", end.replace("{}", table))))
    };
    head.text.starts_with(DATABASE) && tables.iter().all(has)
}

/// Database of a program.
pub(super) struct Database<'a> {
    pub(super) connection: Connection,
    file: &'a str,
    title: &'static str,
    /// Bytes that it may still give. A view may give rows for ever, and a packed value may be large.
    left: Cell<u64>,
}

impl<'a> Database<'a> {
    /// Opens the database of the program with this title. Fails for sources that are not on disk.
    pub(super) fn open(source: &'a Source<'_>, title: &'static str) -> Result<Self, InputError> {
        let file = source.name();
        let path =
            source.path().ok_or_else(|| unreadable(&"it is not a file on disk", title, file))?;
        let connection = connect(path).map_err(|e| unreadable(&e, title, file))?;
        let bytes =
            [path, &log_of(path)].map(|file| std::fs::metadata(file).map_or(0, |m| m.len()));
        let left = Cell::new(max_unpacked(bytes.iter().sum()).saturating_mul(READINGS));
        Ok(Database { connection, file, title, left })
    }

    /// Describes why a query failed.
    pub(super) fn failed(&self, e: rusqlite::Error) -> InputError {
        if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
            self.left.set(0);
        }
        unreadable(&e, self.title, self.file)
    }

    /// Returns a value of a row, see [`value`]. Fails if the database has given too much.
    pub(super) fn value(&self, row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Value>> {
        let value = value(row, column);
        let bytes = value.as_ref().and_then(Value::as_str).map_or(0, str::len);
        let left = self.left.get().checked_sub(VALUE_BYTES + bytes as u64);
        self.left.set(left.unwrap_or_default());
        let why = || Some("it gives more than a database of its size does".to_string());
        let error = || rusqlite::Error::SqliteFailure(Error::new(SQLITE_TOOBIG), why());
        left.map(|_| value).ok_or_else(error)
    }

    /// Returns the sessions of a table, with these columns of their ids and of their parents' ids.
    pub(super) fn sessions(
        &self,
        table: &str,
        [id, parent]: [&str; 2],
        columns: &str,
        rest: &str,
    ) -> Result<Vec<Stored>, InputError> {
        let rows = self.rows(table, &format!("{id}, {parent}, {columns}"), rest, None)?;
        let stored = |row: Map<String, Value>| Stored {
            id: string(&row, id).unwrap_or_default(),
            parent: string(&row, parent),
            call: None,
            row,
        };
        Ok(rows.into_iter().map(stored).collect())
    }

    /// Returns rows of a table as objects of those `columns` that it has and that are not null.
    /// `columns` is a list as in SQL; `rest` selects and sorts the rows, with `?1` for the parameter.
    pub(super) fn rows(
        &self,
        table: &str,
        columns: &str,
        rest: &str,
        parameter: Option<&str>,
    ) -> Result<Vec<Map<String, Value>>, InputError> {
        let columns: Vec<&str> = columns.split(", ").collect();
        let read = || {
            let sql = format!("SELECT name FROM pragma_table_info('{table}')");
            let mut statement = self.connection.prepare_cached(&sql)?;
            let names = statement.query_map([], |row| Ok(value(row, 0)))?;
            let names = names.collect::<rusqlite::Result<Vec<Option<Value>>>>()?;
            let has = |name: &str| name == "rowid" || names.iter().flatten().any(|n| n == name);
            let found: Vec<&str> =
                columns.iter().map(|c| if has(c) { c } else { "NULL" }).collect();
            let sql = format!("SELECT {} FROM {table} {rest}", found.join(", "));
            let object = |row: &Row<'_>| {
                let member = |(n, name): (usize, &&str)| {
                    Some(self.value(row, n).transpose()?.map(|value| (name.to_string(), value)))
                };
                columns.iter().enumerate().filter_map(member).collect()
            };
            let mut statement = self.connection.prepare_cached(&sql)?;
            let rows = statement.query_map(rusqlite::params_from_iter(parameter), object)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|e| self.failed(e))
    }
}

fn unreadable(why: &dyn std::fmt::Display, title: &str, file: &str) -> InputError {
    let (what, expected) = (format!("it cannot be read ({why})"), format!("a database of {title}"));
    let fix = format!("close {title}, and copy it with its -wal file");
    InputError::new(1, what, expected, fix).at(file)
}

/// Opens a database read-only, guarded against hostile content.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let mut db = open(path)?;
    guard(&mut db, MAX_STEPS)?;
    Ok(db)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if log_of(path).exists() {
        return Connection::open_with_flags(path, flags);
    }
    // No program writes to it, so nothing is locked and no file is created.
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let name: String = bytes.map(|byte| format!("%{byte:02x}")).collect();
    let uri = format!("file:{name}?immutable=1");
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

/// Memory of a value without its text, bytes.
const VALUE_BYTES: u64 = 64;

/// Maximum number of steps of SQLite's virtual machine per database, about ten seconds of work. A
/// view could run forever.
const MAX_STEPS: u64 = 1_000_000_000;

/// Protects against a hostile database: its schema cannot call functions with side effects, and a
/// query fails after `max_steps` steps of all queries.
fn guard(db: &mut Connection, max_steps: u64) -> rusqlite::Result<()> {
    const INTERVAL: u32 = 100_000;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    let mut left = max_steps / u64::from(INTERVAL);
    let is_over = move || {
        left = left.saturating_sub(1);
        left == 0
    };
    db.progress_handler(INTERVAL as i32, Some(is_over))
}

/// Returns a number, or a text in UTF-8, which may be compressed.
pub(super) fn value(row: &Row<'_>, column: usize) -> Option<Value> {
    match row.get_ref(column).ok()? {
        ValueRef::Null => None,
        ValueRef::Integer(n) => Some(n.into()),
        ValueRef::Real(x) => Some(x.into()),
        ValueRef::Text(bytes) => String::from_utf8(bytes.to_vec()).ok().map(Value::from),
        ValueRef::Blob(bytes) => {
            let mut unpacked = bytes.to_vec();
            if let Some(packing) = Packing::detect(bytes) {
                unpacked.clear();
                let stream = packing.unpacked(bytes, bytes.len() as u64);
                stream.take(MAX_HELD_BYTES).read_to_end(&mut unpacked).ok()?;
            }
            Some(source::text_of(unpacked).into())
        }
    }
}

/// Parses the JSON in a column. Returns null if there is none.
pub(super) fn json_in(row: &Map<String, Value>, column: &str) -> Value {
    str_of(row, column).and_then(|text| escapes::from_str(text).ok()).unwrap_or_default()
}

/// Session in a store. That of a subagent has a parent, and the call that began it where the store
/// names it.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) call: Option<String>,
    pub(super) row: Map<String, Value>,
}

/// Passes on the sessions of a store, which are sorted by time. Those of subagents become windows of
/// their parents, before the result of their call. Those without a call are passed on separately,
/// and those without messages not at all.
pub(super) fn read_sessions(
    sessions: &[Stored],
    read: &dyn Fn(&Stored) -> Result<Recording, InputError>,
    sink: &mut Sink<'_>,
) -> Result<(), Ended> {
    let ids: HashSet<&str> = sessions.iter().map(|s| &*s.id).collect();
    let is_first = |s: &&Stored| s.parent.as_ref().is_none_or(|parent| !ids.contains(&**parent));
    let mut walk = Walk { sessions, read, done: HashSet::new() };
    for session in sessions.iter().filter(is_first).chain(sessions) {
        if walk.done.contains(&*session.id) {
            continue;
        }
        let mut recording = walk.session(session, 0);
        if let Ok(out) = &mut recording {
            let is_message = |s: &RecordingStep| {
                s.view != View::Calls && matches!(s.what, StepKind::Input(_) | StepKind::Reply(_))
            };
            if !out.steps.iter().any(is_message) {
                continue;
            }
            let id = &session.id;
            out.left_out.extend(session.parent.as_ref().map(|parent| {
                format!("{id} is a session of {parent}, which does not say where it was called")
            }));
        }
        sink(recording)?;
    }
    Ok(())
}

struct Walk<'a> {
    sessions: &'a [Stored],
    read: &'a dyn Fn(&Stored) -> Result<Recording, InputError>,
    done: HashSet<&'a str>,
}

const DEEPEST: usize = 8;

impl<'a> Walk<'a> {
    fn session(&mut self, session: &'a Stored, depth: usize) -> Result<Recording, InputError> {
        self.done.insert(&session.id);
        let mut out = (self.read)(session)?;
        out.id = Some(session.id.clone());
        for child in self.sessions.iter().filter(|s| s.parent.as_ref() == Some(&session.id)) {
            let place = out.steps.iter().position(|step| is_result_of(step, child));
            let Some(at) = place.filter(|_| depth < DEEPEST && !self.done.contains(&*child.id))
            else {
                continue;
            };
            let inner = self.session(child, depth + 1)?;
            let steps = inner.steps.into_iter().map(|step| {
                let agent = step.agent.or(Some(child.id.clone()));
                RecordingStep { agent, ..step }
            });
            out.steps.splice(at..at, steps);
            out.warnings.extend(inner.warnings);
        }
        Ok(out)
    }
}

/// Returns whether a step is the result of the call of a subagent: of the call that it names, or one
/// that names it.
fn is_result_of(step: &RecordingStep, child: &Stored) -> bool {
    let StepKind::Input(input) = &step.what else { return false };
    step.agent.is_none()
        && input.pieces.iter().any(|piece| match (piece, &child.call) {
            (MessagePart::Result { call_id, .. }, Some(call)) => call_id == call,
            (MessagePart::Result { pieces, .. }, None) => text_of(pieces).contains(&child.id),
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_that_gives_rows_for_ever_is_an_error_that_names_the_file() {
        let connection = Connection::open_in_memory().unwrap();
        let endless = "CREATE VIEW n AS WITH RECURSIVE n(i) AS \
                       (SELECT 'x' UNION ALL SELECT i FROM n) SELECT i FROM n";
        connection.execute_batch(endless).unwrap();
        let left = Cell::new(100 * (VALUE_BYTES + 1));
        let db = Database { connection, file: "n.db", title: "Zed", left };
        assert_eq!(db.rows("n", "i", "LIMIT 99", None).unwrap().len(), 99);
        for _ in 0..2 {
            let error = db.rows("n", "i", "", None).unwrap_err().to_string();
            assert!(error.starts_with("n.db:1: it cannot be read (it gives more than"), "{error}");
        }
    }

    #[test]
    fn endless_query_ends_with_an_error() {
        let mut db = Connection::open_in_memory().unwrap();
        guard(&mut db, 1_000_000).unwrap();
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                       SELECT count(*) FROM n";
        let error = db.query_row(endless, [], |row| row.get::<_, i64>(0)).unwrap_err();
        assert!(error.to_string().contains("interrupted"), "{error}");
    }
}
