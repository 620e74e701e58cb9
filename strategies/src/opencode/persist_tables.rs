//! OpenCode's tables (docs/sources/opencode.md §7, docs/sources/chat-history.md §4.1): `session`,
//! `message`, `part`, each with JSON, in write-ahead mode.
//!
//! Keys cascade: deleting a session permanently deletes its messages and parts. Messages are read
//! newest first, 50 at a time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};
use serde_json::Value;

use super::persist::{Drawer, OpenCodeStore, SESSION, StoredRow};
use crate::persist::{PersistError, PersistFormat, jsonl};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "opencode-tables",
    about: "SQLite: messages and parts as JSON, keys that cascade; loading stops at the newest \
        finished compaction",
    open: |dir, seed| Ok(Box::new(OpenCodeStore::new(Tables::open(dir)?, seed)?)),
};

/// Number of messages read at a time (docs/sources/opencode.md §7).
const PAGE: usize = 50;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS session (
    id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT, slug TEXT NOT NULL, directory \
    TEXT NOT NULL, title TEXT NOT NULL,
    version TEXT NOT NULL, revert TEXT, time_created INTEGER NOT NULL, time_updated INTEGER NOT \
    NULL, time_compacting INTEGER,
    time_archived INTEGER
);
CREATE TABLE IF NOT EXISTS message (
    id TEXT PRIMARY KEY, session_id TEXT NOT NULL REFERENCES session(id) ON DELETE CASCADE,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS message_session ON message (session_id, id);
CREATE TABLE IF NOT EXISTS part (
    id TEXT PRIMARY KEY, message_id TEXT NOT NULL REFERENCES message(id) ON DELETE CASCADE, \
    session_id TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS part_message ON part (message_id, id);
";

pub(super) struct Tables {
    path: PathBuf,
    pub(super) db: Connection,
}

impl Tables {
    pub(super) fn open(dir: &Path) -> Result<Tables, PersistError> {
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
    fn put(
        &mut self,
        id: &str,
        message: Option<&str>,
        at: u64,
        object: &Value,
    ) -> Result<(), PersistError> {
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

    fn page(&self, before: Option<&str>) -> Result<(Vec<StoredRow>, u64), PersistError> {
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
