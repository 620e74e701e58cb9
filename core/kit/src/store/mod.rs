//! The store of sessions in SQLite (docs/sources/openoxide.md §1.2): sessions, messages, parts,
//! checkpoints, usage.
//!
//! Write-ahead logging lets others read while one program writes. Writers take turns (`BEGIN
//! IMMEDIATE` with a timeout), and a returned call is on the disk. Nothing is deleted: pruned parts
//! and rewound messages are only marked. A compaction is a boundary message with the summary of
//! everything before it.

mod checkpoints;
mod error;
mod fork;
mod ids;
mod load;
mod log;
#[cfg(test)]
mod model_tests;
mod part;
mod schema;
mod sessions;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use rusqlite::types::Type;
use rusqlite::{
    Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params,
};

use ctxbench_core::block::Role;
use ctxbench_core::content::Part;
use ctxbench_util::files;

pub use checkpoints::{Checkpoint, Position};
pub use error::StoreError;
pub use fork::Discarded;
pub use ids::{Id, IdGenerator};
pub use load::{BATCH, LoadedMessage, LoadedPart};
pub use log::Divergence;
pub use sessions::Session;

/// Time in ms since 1970; signed, as SQLite stores it.
pub type Millis = i64;

/// The greatest id of a table. All ids of the store grow together.
const NEWEST_ID: &str = "SELECT max(id) FROM (SELECT max(id) id FROM sessions
    UNION ALL SELECT max(id) FROM messages UNION ALL SELECT max(id) FROM parts
    UNION ALL SELECT max(id) FROM checkpoints UNION ALL SELECT max(id) FROM usage)";

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
    /// The session that started it, such as that of a subagent's caller. For a fork see
    /// [`Store::fork`].
    pub parent: Option<Id>,
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
    pub fn create_session(&mut self, new: &NewSession) -> Result<Id, StoreError> {
        self.write("create a session", |tx, ids| {
            let (id, now) = (ids.next_id(), ids.now());
            tx.execute(
                "INSERT INTO sessions (id, parent_id, title, directory, created_at, updated_at) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
                params![id, new.parent, new.title, new.directory, now],
            )?;
            Ok(id)
        })
    }

    /// Appends a message. Returns the ids of the message and its parts.
    pub fn append_message(
        &mut self,
        session: Id,
        role: Role,
        parts: &[Part],
    ) -> Result<(Id, Vec<Id>), StoreError> {
        self.require_session(session)?;
        self.write("append a message", |tx, ids| {
            insert_message(tx, ids, session, role, false, &encoded(parts))
        })
    }

    /// Appends messages, all or none. Returns their ids.
    pub fn append_messages(
        &mut self,
        session: Id,
        messages: &[(Role, Vec<Part>)],
    ) -> Result<Vec<Id>, StoreError> {
        self.require_session(session)?;
        self.write("append messages", |tx, ids| {
            let append = |(role, parts): &(Role, Vec<Part>)| {
                Ok(insert_message(tx, ids, session, *role, false, &encoded(parts))?.0)
            };
            messages.iter().map(append).collect()
        })
    }

    /// Stores a compaction: a boundary message with the summary, followed by copies of the messages
    /// that stay in the context. Without a summary the boundary shows nothing. All or nothing is
    /// stored. Returns the id of the boundary.
    pub fn compact(
        &mut self,
        session: Id,
        summary: Option<&str>,
        kept: &[(Role, Vec<Part>)],
    ) -> Result<Id, StoreError> {
        self.require_session(session)?;
        self.write("insert a compaction", |tx, ids| {
            let mut parts = vec![(part::MARKER, part::marker())];
            parts.extend(summary.map(|text| part::encode(&Part::Summary(text.into()))));
            let (id, _) = insert_message(tx, ids, session, Role::User, false, &parts)?;
            for (role, parts) in kept {
                insert_message(tx, ids, session, *role, true, &encoded(parts))?;
            }
            update_compacted_at(tx, session)?;
            Ok(id)
        })
    }

    /// Prunes a tool result: loading shows the placeholder, and the data stays. Pruning again replaces
    /// the placeholder.
    pub fn prune_part(&mut self, id: Id, placeholder: &str) -> Result<(), StoreError> {
        let changed = self.write("prune a part", |tx, ids| {
            let mark = "UPDATE parts SET compacted_at = coalesce(compacted_at, ?2), placeholder = \
                ?3 WHERE id = ?1 AND kind = ?4";
            tx.execute(mark, params![id, ids.now(), placeholder, part::TOOL_RESULT])
        })?;
        match changed {
            0 => Err(StoreError::NoResult { path: self.path.clone(), id }),
            _ => Ok(()),
        }
    }

    /// Returns the time of the store's clock.
    pub(crate) fn now(&self) -> Millis {
        self.ids.now()
    }

    /// Fails for a message that is not in this session or was rewound.
    pub(crate) fn require_message(&self, session: Id, id: Id) -> Result<(), StoreError> {
        self.require_session(session)?;
        let of = "SELECT 1 FROM messages WHERE id = ?1 AND session_id = ?2 AND deleted_at IS NULL";
        match self.rows("find a message", of, (id, session), |_| Ok(()))?.is_empty() {
            true => Err(StoreError::NoMessage { path: self.path.clone(), session, id }),
            false => Ok(()),
        }
    }

    fn require_session(&self, id: Id) -> Result<(), StoreError> {
        let of = "SELECT 1 FROM sessions WHERE id = ?1";
        match self.rows("find a session", of, [id], |_| Ok(()))?.is_empty() {
            true => Err(StoreError::NoSession { path: self.path.clone(), id }),
            false => Ok(()),
        }
    }

    /// Runs a query and converts its rows.
    fn rows<T>(
        &self,
        doing: &'static str,
        query: &str,
        params: impl Params,
        row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let read = || -> rusqlite::Result<Vec<T>> {
            self.db.prepare_cached(query)?.query_map(params, row)?.collect()
        };
        read().map_err(|e| StoreError::sql(&self.path, doing, e))
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
            let newest: Option<Id> =
                tx.prepare_cached(NEWEST_ID)?.query_row([], |r| r.get(0)).optional()?.flatten();
            newest.into_iter().for_each(|id| ids.advance_past(id));
            let out = f(&tx, ids)?;
            tx.commit()?;
            Ok(out)
        };
        work().map_err(|e| StoreError::sql(&self.path, doing, e))
    }
}

