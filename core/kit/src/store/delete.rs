//! Deleting sessions: first a mark that can be taken back, then, after the retention, for good.
//!
//! Other programs delete with `ON DELETE CASCADE`: one wrong key takes a session, its messages and
//! its parts at once, and what was forked from it may go with it (docs/sources/chat-history.md
//! §7.7). Here no table cascades: rows that something still refers to cannot go, and SQLite itself
//! refuses it.

use rusqlite::{OptionalExtension, Transaction, params};

use super::error::StoreError;
use super::ulid::Ulid;
use super::{At, Store};

/// What [`Store::vacuum`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Sessions.
    pub sessions: usize,
    /// Messages, those of removed sessions among them.
    pub messages: usize,
    /// Sessions past the retention that stay because a fork or a subagent's session stands on them.
    pub held: usize,
    /// The file gave the room back; `false` when another program was using it, and the next vacuum
    /// will.
    pub shrunk: bool,
}

impl Store {
    /// Marks a session as deleted at a time (ms). It is no longer found; its rows stay, and its
    /// forks live on.
    pub fn delete_session(&mut self, session: Ulid, at: At) -> Result<(), StoreError> {
        self.require_session(session)?;
        self.write("delete a session", |tx, _| {
            tx.execute(
                "UPDATE sessions SET deleted_at = ?2 WHERE id = ?1",
                params![session.to_string(), at],
            )
            .map(|_| ())
        })
    }

    /// Takes a deletion back.
    pub fn undelete_session(&mut self, session: Ulid) -> Result<(), StoreError> {
        let found = self.read("find a session", |db| {
            let of = "SELECT 1 FROM sessions WHERE id = ?1 AND deleted_at IS NOT NULL";
            db.query_row(of, [session.to_string()], |_| Ok(())).optional()
        })?;
        found.ok_or(StoreError::NoSession { path: self.path.clone(), id: session })?;
        self.write("take a deletion back", |tx, _| {
            tx.execute("UPDATE sessions SET deleted_at = NULL WHERE id = ?1", [session.to_string()])
                .map(|_| ())
        })
    }

    /// Removes for good what was deleted or rewound at least `retention` ms before `now`, and gives
    /// the room back to the system. A session from which another one that stays was forked keeps
    /// what the fork stands on.
    pub fn vacuum(&mut self, now: At, retention: At) -> Result<Vacuumed, StoreError> {
        let until = now.saturating_sub(retention.max(0));
        let mut out = self.write("remove what was deleted", |tx, _| remove(tx, until))?;
        out.shrunk = self.shrink().or_else(|e| {
            use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked};
            match e.sqlite_error_code() {
                Some(DatabaseBusy | DatabaseLocked) => Ok(false),
                _ => Err(StoreError::sql(&self.path, "give its room back", e)),
            }
        })?;
        Ok(out)
    }

    /// False if a reader stood in the way, which SQLite says in the first column and not by an
    /// error.
    fn shrink(&self) -> rusqlite::Result<bool> {
        self.db.execute_batch("VACUUM")?;
        self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |r| Ok(r.get::<_, i64>(0)? == 0))
    }
}

/// The last message of a session that something which stays was forked behind; `` = none.
const HELD: &str =
    "coalesce((SELECT max(c.forked_at) FROM sessions c WHERE c.parent_id = m.session_id), '')";

fn remove(tx: &Transaction<'_>, until: At) -> rusqlite::Result<Vacuumed> {
    let mut out = Vacuumed::default();
    // From the youngest up, so that a parent goes together with the forks that go.
    loop {
        let leaves: Vec<String> = tx
            .prepare_cached(
                "SELECT s.id FROM sessions s WHERE s.deleted_at <= ?1
                 AND NOT EXISTS (SELECT 1 FROM sessions c WHERE c.parent_id = s.id)",
            )?
            .query_map([until], |r| r.get(0))?
            .collect::<Result<_, _>>()?;
        if leaves.is_empty() {
            break;
        }
        for id in leaves {
            for table in ["usage", "checkpoints", "parts", "fork_lacks"] {
                tx.execute(&format!("DELETE FROM {table} WHERE session_id = ?1"), [&id])?;
            }
            out.messages += tx.execute("DELETE FROM messages WHERE session_id = ?1", [&id])?;
            out.sessions += tx.execute("DELETE FROM sessions WHERE id = ?1", [&id])?;
        }
    }
    let gone = format!(
        "SELECT m.id FROM messages m JOIN sessions s ON s.id = m.session_id
         WHERE (m.deleted_at <= ?1 OR s.deleted_at <= ?1) AND m.id > {HELD}"
    );
    tx.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS going (id TEXT PRIMARY KEY); DELETE FROM going",
    )?;
    tx.execute(&format!("INSERT INTO going {gone}"), [until])?;
    for table in ["parts", "checkpoints"] {
        tx.execute(&format!("DELETE FROM {table} WHERE message_id IN (SELECT id FROM going)"), [])?;
    }
    // What was spent stays spent.
    tx.execute(
        "UPDATE usage SET message_id = NULL WHERE message_id IN (SELECT id FROM going)",
        [],
    )?;
    out.messages += tx.execute("DELETE FROM messages WHERE id IN (SELECT id FROM going)", [])?;
    tx.execute_batch("DELETE FROM going")?;
    out.held =
        tx.query_row("SELECT count(*) FROM sessions WHERE deleted_at <= ?1", [until], |r| {
            r.get::<_, i64>(0)
        })? as usize;
    Ok(out)
}
