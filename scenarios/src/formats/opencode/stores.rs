//! Stores of OpenCode: a folder of JSON files, or a database.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::FORMAT;
use super::reader::{self, MessageRow, StoredSession, id_of, parent_of};
use crate::formats::database::Database;
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
    escapes::from_str(text).map_err(|e| {
        let what = format!("not readable as JSON ({e})");
        InputError::new(e.line().max(1), what, "an object that OpenCode wrote", "remove the file")
            .at(source.name())
    })
}

/// Reads the sessions of a database, in chronological order.
pub(super) fn database(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let db = Database::open(source, FORMAT.title)?;
    let columns = "id, title, parent_id, time_created";
    let mut infos = db.rows("session", columns, "WHERE id <> ''", None)?;
    let created = |info: &Map<String, Value>| info.get("time_created").and_then(Value::as_i64);
    infos.sort_by_cached_key(|info| (created(info), id_of(info)));
    read_each(&infos, &|id| messages(&db, id).map_err(|e| db.failed(e)), sink)
}

fn messages(db: &Database<'_>, session: &str) -> rusqlite::Result<Vec<MessageRow>> {
    let prepare = |sql| db.connection.prepare(sql);
    let mut messages =
        prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id")?;
    let mut parts = prepare("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id")?;
    let row = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Map<String, Value>> {
        let data = db.value(row, 1)?;
        let data = data.as_ref().and_then(Value::as_str).unwrap_or_default();
        let mut object: Map<String, Value> = escapes::from_str(data).unwrap_or_default();
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
