//! OpenCode's tables (docs/sources/opencode.md §7, docs/sources/chat-history.md §4.1): `session`,
//! `message`, `part`, each with JSON, in write-ahead mode.
//!
//! Keys cascade: deleting a session permanently deletes its messages and parts. Messages are read
//! newest first, 50 at a time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, params};
use serde_json::Value;

use super::persist::{OpenCodeStore, SESSION, StoredRow};
use crate::persist::{PersistError, PersistFormat, Result, jsonl};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "opencode-tables",
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

    /// Stores or updates a message, or a part of `message`.
    pub(super) fn store_object(
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

    /// Returns a page of messages with their parts before an ID, newest first, and the bytes read.
    pub(super) fn page(&self, before: Option<&str>) -> Result<(Vec<StoredRow>, u64)> {
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

    pub(super) fn size(&self) -> u64 {
        jsonl::size(&self.path) + jsonl::size(&self.path.with_extension("db-wal"))
    }
}
