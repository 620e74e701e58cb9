//! Going back in a session: a mark on what comes later, which can be taken away again, with or
//! without a branch on which that lives on.

use rusqlite::{OptionalExtension, Transaction, params};

use super::checkpoints::Place;
use super::error::StoreError;
use super::fork::fork_in;
use super::load::LOGGED;
use super::ulid::Ulid;
use super::{At, Store, boundary};

/// What going back took away, and where it still is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// A fork that goes on from where the session stood; `None` = nothing that was finished came
    /// later than the place.
    pub branch: Option<Ulid>,
    /// Messages that its log no longer has.
    pub messages: usize,
}

impl Store {
    /// Goes back to a message, which is the last that stays: later ones, boundaries among them, are
    /// marked as deleted at a time (ms).
    pub fn rewind(&mut self, session: Ulid, to: Ulid, at: At) -> Result<usize, StoreError> {
        self.require_session(session)?;
        self.require_message(session, to)?;
        self.write("rewind a session", |tx, _| {
            take_back(tx, &session.to_string(), Place::Behind(to), at)
        })
    }

    /// Goes back to a place and keeps what is given up as a fork with a title of its own, which
    /// [`Store::vacuum`] leaves alone. Both or neither.
    pub fn rewind_keeping(
        &mut self,
        session: Ulid,
        to: Place,
        title: &str,
        at: At,
    ) -> Result<GivenUp, StoreError> {
        self.require_session(session)?;
        self.require_message(session, to.message())?;
        let id = session.to_string();
        self.write("go back in a session", |tx, ids| {
            let newest = format!(
                "SELECT max(id) FROM messages WHERE session_id = ?1 AND {} AND deleted_at IS NULL \
                 AND completed_at IS NOT NULL",
                to.later()
            );
            let newest: Option<String> = tx
                .query_row(&newest, params![id, to.message().to_string()], |r| r.get(0))
                .optional()?
                .flatten();
            let branch = newest.map(|newest| fork_in(tx, ids, &id, &newest, title)).transpose()?;
            let logged = format!(
                "SELECT count(*) FROM messages m WHERE session_id = ?1 AND {} AND deleted_at IS \
                 NULL AND {LOGGED}",
                to.later()
            );
            let message = to.message().to_string();
            let messages: i64 = tx.query_row(&logged, params![id, message], |r| r.get(0))?;
            if take_back(tx, &id, to, at)? > 0 {
                let now = ids.now();
                tx.execute("UPDATE sessions SET updated_at = ?2 WHERE id = ?1", params![id, now])?;
            }
            Ok(GivenUp { branch, messages: messages as usize })
        })
    }

    /// Takes back what was marked as deleted at or after a time (ms).
    pub fn restore(&mut self, session: Ulid, since: At) -> Result<usize, StoreError> {
        self.require_session(session)?;
        self.write("restore messages", |tx, _| {
            let back = tx.execute(
                "UPDATE messages SET deleted_at = NULL WHERE session_id = ?1 AND deleted_at >= ?2",
                params![session.to_string(), since],
            )?;
            boundary::note_compaction(tx, &session.to_string())?;
            Ok(back)
        })
    }
}

fn take_back(tx: &Transaction<'_>, session: &str, to: Place, at: At) -> rusqlite::Result<usize> {
    let mark = format!(
        "UPDATE messages SET deleted_at = ?3 WHERE session_id = ?1 AND {} AND deleted_at IS NULL",
        to.later()
    );
    let gone = tx.execute(&mark, params![session, to.message().to_string(), at])?;
    boundary::note_compaction(tx, session)?;
    Ok(gone)
}
