//! The store of sessions in SQLite (docs/sources/openoxide.md §1.2): sessions, messages, parts,
//! checkpoints, usage.
//!
//! Write-ahead logging lets others read while one program writes. Writers take turns (`BEGIN
//! IMMEDIATE` with a timeout), and a returned call is on the disk. Nothing is deleted: pruned parts
//! and rewound messages are only marked. A compaction is a boundary message with the summary of
//! everything before it.

mod checkpoints;
mod compaction;
mod compare;
mod error;
mod fork;
mod ids;
mod load;
#[cfg(test)]
mod model_tests;
mod overview;
mod part;
mod rewind;
mod schema;
#[cfg(test)]
mod tests;
mod usage;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

pub use checkpoints::{Checkpoint, NewCheckpoint, Position};
pub use compare::Divergence;
use ctxbench_core::block::Role;
use ctxbench_core::files;
pub use error::StoreError;
pub use ids::{IdGenerator, Ulid};
pub use load::{BATCH, LoadedMessage, LoadedPart, PRUNED};
pub use overview::Overview;
pub use part::{NewPart, PartKind};
pub use rewind::Discarded;

/// Time in ms since 1970; signed, as SQLite stores it.
pub type Millis = i64;

/// An open store.
pub struct Store {
    db: Connection,
    /// Used in error messages.
    path: PathBuf,
    ids: IdGenerator,
    bytes_read: Cell<u64>,
}

/// Details of a new session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    pub project: String,
    /// The session that started it, such as that of a subagent's caller. For a fork see
    /// [`Store::fork`].
    pub parent: Option<Ulid>,
    pub title: String,
    pub directory: String,
}

impl Store {
    /// Opens a store and creates the file if it does not exist. A file that is not a store is left
    /// unchanged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, IdGenerator::system())
    }

    /// Opens a store with ids and times from a generator.
    pub fn open_with(path: impl AsRef<Path>, ids: IdGenerator) -> Result<Self, StoreError> {
        let path = path.as_ref().to_path_buf();
        schema::check_header(&path)?;
        // Sessions are private. If this fails, SQLite reports the reason.
        let _ = files::create_private(&path);
        let db = Connection::open(&path).map_err(|e| StoreError::sql(&path, "open it", e))?;
        Self::ready(db, path, ids)
    }

    /// Creates a store in memory.
    #[cfg(test)]
    pub(crate) fn open_in_memory(ids: IdGenerator) -> Result<Self, StoreError> {
        let path = PathBuf::from(":memory:");
        let db = Connection::open_in_memory().map_err(|e| StoreError::sql(&path, "open it", e))?;
        Self::ready(db, path, ids)
    }

    fn ready(mut db: Connection, path: PathBuf, ids: IdGenerator) -> Result<Self, StoreError> {
        schema::prepare(&mut db, &path)?;
        Ok(Store { db, path, ids, bytes_read: Cell::new(0) })
    }

    /// Creates a session and returns its id.
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

    /// Appends a message. Returns the ids of the message and its parts.
    pub fn append_message(
        &mut self,
        session: Ulid,
        role: Role,
        parts: &[NewPart],
    ) -> Result<(Ulid, Vec<Ulid>), StoreError> {
        self.require_session(session)?;
        self.write("append a message", |tx, ids| {
            insert_message(tx, ids, session, role, false, parts)
        })
    }

    /// Appends messages, all or none. Returns their ids.
    pub fn append_messages(
        &mut self,
        session: Ulid,
        messages: &[(Role, Vec<NewPart>)],
    ) -> Result<Vec<Ulid>, StoreError> {
        self.require_session(session)?;
        self.write("append messages", |tx, ids| {
            let mut append = |(role, parts): &(Role, Vec<NewPart>)| {
                Ok(insert_message(tx, ids, session, *role, false, parts)?.0)
            };
            messages.iter().map(&mut append).collect()
        })
    }

    /// Marks a tool result as pruned at a time (ms since 1970). Loading shows the placeholder
    /// ([`PRUNED`] for `None`); the data stays. Pruning again replaces the placeholder and keeps the
    /// first time.
    pub fn prune_part(
        &mut self,
        part: Ulid,
        at: Millis,
        placeholder: Option<&str>,
    ) -> Result<(), StoreError> {
        let id = part.to_string();
        let kind = self.read("find a part", |db| {
            db.query_row("SELECT kind FROM parts WHERE id = ?1", [&id], |r| r.get::<_, String>(0))
                .optional()
        })?;
        match kind {
            None => return Err(StoreError::NoPart { path: self.path.clone(), id: part }),
            Some(k) if k != PartKind::ToolResult.as_str() => {
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

    /// Fails for a message that is not in this session or was rewound.
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
            db.query_row("SELECT 1 FROM sessions WHERE id = ?1", [session.to_string()], |_| Ok(()))
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

    /// Runs `f` in a transaction. New ids come after every id in the file, even if the clock was set
    /// back.
    fn write<T>(
        &mut self,
        doing: &'static str,
        f: impl FnOnce(&Transaction<'_>, &mut IdGenerator) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let ids = &mut self.ids;
        let work = || {
            let tx = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for table in ["sessions", "messages", "parts", "checkpoints", "usage"] {
                let newest: Option<String> =
                    tx.query_row(&format!("SELECT max(id) FROM {table}"), [], |r| r.get(0))?;
                if let Some(id) = newest.and_then(|t| t.parse().ok())
                    && !ids.advance_past(id)
                {
                    return Ok(Err(id));
                }
            }
            let out = f(&tx, ids)?;
            tx.commit()?;
            Ok(Ok(out))
        };
        let done = work().map_err(|e| StoreError::sql(&self.path, doing, e))?;
        done.map_err(|id: Ulid| self.bad(&id.to_string(), "no later id is possible"))
    }
}

fn insert_message(
    tx: &Transaction<'_>,
    ids: &mut IdGenerator,
    session: Ulid,
    role: Role,
    is_copy: bool,
    parts: &[NewPart],
) -> rusqlite::Result<(Ulid, Vec<Ulid>)> {
    let (id, now, session) = (ids.next_id(), ids.now(), session.to_string());
    tx.prepare_cached(
        "INSERT INTO messages (id, session_id, role, created_at, copied)
        VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![id.to_string(), session, part::role_name(role), now, is_copy])?;
    let part_ids =
        parts.iter().map(|p| insert_part(tx, ids, &session, id, p)).collect::<Result<_, _>>()?;
    tx.prepare_cached("UPDATE sessions SET updated_at = ?2 WHERE id = ?1")?
        .execute(params![session, now])?;
    Ok((id, part_ids))
}

fn insert_part(
    tx: &Transaction<'_>,
    ids: &mut IdGenerator,
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
        part.kind.as_str(),
        part.data.to_string(),
        ids.now()
    ])?;
    Ok(id)
}
