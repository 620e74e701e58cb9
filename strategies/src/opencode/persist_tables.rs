//! OpenCode's tables (docs/sources/opencode.md §7, docs/sources/chat-history.md §4.1): `session`,
//! `message`, `part`, each with JSON, in write-ahead mode.
//!
//! Keys cascade: deleting a session permanently deletes its messages and parts. Messages are read
//! newest first, 50 at a time.
//!
//! OpenCode's older tree of files (docs/sources/peers-and-metrics.md §4):
//! `storage/session/<project>/<session>.json`, `storage/message/<session>/<message>.json`,
//! `storage/part/<message>/<part>.json`.
//!
//! Files are written in place, so a crash or a full disk can leave an unreadable file, which is
//! skipped with a note. A result that does not fit loses the call in the same file. Names sort by
//! time, so loading starts with the newest as in the tables; the folders have to be listed
//! completely.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctxbench_util::files::walk;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::persist::{Drawer, OpenCodeStore, SESSION, StoredRow};
use crate::persist::{PersistError, PersistFormat, Result, jsonl};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "opencode-tables",
    about: "SQLite: messages and parts as JSON, keys that cascade; loading stops at the newest \
        finished compaction",
    open: |dir, seed| Ok(Box::new(OpenCodeStore::new(Tables::open(dir)?, seed)?)),
};

/// Number of messages read at a time (docs/sources/opencode.md §7).
const PAGE: usize = 50;

const TABLES: &str = include_str!("tables.sql");

pub(super) struct Tables {
    path: PathBuf,
    pub(super) db: Connection,
}

impl Tables {
    pub(super) fn open(dir: &Path) -> Result<Tables> {
        std::fs::create_dir_all(dir).map_err(PersistError::io(dir, "make the folder"))?;
        let path = dir.join("opencode.db");
        let failed = |doing| PersistError::sql(&path, doing);
        let db = Connection::open(&path).map_err(failed("open it"))?;
        db.busy_timeout(Duration::from_secs(5)).map_err(failed("open it"))?;
        db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(failed("open it"))?;
        db.execute_batch("PRAGMA foreign_keys = ON").map_err(failed("open it"))?;
        db.execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} COMMIT"))
            .map_err(failed("make its tables"))?;
        db.execute(
            "INSERT OR IGNORE INTO session (id, project_id, slug, directory, title, version, \
             time_created, time_updated)
             VALUES (?1, 'global', 'session', '/', 'session', '1.18.33', 0, 0)",
            [SESSION],
        )
        .map_err(failed("begin a session"))?;
        Ok(Tables { path, db })
    }
}

impl Drawer for Tables {
    fn store_object(
        &mut self,
        id: &str,
        message: Option<&str>,
        at: u64,
        object: &Value,
    ) -> Result<()> {
        let (row, doing) = match message {
            None => (
                "message (id, session_id, time_created, time_updated, data) VALUES (?2",
                "store a message",
            ),
            Some(_) => (
                "part (message_id, id, session_id, time_created, time_updated, data) VALUES (?1, ?2",
                "store a part",
            ),
        };
        self.db
            .prepare_cached(&format!(
                "INSERT INTO {row}, ?3, ?4, ?4, ?5)
                 ON CONFLICT (id) DO UPDATE SET data = excluded.data, time_updated = \
                 excluded.time_updated",
            ))
            .and_then(|mut q| {
                q.execute(params![message, id, SESSION, at as i64, object.to_string()])
            })
            .map(|_| ())
            .map_err(PersistError::sql(&self.path, doing))
    }

    fn page(&self, before: Option<&str>) -> Result<(Vec<StoredRow>, u64)> {
        let mut bytes = 0;
        let mut out = Vec::new();
        let mut read = || -> rusqlite::Result<()> {
            let mut messages = self.db.prepare_cached(
                "SELECT id, data FROM message WHERE session_id = ?1 AND (?2 IS NULL OR id < ?2) \
                 ORDER BY id DESC LIMIT ?3",
            )?;
            let mut parts = self
                .db
                .prepare_cached("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id")?;
            let row = |r: &rusqlite::Row<'_>| -> rusqlite::Result<(String, String)> {
                Ok((r.get(0)?, r.get(1)?))
            };
            let found: Vec<(String, String)> = messages
                .query_map(params![SESSION, before, PAGE as i64], row)?
                .collect::<Result<_, _>>()?;
            for (id, data) in found {
                let of: Vec<(String, String)> =
                    parts.query_map([&id], row)?.collect::<Result<_, _>>()?;
                bytes += (id.len()
                    + data.len()
                    + of.iter().map(|(i, d)| i.len() + d.len()).sum::<usize>())
                    as u64;
                let parse = |text: &str| serde_json::from_str(text).unwrap_or_default();
                out.push(StoredRow {
                    info: parse(&data),
                    parts: of.into_iter().map(|(i, d)| (i, parse(&d))).collect(),
                    id,
                });
            }
            Ok(())
        };
        read().map_err(PersistError::sql(&self.path, "read messages"))?;
        Ok((out, bytes))
    }

    fn size(&self) -> u64 {
        jsonl::size(&self.path) + jsonl::size(&self.path.with_extension("db-wal"))
    }
}

