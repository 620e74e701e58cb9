//! The store of sessions in SQLite (docs/sources/openoxide.md §1.2): sessions, messages, parts,
//! checkpoints, usage.
//!
//! Write-ahead logging lets others read while one writes; writers take turns (`BEGIN IMMEDIATE`,
//! and a wait of seconds), and what a call has returned for is on the disk. Pruned parts, deleted
//! messages and deleted sessions are only marked; [`Store::vacuum`] removes what was deleted longer
//! ago than the retention, and nothing that a fork still stands on. A compaction is a boundary
//! message: while it is being written it stops nothing, and once complete it holds the summary of
//! all that lies before it.

mod boundary;
mod checkpoints;
mod compare;
mod delete;
mod error;
mod fork;
mod going_back;
mod ledger;
mod load;
#[cfg(test)]
mod model_tests;
mod overview;
mod part;
mod reading;
mod schema;
#[cfg(test)]
mod tests;
mod ulid;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

pub use checkpoints::{Checkpoint, NewCheckpoint, Place};
pub use compare::Parting;
use ctxbench_core::block::Role;
use ctxbench_core::files;
pub use delete::Vacuumed;
pub use error::StoreError;
pub use going_back::GivenUp;
pub use load::{BATCH, LoadedMessage, LoadedPart, PRUNED};
pub use overview::Overview;
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
    bytes_read: Cell<u64>,
}

/// What is known of a session when it begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// Project it belongs to.
    pub project: String,
    /// Session that it belongs to, such as the one that started a subagent. For a fork see
    /// [`Store::fork`].
    pub parent: Option<Ulid>,
    /// A line for people.
    pub title: String,
    /// Working directory.
    pub directory: String,
}

