//! Where OpenCode keeps its sessions: a folder of JSON files, or a database.

use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};
use serde_json::{Map, Value};

use super::super::recording::Recording;
use super::super::{Sink, Source};
use super::{Message, Stored, id_of, parent_of, reader};
use crate::error::{Fault, InputError};

/// The sessions of a storage folder: `session/PROJECT/ID.json`, `message/SESSION/ID.json`,
/// `part/MESSAGE/ID.json`.
pub(super) fn folder(root: &Path, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let projects = listed(&root.join("session"));
    let files = projects.iter().flat_map(|p| if p.is_dir() { listed(p) } else { vec![p.clone()] });
    let files: Vec<PathBuf> =
        files.filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
    let of_id = |id: &str| -> Option<Stored> {
        let file = files.iter().find(|f| f.file_stem().is_some_and(|s| s == id))?;
        of_folder(root, object(file).ok()?)
    };
    for file in &files {
        let info = match object(file) {
            Ok(info) => info,
            Err(e) => match sink(Err(e)) {
                ControlFlow::Break(()) => break,
                ControlFlow::Continue(()) => continue,
            },
        };
        // Those of subagents are told with their callers'.
        let told = parent_of(&info)
            .is_some_and(|p| files.iter().any(|f| f.file_stem().is_some_and(|s| s == p)));
        if told {
            continue;
        }
        let Some(stored) = of_folder(root, info) else { continue };
        let mut out = Recording { id: id_of(&stored.info), ..Recording::default() };
        reader::recording(stored, &mut |id| of_id(id), &mut out);
        if sink(Ok(out)).is_break() {
            break;
        }
    }
    Ok(())
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
    serde_json::from_str(&text).map_err(|e| {
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
    for info in db.sessions().map_err(failed)? {
        let id = id_of(&info);
        let read = id.as_deref().map_or(Ok(Vec::new()), |id| db.messages(id)).map_err(failed);
        let recording = read.map(|messages| {
            let mut out = Recording { id, ..Recording::default() };
            let mut find = |id: &str| db.session(id).ok().flatten();
            reader::recording(Stored { info, messages }, &mut find, &mut out);
            out
        });
        if sink(recording).is_break() {
            break;
        }
    }
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
    /// Those that nobody of the same database called, in the order of their times.
    fn sessions(&self) -> rusqlite::Result<Vec<Map<String, Value>>> {
        let columns = self.columns("session")?;
        let parent = if columns.iter().any(|c| c == "parent_id") {
            "parent_id IS NULL OR parent_id NOT IN (SELECT id FROM session)"
        } else {
            "1"
        };
        let order =
            if columns.iter().any(|c| c == "time_created") { "time_created, id" } else { "id" };
        self.infos(&format!("SELECT * FROM session WHERE {parent} ORDER BY {order}"), &[])
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
            let mut object: Map<String, Value> = serde_json::from_str(&data).unwrap_or_default();
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