pub(crate) const FILES: PersistFormat = PersistFormat {
    name: "opencode-files",
    about: "a JSON file per message and per part (older versions)",
    open: |dir, seed| Ok(Box::new(OpenCodeStore::new(FileTree::open(dir)?, seed)?)),
};

struct FileTree {
    root: PathBuf,
}

impl FileTree {
    fn open(dir: &Path) -> Result<FileTree> {
        let root = dir.join("storage");
        let session = root.join("session/global").join(format!("{SESSION}.json"));
        for folder in
            [root.join("session/global"), root.join("message").join(SESSION), root.join("part")]
        {
            std::fs::create_dir_all(&folder)
                .map_err(PersistError::io(&folder, "make the folder"))?;
        }
        if !session.exists() {
            write(
                &session,
                &json!({"id": SESSION, "projectID": "global", "directory": "/", "title": "session", "version": "1.0"}),
            )?;
        }
        Ok(FileTree { root })
    }

    fn message(&self, id: &str) -> PathBuf {
        self.root.join("message").join(SESSION).join(format!("{id}.json"))
    }
}

/// Writes in place: opening truncates the file, and the error says so.
fn write(path: &Path, value: &Value) -> Result<()> {
    let mut file = File::create(path).map_err(PersistError::io(path, "open it"))?;
    file.write_all(value.to_string().as_bytes()).map_err(PersistError::cut(path, "write it"))
}

/// Returns the names of the `.json` files of a folder without the extension, sorted. Empty if the
/// folder is missing.
fn names(dir: &Path) -> Vec<String> {
    let name =
        |e: std::fs::DirEntry| e.file_name().to_str()?.strip_suffix(".json").map(str::to_string);
    let mut out: Vec<String> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().filter_map(name).collect();
    out.sort();
    out
}

impl Drawer for FileTree {
    fn store_object(
        &mut self,
        id: &str,
        message: Option<&str>,
        _: u64,
        object: &Value,
    ) -> Result<()> {
        let Some(message) = message else { return write(&self.message(id), object) };
        let dir = self.root.join("part").join(message);
        std::fs::create_dir_all(&dir).map_err(PersistError::io(&dir, "make the folder"))?;
        write(&dir.join(format!("{id}.json")), object)
    }

    fn page(&self, before: Option<&str>) -> Result<(Vec<StoredRow>, u64)> {
        let mut bytes = 0;
        let mut read = |path: &Path| -> Result<Option<Value>> {
            let text = jsonl::text(path)?;
            bytes += text.len() as u64;
            Ok(serde_json::from_str(&text).ok())
        };
        let mut out = Vec::new();
        let ids = names(&self.root.join("message").join(SESSION));
        for id in
            ids.into_iter().rev().filter(|id| before.is_none_or(|b| id.as_str() < b)).take(PAGE)
        {
            let info = read(&self.message(&id))?.unwrap_or_default();
            let dir = self.root.join("part").join(&id);
            let mut parts = Vec::new();
            for p in names(&dir) {
                if let Some(v) = read(&dir.join(format!("{p}.json")))? {
                    parts.push((p, v));
                }
            }
            out.push(StoredRow { id, info, parts });
        }
        Ok((out, bytes))
    }

    fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        for path in walk(&self.root).unwrap_or_default() {
            let text = jsonl::text(&path).unwrap_or_default();
            if let Err(e) = serde_json::from_str::<Value>(&text) {
                let name = path.strip_prefix(&self.root).unwrap_or(&path).display();
                let bytes = text.len();
                out.push(format!(
                    "{name} ({bytes} bytes) was cut off while it was written and was skipped: {e}"
                ));
            }
        }
        out
    }

    fn size(&self) -> u64 {
        walk(&self.root).unwrap_or_default().iter().map(|path| jsonl::size(path)).sum()
    }
}
