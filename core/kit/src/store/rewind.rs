//! Rewinding a session: later messages are marked as deleted and stay readable in a fork.

use rusqlite::{OptionalExtension, Transaction, params};

use super::checkpoints::Position;
use super::compaction::update_compacted_at;
use super::error::StoreError;
use super::fork::fork_in;
use super::ids::Ulid;
use super::load::IS_LOGGED;
use super::{Millis, Store};

/// Messages that a rewind removed from the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// A fork that still has them; `None` if no message came later than the position.
    pub branch: Option<Ulid>,
    /// Number of messages that the session's log no longer has.
    pub messages: usize,
}

impl Store {
    /// Rewinds a session to a position and keeps the later messages in a fork with this title. Both
    /// happen or neither.
    pub fn rewind(
        &mut self,
        session: Ulid,
        to: Position,
        title: &str,
        at: Millis,
    ) -> Result<Discarded, StoreError> {
        self.require_session(session)?;
        self.require_message(session, to.message())?;
        let id = session.to_string();
        self.write("rewind a session", |tx, ids| {
            let message = to.message().to_string();
            let newest = format!(
                "SELECT max(id) FROM messages WHERE session_id = ?1 AND {} AND deleted_at IS NULL",
                to.is_later()
            );
            let newest: Option<String> =
                tx.query_row(&newest, params![id, message], |r| r.get(0)).optional()?.flatten();
            let branch = newest.map(|newest| fork_in(tx, ids, &id, &newest, title)).transpose()?;
            let logged = format!(
                "SELECT count(*) FROM messages m WHERE session_id = ?1 AND {} AND deleted_at IS \
                 NULL AND {IS_LOGGED}",
                to.is_later()
            );
            let messages: i64 = tx.query_row(&logged, params![id, message], |r| r.get(0))?;
            if mark_deleted(tx, &id, to, at)? > 0 {
                let now = ids.now();
                tx.execute("UPDATE sessions SET updated_at = ?2 WHERE id = ?1", params![id, now])?;
            }
            Ok(Discarded { branch, messages: messages as usize })
        })
    }
}

fn mark_deleted(
    tx: &Transaction<'_>,
    session: &str,
    to: Position,
    at: Millis,
) -> rusqlite::Result<usize> {
    let mark = format!(
        "UPDATE messages SET deleted_at = ?3 WHERE session_id = ?1 AND {} AND deleted_at IS NULL",
        to.is_later()
    );
    let count = tx.execute(&mark, params![session, to.message().to_string(), at])?;
    update_compacted_at(tx, session)?;
    Ok(count)
}
