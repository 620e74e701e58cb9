//! Stores of OpenCode: a folder of JSON files, or a database.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::reader::{self, MessageRow, StoredSession, id_of, parent_of};
use crate::formats::prelude::*;

/// Reads the sessions of a store, callers first. Sessions of subagents are included in their
/// callers. A session that no caller includes is read separately. `messages` reads those of a session.
fn read_each(
    infos: &[Map<String, Value>],
    messages: &dyn Fn(&str) -> Result<Vec<MessageRow>, InputError>,
    sink: &mut Sink<'_>,
) -> Result<(), Ended> {
    let by_id: HashMap<String, &Map<String, Value>> =
        infos.iter().filter_map(|info| Some((id_of(info)?, info))).collect();
    let stored = |id: &str, info: &Map<String, Value>| -> Result<StoredSession, InputError> {
        Ok(StoredSession { info: info.clone(), messages: messages(id)? })
    };
    let mut find = |id: &str| stored(id, by_id.get(id)?).ok();
    let mut told: HashSet<String> = HashSet::new();
    let mut left: Vec<&Map<String, Value>> = infos.iter().collect();
    while !left.is_empty() {
        let known: HashSet<String> = left.iter().filter_map(|info| id_of(info)).collect();
        let waits = |info: &&Map<String, Value>| parent_of(info).is_some_and(|p| known.contains(p));
        let (mut later, mut now): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
        if now.is_empty() {
            // The parents form a cycle.
            now.extend(later.pop());
        }
        for info in now {
            let Some(id) = id_of(info).filter(|id| !told.contains(id)) else { continue };
            let recording = stored(&id, info).map(|stored| {
                let mut out = Recording { id: Some(id.clone()), ..Recording::default() };
                if let Some(parent) = parent_of(info).filter(|p| told.contains(*p)) {
                    out.left_out.push(format!(
                        "{id} is a session of {parent}, which does not say where it was called"
                    ));
                }
                told.extend(reader::recording(stored, &mut find, &mut out));
                told.insert(id);
                out
            });
            sink(recording)?;
        }
        left = later;
    }
    Ok(())
}

/// Reads the sessions of a storage folder: `session/PROJECT/ID.json`, `message/SESSION/ID.json`,
/// `part/MESSAGE/ID.json`. Ids increase with time.
pub(super) fn folder(root: &Path, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let projects = listed(&root.join("session"));
    let files = projects.iter().flat_map(|p| if p.is_dir() { listed(p) } else { vec![p.clone()] });
    let mut infos = Vec::new();
    for path in files.filter(|p| p.extension().is_some_and(|e| e == "json")) {
        match object(&path) {
            Ok(info) => infos.push(info),
            Err(e) => sink(Err(e))?,
        }
    }
    let under = |kind: &str, id: &str| {
        let plain = Path::new(id).components().count() == 1;
        if plain { listed(&root.join(kind).join(id)) } else { Vec::new() }
    };
    let message = |(line, path): (usize, PathBuf)| {
        let info = object(&path).ok()?;
        let id = id_of(&info)?;
        let parts = under("part", &id).iter().filter_map(|p| object(p).ok()).collect();
        Some(MessageRow { line, info, parts })
    };
    let messages = |id: &str| (1..).zip(under("message", id)).filter_map(message).collect();
    read_each(&infos, &|id| Ok(messages(id)), sink)
}

fn object(path: &Path) -> Result<Map<String, Value>, InputError> {
    let source = Source::at(path);
    let text = source.text()?;
    escapes::from_str(&text).map_err(|e| {
        let what = format!("not readable as JSON ({e})");
        InputError::new(e.line().max(1), what, "an object that OpenCode wrote", "remove the file")
            .at(source.name())
    })
}

/// Reads the sessions of a database, which is opened read-only.
pub(super) fn database(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let wrong = |what: String| {
        let expected = "a database of OpenCode, with the tables session, message and part";
        InputError::new(1, what, expected, "close OpenCode, and copy it with its -wal file")
            .at(source.name())
    };
    let failed = |e: rusqlite::Error| wrong(format!("it cannot be read ({e})"));
    let path =
        source.path().ok_or_else(|| wrong("a database that is not a file on disk".into()))?;
    let db = open_database(path).map_err(failed)?;
    let infos = sessions(&db).map_err(failed)?;
    read_each(&infos, &|id| messages(&db, id).map_err(failed), sink)
}

/// Opens a database of a program read-only and guarded against hostile content.
pub(in super::super) fn open_database(path: &Path) -> rusqlite::Result<Connection> {
    let mut db = open(path)?;
    guard(&mut db, MAX_STEPS)?;
    Ok(db)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let mut log: OsString = path.into();
    log.push("-wal");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if Path::new(&log).exists() {
        return Connection::open_with_flags(path, flags);
    }
    // No program writes to it, so nothing is locked and no file is created.
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let name: String = bytes.map(|byte| format!("%{byte:02x}")).collect();
    let uri = format!("file:{name}?immutable=1");
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)
}

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

/// Returns the ids, titles and callers of the sessions, in chronological order.
fn sessions(db: &Connection) -> rusqlite::Result<Vec<Map<String, Value>>> {
    let mut statement = db.prepare("SELECT name FROM pragma_table_info('session')")?;
    let names = statement.query_map([], |row| Ok(text(row, 0)))?;
    let names: Vec<Option<String>> = names.collect::<rusqlite::Result<_>>()?;
    let has = |name: &str| names.iter().flatten().any(|n| n == name);
    let columns = ["id", "title", "parent_id"].map(|c| if has(c) { c } else { "NULL" });
    let order = if has("time_created") { "time_created, id" } else { "id" };
    let [id, title, parent] = columns;
    let sql =
        format!("SELECT {id}, {title}, {parent} FROM session WHERE id <> '' ORDER BY {order}");
    let info = |row: &rusqlite::Row<'_>| {
        let value = |(n, name): (usize, &str)| Some((name.to_string(), text(row, n)?.into()));
        Ok(["id", "title", "parent_id"].into_iter().enumerate().filter_map(value).collect())
    };
    db.prepare(&sql)?.query_map([], info)?.collect()
}

fn messages(db: &Connection, session: &str) -> rusqlite::Result<Vec<MessageRow>> {
    let mut messages =
        db.prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id")?;
    let mut parts = db.prepare("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Map<String, Value>> {
        let data = text(row, 1).unwrap_or_default();
        let mut object: Map<String, Value> = escapes::from_str(&data).unwrap_or_default();
        object.insert("id".into(), row.get::<_, String>(0)?.into());
        Ok(object)
    };
    let mut out = Vec::new();
    for (line, info) in (1..).zip(messages.query_map([session], row)?) {
        let info = info?;
        let id = id_of(&info).unwrap_or_default();
        let parts = parts.query_map([id], row)?.collect::<rusqlite::Result<Vec<_>>>()?;
        out.push(MessageRow { line, info, parts });
    }
    Ok(out)
}

/// Returns a value that is text in UTF-8.
fn text(row: &rusqlite::Row<'_>, column: usize) -> Option<String> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => String::from_utf8(bytes.to_vec()).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