/// A part as a row: its kind and its data.
type PartRow = (&'static str, serde_json::Value);

fn encoded(parts: &[Part]) -> Vec<PartRow> {
    parts.iter().map(part::encode).collect()
}

fn insert_message(
    tx: &Transaction<'_>,
    ids: &mut IdGenerator,
    session: Id,
    role: Role,
    is_copy: bool,
    parts: &[PartRow],
) -> rusqlite::Result<(Id, Vec<Id>)> {
    let (message, now) = (ids.next_id(), ids.now());
    tx.prepare_cached(
        "INSERT INTO messages (id, session_id, role, created_at, copied) \
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![message, session, part::role_name(role), now, is_copy])?;
    let mut part_ids = Vec::new();
    for (kind, data) in parts {
        let id = ids.next_id();
        tx.prepare_cached(
            "INSERT INTO parts (id, message_id, session_id, kind, data, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![id, message, session, kind, data.to_string(), ids.now()])?;
        part_ids.push(id);
    }
    tx.prepare_cached("UPDATE sessions SET updated_at = ?2 WHERE id = ?1")?
        .execute(params![session, now])?;
    Ok((message, part_ids))
}

/// Sets the session's `compacted_at` to the time of its newest boundary, or to NULL.
fn update_compacted_at(tx: &Transaction<'_>, session: Id) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE sessions SET compacted_at = (
             SELECT m.created_at FROM messages m WHERE m.session_id = ?1 AND m.deleted_at IS NULL
             AND EXISTS (SELECT 1 FROM parts p WHERE p.message_id = m.id AND p.kind = ?2)
             ORDER BY m.id DESC LIMIT 1
         ) WHERE id = ?1",
    )?
    .execute(params![session, part::MARKER])
    .map(drop)
}

/// Returns the error of a column that this program did not write.
fn invalid(
    column: usize,
    reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, reason.into())
}