impl Store {
    /// Opens a store, making the file if there is none. A file that is something else is left
    /// alone.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, Ulids::system())
    }

    /// Opens a store with ids and times from a given generator.
    pub fn open_with(path: impl AsRef<Path>, ids: Ulids) -> Result<Self, StoreError> {
        let path = path.as_ref().to_path_buf();
        schema::check_header(&path)?;
        // It will hold what private files hold. Where this fails, SQLite says why.
        let _ = files::create_private(&path);
        let db = Connection::open(&path).map_err(|e| StoreError::sql(&path, "open it", e))?;
        Self::ready(db, path, ids)
    }

    /// Opens a store for reading. Nothing is written, neither to the file nor beside it; one of an
    /// earlier format is read through a copy in memory. A database without tables is no store.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let path = path.as_ref().to_path_buf();
        schema::check_header(&path)?;
        let db = reading::open(&path)?;
        Ok(Store { db, path, ids: Ulids::system(), bytes_read: Cell::new(0) })
    }

    /// A store that vanishes when it is dropped.
    pub fn open_in_memory(ids: Ulids) -> Result<Self, StoreError> {
        let path = PathBuf::from(":memory:");
        let db = Connection::open_in_memory().map_err(|e| StoreError::sql(&path, "open it", e))?;
        Self::ready(db, path, ids)
    }

    fn ready(mut db: Connection, path: PathBuf, ids: Ulids) -> Result<Self, StoreError> {
        schema::prepare(&mut db, &path)?;
        Ok(Store { db, path, ids, bytes_read: Cell::new(0) })
    }

    /// Begins a session.
    pub fn create_session(&mut self, new: &NewSession) -> Result<Ulid, StoreError> {
        self.write("create a session", |tx, ids| {
            let (id, now) = (ids.next_id(), ids.now());
            tx.execute(
                "INSERT INTO sessions (id, project_id, parent_id, title, directory, created_at, \
                 updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
                params![
                    id.to_string(),
                    new.project,
                    new.parent.map(|p| p.to_string()),
                    new.title,
                    new.directory,
                    now
                ],
            )?;
            Ok(id)
        })
    }

    /// Appends a complete message with its parts. Returns the ids of the message and of its parts.
    pub fn append_message(
        &mut self,
        session: Ulid,
        role: Role,
        parts: &[NewPart],
    ) -> Result<(Ulid, Vec<Ulid>), StoreError> {
        self.require_session(session)?;
        self.write("append a message", |tx, ids| {
            insert_message(tx, ids, session, New { role, complete: true, copied: false }, parts)
        })
    }

    /// Appends complete messages, all of them or none: for bringing in a session from elsewhere.
    /// Returns their ids.
    pub fn append_messages(
        &mut self,
        session: Ulid,
        messages: &[(Role, Vec<NewPart>)],
    ) -> Result<Vec<Ulid>, StoreError> {
        self.require_session(session)?;
        self.write("append messages", |tx, ids| {
            let one = |(role, parts): &(Role, Vec<NewPart>)| {
                Ok(insert_message(
                    tx,
                    ids,
                    session,
                    New { role: *role, complete: true, copied: false },
                    parts,
                )?
                .0)
            };
            messages.iter().map(one).collect()
        })
    }

    /// Marks a tool result as pruned at a time (ms). Loading shows a placeholder; the data stays.
    pub fn prune_part(&mut self, part: Ulid, at: At) -> Result<(), StoreError> {
        self.prune_part_as(part, at, None)
    }

    /// The same with words of one's own in its place, such as what is left of a cut result. Done
    /// again, the time stays the first one and the words become the new ones.
    pub fn prune_part_as(
        &mut self,
        part: Ulid,
        at: At,
        placeholder: Option<&str>,
    ) -> Result<(), StoreError> {
        let id = part.to_string();
        let kind = self.read("find a part", |db| {
            db.query_row("SELECT kind FROM parts WHERE id = ?1", [&id], |r| r.get::<_, String>(0))
                .optional()
        })?;
        match kind {
            None => return Err(StoreError::NoPart { path: self.path.clone(), id: part }),
            Some(k) if k != PartKind::ToolResult.word() => {
                return Err(StoreError::NotAResult { path: self.path.clone(), id: part, kind: k });
            }
            Some(_) => {}
        }
        self.write("prune a part", |tx, _| {
            let mark = "UPDATE parts SET compacted_at = coalesce(compacted_at, ?2), placeholder = \
                ?3 WHERE id = ?1";
            tx.execute(mark, params![id, at, placeholder]).map(|_| ())
        })
    }

    /// Refuses a message that is not one of the session's own, or was taken back.
    pub(crate) fn require_message(&self, session: Ulid, message: Ulid) -> Result<(), StoreError> {
        let found = self.read("find a message", |db| {
            let of =
                "SELECT 1 FROM messages WHERE id = ?1 AND session_id = ?2 AND deleted_at IS NULL";
            db.query_row(of, params![message.to_string(), session.to_string()], |_| Ok(()))
                .optional()
        })?;
        found.ok_or(StoreError::NoMessage { path: self.path.clone(), session, id: message })
    }

    fn require_session(&self, session: Ulid) -> Result<(), StoreError> {
        let found = self.read("find a session", |db| {
            db.query_row(
                "SELECT 1 FROM sessions WHERE id = ?1 AND deleted_at IS NULL",
                [session.to_string()],
                |_| Ok(()),
            )
            .optional()
        })?;
        found.ok_or(StoreError::NoSession { path: self.path.clone(), id: session })
    }

    fn read<T>(
        &self,
        doing: &'static str,
        f: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        f(&self.db).map_err(|e| StoreError::sql(&self.path, doing, e))
    }

    /// All or nothing. New ids come after every id in the file, whoever wrote it and whatever the
    /// clock says.
    fn write<T>(
        &mut self,
        doing: &'static str,
        f: impl FnOnce(&Transaction<'_>, &mut Ulids) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let ids = &mut self.ids;
        let work = || {
            let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for table in ["sessions", "messages", "parts", "checkpoints", "usage"] {
                let newest: Option<String> =
                    tx.query_row(&format!("SELECT max(id) FROM {table}"), [], |r| r.get(0))?;
                if let Some(id) = newest.and_then(|t| t.parse().ok())
                    && !ids.not_before(id)
                {
                    return Ok(Err(id));
                }
            }
            let out = f(&tx, ids)?;
            tx.commit()?;
            Ok(Ok(out))
        };
        let done = work().map_err(|e| StoreError::sql(&self.path, doing, e))?;
        done.map_err(|id: Ulid| self.bad(&id.to_string(), "no id can follow it"))
    }
}

/// What a message is besides its parts.
#[derive(Clone, Copy)]
struct New {
    role: Role,
    complete: bool,
    copied: bool,
}

fn insert_message(
    tx: &Transaction<'_>,
    ids: &mut Ulids,
    session: Ulid,
    new: New,
    parts: &[NewPart],
) -> rusqlite::Result<(Ulid, Vec<Ulid>)> {
    let (id, now, session) = (ids.next_id(), ids.now(), session.to_string());
    tx.prepare_cached(
        "INSERT INTO messages (id, session_id, role, created_at, completed_at, \
        copied) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        id.to_string(),
        session,
        part::role_word(new.role),
        now,
        new.complete.then_some(now),
        new.copied
    ])?;
    let part_ids =
        parts.iter().map(|p| insert_part(tx, ids, &session, id, p)).collect::<Result<_, _>>()?;
    tx.prepare_cached("UPDATE sessions SET updated_at = ?2 WHERE id = ?1")?
        .execute(params![session, now])?;
    Ok((id, part_ids))
}

fn insert_part(
    tx: &Transaction<'_>,
    ids: &mut Ulids,
    session: &str,
    message: Ulid,
    part: &NewPart,
) -> rusqlite::Result<Ulid> {
    let id = ids.next_id();
    tx.prepare_cached(
        "INSERT INTO parts (id, message_id, session_id, kind, data, created_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        id.to_string(),
        message.to_string(),
        session,
        part.kind.word(),
        part.data.to_string(),
        ids.now()
    ])?;
    Ok(id)
}
