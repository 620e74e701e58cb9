//! Stores of OpenCode: a folder of JSON files, or a database.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

use super::reader::{self, MessageRow, StoredSession, id_of, parent_of};
use crate::formats::prelude::*;

/// Session in a store.
struct SessionRef {
    id: String,
    /// Session of the caller, if it is a subagent's.
    parent: Option<String>,
}

/// Reads the sessions of a store, callers first. Sessions of subagents are included in their
/// callers. A session that no caller includes is read separately.
fn read_each(
    mut left: Vec<SessionRef>,
    find: &mut dyn FnMut(&str) -> Result<Option<StoredSession>, InputError>,
    sink: &mut Sink<'_>,
) -> Result<(), Ended> {
    let mut told: HashSet<String> = HashSet::new();
    while !left.is_empty() {
        let known: HashSet<String> = left.iter().map(|held| held.id.clone()).collect();
        let waits = |held: &SessionRef| held.parent.as_ref().is_some_and(|p| known.contains(p));
        let (mut later, mut now): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
        if now.is_empty() {
            // The parents form a cycle.
            now.extend(later.pop());
        }
        for SessionRef { id, parent } in now {
            if told.contains(&id) {
                continue;
            }
            let recording = match find(&id) {
                Ok(None) => continue,
                Ok(Some(stored)) => {
                    let mut out = Recording { id: id_of(&stored.info), ..Recording::default() };
                    if let Some(parent) = parent.filter(|p| told.contains(p)) {
                        out.left_out.push(format!(
                            "{id} is a session of {parent}, which does not say where it was called"
                        ));
                    }
                    let mut of_id = |id: &str| find(id).ok().flatten();
                    told.extend(reader::recording(stored, &mut of_id, &mut out));
                    told.insert(id);
                    Ok(out)
                }
                Err(e) => Err(e),
            };
            sink(recording)?;
        }
        left = later;
    }
    Ok(())
}

/// Reads the sessions of a storage folder: `session/PROJECT/ID.json`, `message/SESSION/ID.json`,
/// `part/MESSAGE/ID.json`.
pub(super) fn folder(root: &Path, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let projects = listed(&root.join("session"));
    let files = projects.iter().flat_map(|p| if p.is_dir() { listed(p) } else { vec![p.clone()] });
    let stem = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
    let files = files.filter(|p| p.extension().is_some_and(|e| e == "json"));
    let files: Vec<(String, PathBuf)> = files.filter_map(|p| Some((stem(&p)?, p))).collect();
    // A damaged file is reported when it is read.
    let parent = |path: &Path| parent_of(&object(path).ok()?).map(str::to_string);
    let held =
        files.iter().map(|(id, p)| SessionRef { id: id.clone(), parent: parent(p) }).collect();
    let by_id: HashMap<&str, &PathBuf> = files.iter().map(|(id, p)| (&**id, p)).collect();
    let mut find = |id: &str| match by_id.get(id) {
        Some(path) => Ok(of_folder(root, object(path)?)),
        None => Ok(None),
    };
    read_each(held, &mut find, sink)
}

fn of_folder(root: &Path, info: Map<String, Value>) -> Option<StoredSession> {
    let id = id_of(&info)?;
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
    let messages = (1..).zip(under("message", &id)).filter_map(message).collect();
    Some(StoredSession { info, messages })
}

/// Returns the entries of a folder sorted by name. Ids increase with time.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    paths.sort();
    paths
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
    let db =
        open(path).and_then(|mut db| guard(&mut db, MAX_STEPS).map(|()| db)).map_err(failed)?;
    let rows = sessions(&db).map_err(failed)?;
    let held = rows.iter().filter_map(|info| {
        Some(SessionRef { id: id_of(info)?, parent: parent_of(info).map(str::to_string) })
    });
    let by_id: HashMap<String, &Map<String, Value>> =
        rows.iter().filter_map(|info| Some((id_of(info)?, info))).collect();
    let mut find = |id: &str| match by_id.get(id) {
        Some(info) => {
            let messages = messages(&db, id).map_err(failed)?;
            Ok(Some(StoredSession { info: (*info).clone(), messages }))
        }
        None => Ok(None),
    };
    read_each(held.collect(), &mut find, sink)
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let mut log: OsString = path.into();
    log.push("-wal");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if Path::new(&log).exists() {
        return Connection::open_with_flags(path, flags);
    }
    // No program writes to it, so nothing is locked and no file is created.
    let mut uri = String::from("file:");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.push_str(&format!("%{byte:02x}")),
            _ => uri.push(char::from(byte)),
        }
    }
    if !uri.is_ascii() {
        return Connection::open_with_flags(path, flags);
    }
    Connection::open_with_flags(uri + "?immutable=1", flags | OpenFlags::SQLITE_OPEN_URI)
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
