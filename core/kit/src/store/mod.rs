//! The store of sessions in SQLite (docs/sources/openoxide.md §1.2): sessions, messages, parts and
//! checkpoints.
//!
//! Write-ahead logging lets others read while one program writes. Writers take turns (`BEGIN
//! IMMEDIATE` with a timeout), and a returned call is on the disk. A compaction is a boundary message
//! with the summary of everything before it; compacted messages and pruned results stay in the log.

mod error;
mod fork;
mod ids;
mod load;
#[cfg(test)]
mod model_tests;
mod part;
mod schema;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::path::{Path, PathBuf};

use rusqlite::types::Type;
use rusqlite::{
    Connection, OptionalExtension, Params, Row, Transaction, TransactionBehavior, params,
};
use serde_json::json;

use ctxbench_core::{Part, Role};
use ctxbench_util::files;

pub use error::StoreError;
pub use fork::Discarded;
pub use ids::{Id, IdGenerator};
pub use load::{BATCH, LoadedMessage, LoadedPart};

/// Time in ms since 1970; signed, as SQLite stores it.
pub type Millis = i64;

/// The greatest id of the store. All ids grow together.
const NEWEST_ID: &str = "SELECT max(id) FROM (SELECT max(id) id FROM sessions
    UNION ALL SELECT max(id) FROM messages UNION ALL SELECT max(id) FROM parts
    UNION ALL SELECT max(id) FROM checkpoints)";

pub struct Store {
    db: Connection,
    /// Used in error messages.
    path: PathBuf,
    ids: IdGenerator,
    bytes_read: Cell<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSession {
    /// The session that it follows. For a fork see [`Store::fork`].
    pub parent: Option<Id>,
    pub title: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: Id,
    /// The details that it was created with.
    pub details: NewSession,
    /// Last message of the parent that a fork has; `None` for other sessions.
    pub forked_at: Option<Id>,
}

/// A position in a session, next to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Before(Id),
    After(Id),
}

impl Position {
    pub fn message(self) -> Id {
        match self {
            Position::Before(id) | Position::After(id) => id,
        }
    }
}

