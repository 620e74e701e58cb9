//! A first store of sessions in SQLite (seeds/000, "Storage Schema"): sessions, messages, parts; nothing is ever erased.
//!
//! Write-ahead logging lets others read while one writes. Pruned parts and deleted messages are only marked. A compaction is a
//! boundary message: while it is being written it stops nothing, and once complete it holds the summary of all that lies before it.

mod error;
mod load;
mod part;
mod schema;
#[cfg(test)]
mod tests;
mod ulid;

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::block::Role;
pub use error::StoreError;
pub use load::{BATCH, LoadedMessage, LoadedPart, PRUNED};
pub use part::{NewPart, PartKind};
pub use ulid::{Ulid, Ulids};

/// Virtual or wall-clock time, ms since 1970; signed, as SQLite stores it.
pub type At = i64;

/// An open store.
pub struct Store {
    db: Connection,
    /// For messages to people.
    path: PathBuf,
    ids: Ulids,
}

/// What is known of a session when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Project it belongs to.
    pub project: String,
    /// Session it was forked from.
    pub parent: Option<Ulid>,
    /// A line for people.
    pub title: String,
    /// Working directory.
    pub directory: String,
}

impl Store {
    /// Opens a store, making the file if there is none. A file that is something else is left alone.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, Ulids::system())
    }

    /// Opens a store with ids and times from a given generator.
    pub fn open_with(path: impl AsRef<Path>, ids: Ulids) -> Result<Self, StoreError> {
        let path = path.as_ref().to_path_buf();
        schema::check_header(&path)?;
        let db = Connection::open(&path).map_err(|e| StoreError::sql(&path, "open it", e))?;
        Self::ready(db, path, ids)
    }

    /// A store that vanishes when it is dropped.
    pub fn open_in_memory(ids: Ulids) -> Result<Self, StoreError> {
        let path = PathBuf::from(":memory:");
        let db = Connection::open_in_memory().map_err(|e| StoreError::sql(&path, "open it", e))?;
        Self::ready(db, path, ids)
    }

    fn ready(mut db: Connection, path: PathBuf, ids: Ulids) -> Result<Self, StoreError> {
        schema::prepare(&mut db, &path)?;
        Ok(Store { db, path, ids })
    }

    /// Begins a session.
    pub fn create_session(&mut self, new: &NewSession) -> Result<Ulid, StoreError> {
        self.write("create a session", |tx, ids| {
            let (id, now) = (ids.next_id(), ids.now());
            tx.execute(
                "INSERT INTO sessions (id, project_id, parent_id, title, directory, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
                params![id.to_string(), new.project, new.parent.map(|p| p.to_string()), new.title, new.directory, now],
            )?;
            Ok(id)
        })
    }

    /// Appends a complete message with its parts. Returns the ids of the message and of its parts.
    pub fn append_message(&mut self, session: Ulid, role: Role, parts: &[NewPart]) -> Result<(Ulid, Vec<Ulid>), StoreError> {
        self.require_session(session)?;
        self.write("append a message", |tx, ids| insert_message(tx, ids, session, role, parts, true))
    }

    /// Begins a compaction here. Until it is finished it is not shown and stops nothing.
    pub fn begin_boundary(&mut self, session: Ulid) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        let marker = [NewPart::marker()];
        self.write("begin a compaction", |tx, ids| Ok(insert_message(tx, ids, session, Role::User, &marker, false)?.0))
    }

    /// Finishes a compaction: from now on loading stops at it and shows the summary in its place.
    pub fn finish_boundary(&mut self, boundary: Ulid, summary: &str) -> Result<(), StoreError> {
        let found = self.read("find a compaction", |db| {
            db.query_row(
                "SELECT m.session_id FROM messages m JOIN parts p ON p.message_id = m.id WHERE m.id = ?1 AND m.completed_at IS NULL AND p.kind = ?2",
                params![boundary.to_string(), PartKind::Marker.word()],
                |r| r.get::<_, String>(0),
            )
            .optional()
        })?;
        let session = found.ok_or(StoreError::NoBoundary { path: self.path.clone(), id: boundary })?;
        let part = NewPart::summary(summary);
        self.write("finish a compaction", |tx, ids| {
            let now = ids.now();
            insert_part(tx, ids, &session, boundary, &part)?;
            tx.execute("UPDATE messages SET completed_at = ?2 WHERE id = ?1", params![boundary.to_string(), now])?;
            tx.execute("UPDATE sessions SET compacted_at = ?2, updated_at = ?2 WHERE id = ?1", params![session, now])?;
            Ok(())
        })
    }

    /// A compaction that is complete at once: marker and summary.
    pub fn insert_boundary(&mut self, session: Ulid, summary: &str) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        let parts = [NewPart::marker(), NewPart::summary(summary)];
        self.write("insert a compaction", |tx, ids| {
            let (id, _) = insert_message(tx, ids, session, Role::User, &parts, true)?;
            tx.execute("UPDATE sessions SET compacted_at = ?2 WHERE id = ?1", params![session.to_string(), ids.now()])?;
            Ok(id)
        })
    }

    /// Marks a tool result as pruned at a time (ms). Loading shows a placeholder; the data stays.
    pub fn prune_part(&mut self, part: Ulid, at: At) -> Result<(), StoreError> {
        let id = part.to_string();
        let kind = self
            .read("find a part", |db| db.query_row("SELECT kind FROM parts WHERE id = ?1", [&id], |r| r.get::<_, String>(0)).optional())?;
        match kind {
            None => return Err(StoreError::NoPart { path: self.path.clone(), id: part }),
            Some(k) if k != PartKind::ToolResult.word() => {
                return Err(StoreError::NotAResult { path: self.path.clone(), id: part, kind: k });
            }
            Some(_) => {}
        }
        self.write("prune a part", |tx, _| {
            tx.execute("UPDATE parts SET compacted_at = ?2 WHERE id = ?1 AND compacted_at IS NULL", params![id, at]).map(|_| ())
        })
    }

    /// Goes back to a message, which is the last that stays: later ones, boundaries among them, are marked as deleted at a time (ms).
    pub fn rewind(&mut self, session: Ulid, to: Ulid, at: At) -> Result<usize, StoreError> {
        self.require_session(session)?;
        self.write("rewind a session", |tx, _| {
            tx.execute(
                "UPDATE messages SET deleted_at = ?3 WHERE session_id = ?1 AND id > ?2 AND deleted_at IS NULL",
                params![session.to_string(), to.to_string(), at],
            )
        })
    }

    /// Takes back what was marked as deleted at or after a time (ms).
    pub fn restore(&mut self, session: Ulid, since: At) -> Result<usize, StoreError> {
        self.require_session(session)?;
        self.write("restore messages", |tx, _| {
            tx.execute(
                "UPDATE messages SET deleted_at = NULL WHERE session_id = ?1 AND deleted_at >= ?2",
                params![session.to_string(), since],
            )
        })
    }

    fn require_session(&self, session: Ulid) -> Result<(), StoreError> {
        let found = self.read("find a session", |db| {
            db.query_row("SELECT 1 FROM sessions WHERE id = ?1 AND deleted_at IS NULL", [session.to_string()], |_| Ok(())).optional()
        })?;
        found.ok_or(StoreError::NoSession { path: self.path.clone(), id: session })
    }

    fn read<T>(&self, doing: &'static str, f: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        f(&self.db).map_err(|e| StoreError::sql(&self.path, doing, e))
    }

    /// All or nothing. New ids come after every id in the file, whoever wrote it and whatever the clock says.
    fn write<T>(
        &mut self,
        doing: &'static str,
        f: impl FnOnce(&Transaction<'_>, &mut Ulids) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let ids = &mut self.ids;
        let work = || {
            let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for table in ["messages", "parts"] {
                let newest: Option<String> = tx.query_row(&format!("SELECT max(id) FROM {table}"), [], |r| r.get(0))?;
                if let Some(id) = newest.and_then(|t| t.parse().ok()) {
                    ids.not_before(id);
                }
            }
            let out = f(&tx, ids)?;
            tx.commit()?;
            Ok(out)
        };
        work().map_err(|e| StoreError::sql(&self.path, doing, e))
    }
}

fn insert_message(
    tx: &Transaction<'_>,
    ids: &mut Ulids,
    session: Ulid,
    role: Role,
    parts: &[NewPart],
    complete: bool,
) -> rusqlite::Result<(Ulid, Vec<Ulid>)> {
    let (id, now, session) = (ids.next_id(), ids.now(), session.to_string());
    tx.execute(
        "INSERT INTO messages (id, session_id, role, created_at, completed_at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id.to_string(), session, part::role_word(role), now, complete.then_some(now)],
    )?;
    let part_ids = parts.iter().map(|p| insert_part(tx, ids, &session, id, p)).collect::<Result<_, _>>()?;
    tx.execute("UPDATE sessions SET updated_at = ?2 WHERE id = ?1", params![session, now])?;
    Ok((id, part_ids))
}

fn insert_part(tx: &Transaction<'_>, ids: &mut Ulids, session: &str, message: Ulid, part: &NewPart) -> rusqlite::Result<Ulid> {
    let id = ids.next_id();
    tx.execute(
        "INSERT INTO parts (id, message_id, session_id, kind, data, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![id.to_string(), message.to_string(), session, part.kind.word(), part.data.to_string(), ids.now()],
    )?;
    Ok(id)
}
