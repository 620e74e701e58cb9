//! Where OpenCode keeps its sessions: a folder of JSON files, or a database.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value};

use super::super::recording::Recording;
use super::super::{Sink, Source};
use super::{Message, Stored, id_of, parent_of, reader};
use crate::error::{Fault, InputError};
use crate::escapes;

/// A session that a store holds.
struct Held {
    id: String,
    /// Whose subagent it is.
    parent: Option<String>,
}

/// Reads the sessions of a store. Those of subagents are told with their callers', which come
/// first; what no caller tells of is read by itself.
fn each(
    mut left: Vec<Held>,
    find: &mut dyn FnMut(&str) -> Result<Option<Stored>, InputError>,
    sink: &mut Sink<'_>,
) {
    let mut told: HashSet<String> = HashSet::new();
    while !left.is_empty() {
        let known: HashSet<String> = left.iter().map(|held| held.id.clone()).collect();
        let waits = |held: &Held| held.parent.as_ref().is_some_and(|p| known.contains(p));
        let (mut later, mut now): (Vec<_>, Vec<_>) = left.into_iter().partition(waits);
        if now.is_empty() {
            // Parents in a circle.
            now.extend(later.pop());
        }
        for Held { id, parent } in now {
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
            if sink(recording).is_break() {
                return;
            }
        }
        left = later;
    }
}

/// The sessions of a storage folder: `session/PROJECT/ID.json`, `message/SESSION/ID.json`,
/// `part/MESSAGE/ID.json`.
pub(super) fn folder(root: &Path, sink: &mut Sink<'_>) {
    let projects = listed(&root.join("session"));
    let files = projects.iter().flat_map(|p| if p.is_dir() { listed(p) } else { vec![p.clone()] });
    let stem = |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned());
    let files = files.filter(|p| p.extension().is_some_and(|e| e == "json"));
    let files: Vec<(String, PathBuf)> = files.filter_map(|p| Some((stem(&p)?, p))).collect();
    // One that is damaged is said to be so when its turn comes.
    let parent = |path: &Path| parent_of(&object(path).ok()?).map(str::to_string);
    let held = files.iter().map(|(id, p)| Held { id: id.clone(), parent: parent(p) }).collect();
    let by_id: HashMap<&str, &PathBuf> = files.iter().map(|(id, p)| (&**id, p)).collect();
    let mut find = |id: &str| match by_id.get(id) {
        Some(path) => Ok(of_folder(root, object(path)?)),
        None => Ok(None),
    };
    each(held, &mut find, sink);
}

fn of_folder(root: &Path, info: Map<String, Value>) -> Option<Stored> {
    let id = id_of(&info)?;
    let under = |kind: &str, id: &str| {
        let plain = Path::new(id).components().count() == 1;
        if plain { listed(&root.join(kind).join(id)) } else { Vec::new() }
    };
    let message = |(line, path): (usize, PathBuf)| {
        let info = object(&path).ok()?;
        let id = id_of(&info)?;
        let parts = under("part", &id).iter().filter_map(|p| object(p).ok()).collect();
        Some(Message { line, info, parts })
    };
    let messages = (1..).zip(under("message", &id)).filter_map(message).collect();
    Some(Stored { info, messages })
}

/// What lies in a folder, by name; ids count up with time.
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
        Fault::new(e.line().max(1), what, "an object that OpenCode wrote", "remove the file")
            .at(source.name())
    })
}

/// The sessions of a database, which is opened for reading alone.
pub(super) fn database(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let wrong = |what: String| {
        let expected = "a database of OpenCode, with the tables session, message and part";
        Fault::new(1, what, expected, "close OpenCode, and copy it with its -wal file")
            .at(source.name())
    };
    let failed = |e: rusqlite::Error| wrong(format!("it cannot be read ({e})"));
    let path = source.path().ok_or_else(|| wrong("a database that is no file on disk".into()))?;
    let db = Database { db: open(path).map_err(failed)? };
    let held = db.sessions().map_err(failed)?;
    each(held, &mut |id| db.session(id).map_err(failed), sink);
    Ok(())
}

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let mut log: OsString = path.into();
    log.push("-wal");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if Path::new(&log).exists() {
        return Connection::open_with_flags(path, flags);
    }
    // Nobody writes to it: nothing is locked, and no file comes to stand beside it.
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

struct Database {
    db: Connection,
}

impl Database {
    /// In the order of their times.
    fn sessions(&self) -> rusqlite::Result<Vec<Held>> {
        let columns = self.columns("session")?;
        let has = |name: &str| columns.iter().any(|c| c == name);
        let parent = if has("parent_id") { "parent_id" } else { "NULL" };
        let order = if has("time_created") { "time_created, id" } else { "id" };
        let sql = format!("SELECT id, {parent} FROM session WHERE id <> '' ORDER BY {order}");
        let held = |row: &rusqlite::Row<'_>| Ok(Held { id: row.get(0)?, parent: row.get(1)? });
        self.db.prepare(&sql)?.query_map([], held)?.collect()
    }

    fn session(&self, id: &str) -> rusqlite::Result<Option<Stored>> {
        let mut infos = self.infos("SELECT * FROM session WHERE id = ?1", &[id])?;
        let Some(info) = infos.pop() else { return Ok(None) };
        Ok(Some(Stored { info, messages: self.messages(id)? }))
    }

    fn columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let statement = self.db.prepare(&format!("SELECT * FROM {table} LIMIT 0"))?;
        Ok(statement.column_names().map(str::to_string).collect())
    }

    /// Rows of sessions as objects: their texts by the names of the columns.
    fn infos(&self, sql: &str, with: &[&str]) -> rusqlite::Result<Vec<Map<String, Value>>> {
        let mut statement = self.db.prepare(sql)?;
        let names: Vec<String> = statement.column_names().map(str::to_string).collect();
        let rows = statement.query_map(rusqlite::params_from_iter(with), |row| {
            let mut info = Map::new();
            for (n, name) in names.iter().enumerate() {
                if let Ok(Some(text)) = row.get::<_, Option<String>>(n) {
                    info.insert(name.clone(), text.into());
                }
            }
            Ok(info)
        })?;
        rows.collect()
    }

    fn messages(&self, session: &str) -> rusqlite::Result<Vec<Message>> {
        let mut messages = self.db.prepare(
            "SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id",
        )?;
        let mut parts =
            self.db.prepare("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id")?;
        let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Map<String, Value>> {
            let data: String = row.get(1)?;
            let mut object: Map<String, Value> = escapes::from_str(&data).unwrap_or_default();
            object.insert("id".into(), row.get::<_, String>(0)?.into());
            Ok(object)
        };
        let mut out = Vec::new();
        for (line, info) in (1..).zip(messages.query_map([session], row)?) {
            let info = info?;
            let id = id_of(&info).unwrap_or_default();
            let parts = parts.query_map([id], row)?.collect::<rusqlite::Result<Vec<_>>>()?;
            out.push(Message { line, info, parts });
        }
        Ok(out)
    }
}
