//! Forks: a session that continues from a message of another one. A rewind keeps the messages that it
//! takes back in a fork.
//!
//! A fork has copies of its parent's messages with the same ids, so that later changes of one do not
//! reach the other.

use rusqlite::{Transaction, params};

use super::ids::{Id, IdGenerator};
use super::{NewSession, Position, Store, StoreError, insert_session};

/// Messages that a rewind removed from the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// A fork that still has them; `None` if no message came later than the position.
    pub branch: Option<Id>,
    /// Number of messages that the session's log no longer has.
    pub messages: usize,
}

impl Store {
    /// Creates a session that continues after a message of `parent`, with the pruned results and
    /// checkpoints that the parent has now.
    pub fn fork(&mut self, parent: Id, at: Id, title: &str) -> Result<Id, StoreError> {
        self.require_message(parent, at)?;
        let new = NewSession { parent: Some(parent), title: title.into() };
        self.write("fork a session", |tx, ids| fork_in(tx, ids, &new, at))
    }

    /// Rewinds a session to a position and keeps all messages in a fork with this title. Both happen
    /// or neither.
    pub fn rewind(
        &mut self,
        session: Id,
        to: Position,
        title: &str,
    ) -> Result<Discarded, StoreError> {
        let message = to.message();
        self.require_message(session, message)?;
        let is_later = |id: Id| match to {
            Position::Before(_) => id >= message,
            Position::After(_) => id > message,
        };
        let messages = self.log(session)?.iter().filter(|m| is_later(m.id)).count();
        let newest = self.load_context(session)?.last().map(|m| m.id).filter(|id| is_later(*id));
        let Some(newest) = newest else { return Ok(Discarded { branch: None, messages }) };
        let new = NewSession { parent: Some(session), title: title.into() };
        let branch = self.write("rewind a session", |tx, ids| {
            let branch = fork_in(tx, ids, &new, newest)?;
            let later = match to {
                Position::Before(_) => "DELETE FROM messages WHERE session_id = ?1 AND id >= ?2",
                Position::After(_) => "DELETE FROM messages WHERE session_id = ?1 AND id > ?2",
            };
            tx.execute(later, params![session, message])?;
            Ok(branch)
        })?;
        Ok(Discarded { branch: Some(branch), messages })
    }
}

/// Forks the parent of `new` after its message `to`.
fn fork_in(
    tx: &Transaction<'_>,
    ids: &mut IdGenerator,
    new: &NewSession,
    to: Id,
) -> rusqlite::Result<Id> {
    let fork = insert_session(tx, ids, new, Some(to))?;
    for (table, message, columns) in [
        ("messages", "id", "id, role, created_at, is_boundary, is_copy"),
        ("parts", "message_id", "message_id, id, kind, data, pruned_at, placeholder"),
        ("checkpoints", "message_id", "message_id, id, files, name, is_after"),
    ] {
        let copy = format!(
            "INSERT INTO {table} SELECT ?1, {columns} FROM {table} \
             WHERE session_id = ?2 AND {message} <= ?3"
        );
        tx.execute(&copy, params![fork, new.parent, to])?;
    }
    Ok(fork)
}