/// A stored position to rewind to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub id: Id,
    /// The checkpoint of a prompt is before that prompt.
    pub position: Position,
    /// Name given by a user.
    pub name: Option<String>,
    /// Number of the checkpoint's files for the program that restores them, if any.
    pub files: Option<u64>,
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
        // Sessions are private. If this fails, SQLite reports the reason.
        let _ = files::create_private(&path);
        let mut db = Connection::open(&path).map_err(|e| StoreError::sql(&path, "open it", &e))?;
        schema::prepare(&mut db, &path)?;
        Ok(Store { db, path, ids, bytes_read: Cell::new(0) })
    }

    pub fn create_session(&mut self, new: &NewSession) -> Result<Id, StoreError> {
        self.write("create a session", |tx, ids| insert_session(tx, ids, new, None))
    }

    /// Appends messages to a session, all or none. Returns the ids of each message and of its parts.
    pub fn append_messages(
        &mut self,
        session: Id,
        messages: &[(Role, Vec<Part>)],
    ) -> Result<Vec<(Id, Vec<Id>)>, StoreError> {
        self.session(session)?;
        self.write("append messages", |tx, ids| {
            let append = |(role, parts): &(Role, Vec<Part>)| {
                insert(tx, ids, session, *role, Kind::Said, parts)
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
        self.session(session)?;
        self.write("insert a compaction", |tx, ids| {
            let summary: Vec<Part> =
                summary.map(|text| Part::Summary(text.into())).into_iter().collect();
            let (id, _) = insert(tx, ids, session, Role::User, Kind::Boundary, &summary)?;
            for (role, parts) in kept {
                insert(tx, ids, session, *role, Kind::Copy, parts)?;
            }
            Ok(id)
        })
    }

    /// Prunes a tool result: loading shows the placeholder, and the data stays. Pruning again replaces
    /// the placeholder.
    pub fn prune_part(&mut self, session: Id, id: Id, placeholder: &str) -> Result<(), StoreError> {
        let changed = self.write("prune a part", |tx, ids| {
            let mark = "UPDATE parts SET pruned_at = coalesce(pruned_at, ?3), placeholder = ?4 \
                        WHERE session_id = ?1 AND id = ?2 AND kind = ?5";
            tx.execute(mark, params![session, id, ids.now(), placeholder, part::TOOL_RESULT])
        })?;
        match changed {
            0 => Err(self.refused(format!("there is no tool result {id}; only one can be pruned"))),
            _ => Ok(()),
        }
    }

    /// Stores a checkpoint of the session and returns its id.
    pub fn add_checkpoint(
        &mut self,
        session: Id,
        position: Position,
        name: Option<&str>,
        files: Option<u64>,
    ) -> Result<Id, StoreError> {
        let message = position.message();
        self.require_message(session, message)?;
        self.write("store a checkpoint", |tx, ids| {
            let id = ids.next_id();
            let is_after = matches!(position, Position::After(_));
            let files = files.map(|n| n as i64);
            tx.execute(
                "INSERT INTO checkpoints VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![session, message, id, files, name, is_after],
            )?;
            Ok(id)
        })
    }

    /// Returns the checkpoints of a session, oldest first.
    pub fn checkpoints(&self, session: Id) -> Result<Vec<Checkpoint>, StoreError> {
        self.session(session)?;
        let query = "SELECT id, message_id, files, name, is_after FROM checkpoints \
                     WHERE session_id = ?1 ORDER BY id";
        self.rows("read checkpoints", query, [session], |r| {
            let position = if r.get(4)? { Position::After } else { Position::Before };
            Ok(Checkpoint {
                id: r.get(0)?,
                position: position(r.get(1)?),
                files: r.get::<_, Option<i64>>(2)?.map(|n| n as u64),
                name: r.get(3)?,
            })
        })
    }

    /// Returns the sessions, oldest first.
    pub fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        let query = "SELECT id, parent_id, title, forked_at FROM sessions ORDER BY id";
        self.rows("list sessions", query, [], |r| {
            let details = NewSession { parent: r.get(1)?, title: r.get(2)? };
            Ok(Session { id: r.get(0)?, details, forked_at: r.get(3)? })
        })
    }

    /// Returns the details that a session was created with.
    pub fn session(&self, id: Id) -> Result<NewSession, StoreError> {
        let found = self.sessions()?.into_iter().find(|s| s.id == id);
        found.map(|s| s.details).ok_or_else(|| self.refused(format!("there is no session {id}")))
    }

    /// Returns the newest summary of the nearest ancestor that has one, with the ancestor's id
    /// (docs/sources/opencode-vs-claude-code.md §10.9). `None` for a fork, which has its parent's
    /// context.
    pub fn inherited_summary(&self, session: Id) -> Result<Option<(Id, String)>, StoreError> {
        let all = self.sessions()?;
        let find = |id: Id| all.iter().find(|s| s.id == id);
        let mut at = find(session).filter(|s| s.forked_at.is_none());
        // Ids grow from parent to child, so this ends.
        while let Some(parent) =
            at.and_then(|s| s.details.parent.filter(|p| *p < s.id)).and_then(find)
        {
            let context = self.load_context(parent.id)?;
            let shown = context.first().into_iter().flat_map(|m| &m.parts);
            let summary = shown.map(|p| &p.content).find(|p| matches!(p, Part::Summary(_)));
            if let Some(summary) = summary {
                return Ok(Some((parent.id, summary.text().to_string())));
            }
            at = Some(parent);
        }
        Ok(None)
    }

    /// Returns the time of the store's clock.
    pub(crate) fn now(&self) -> Millis {
        self.ids.now()
    }

    /// Fails for a message that is not in this session.
    pub(crate) fn require_message(&self, session: Id, id: Id) -> Result<(), StoreError> {
        let of = "SELECT 1 FROM messages WHERE session_id = ?1 AND id = ?2";
        match self.rows("find a message", of, (session, id), |_| Ok(()))?.is_empty() {
            true => Err(self.refused(format!("session {session} has no message {id}"))),
            false => Ok(()),
        }
    }

    fn refused(&self, problem: String) -> StoreError {
        StoreError::new(&self.path, format!("{problem}; check the id and the file"))
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
        read().map_err(|e| StoreError::sql(&self.path, doing, &e))
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
        work().map_err(|e| StoreError::sql(&self.path, doing, &e))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Said,
    Boundary,
    Copy,
}

fn insert_session(
    tx: &Transaction<'_>,
    ids: &mut IdGenerator,
    new: &NewSession,
    forked_at: Option<Id>,
) -> rusqlite::Result<Id> {
    let (id, NewSession { parent, title }) = (ids.next_id(), new);
    let row = params![id, parent, title, ids.now(), forked_at];
    tx.execute("INSERT INTO sessions VALUES (?1, ?2, ?3, ?4, ?5)", row)?;
    Ok(id)
}

fn insert(
    tx: &Transaction<'_>,
    ids: &mut IdGenerator,
    session: Id,
    role: Role,
    kind: Kind,
    parts: &[Part],
) -> rusqlite::Result<(Id, Vec<Id>)> {
    let message = ids.next_id();
    let (is_boundary, is_copy) = (kind == Kind::Boundary, kind == Kind::Copy);
    tx.prepare_cached("INSERT INTO messages VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(params![
        session,
        message,
        json!(role).as_str(),
        ids.now(),
        is_boundary,
        is_copy
    ])?;
    let mut part_ids = Vec::new();
    for (kind, data) in parts.iter().map(part::encode) {
        let id = ids.next_id();
        tx.prepare_cached("INSERT INTO parts VALUES (?1, ?2, ?3, ?4, ?5, NULL, NULL)")?
            .execute(params![session, message, id, kind, data.to_string()])?;
        part_ids.push(id);
    }
    Ok((message, part_ids))
}

/// Returns the error of a column that this program did not write.
fn invalid(
    column: usize,
    reason: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, reason.into())
}
