//! Forks: a session that goes on from a message of another one.
//!
//! What the next request of the fork would show is copied, which costs as much as the context and
//! not as the history: loading a fork never looks at its parent, and no mark on the parent (pruned,
//! rewound, deleted) changes it later. The copies stand for the originals in the fork's log. What
//! lies before them stays the parent's: [`Store::log`] reads it there up to `log_until`, and
//! [`Store::vacuum`] leaves it there while the fork lives. What of it had been taken back when the
//! fork was made is noted in `fork_lacks`, because marks on the parent change later, and times of
//! two clocks do not say which came first. Rejected: sharing the messages (marks would need a table
//! of their own per fork, and loading would walk up the line), and copying everything, as OpenCode
//! does (a fork of a long session would double the file).

use rusqlite::{OptionalExtension, Transaction, params};

use super::Store;
use super::boundary::note_compaction;
use super::error::StoreError;
use super::part::PartKind;
use super::ulid::{Ulid, Ulids};

/// What lies before a message and is not in the log now.
pub(super) const LACKS: &str = "INSERT INTO fork_lacks SELECT ?1, id FROM messages
    WHERE session_id = ?2 AND id < ?3 AND (deleted_at IS NOT NULL OR completed_at IS NULL)";

impl Store {
    /// Begins a session that goes on behind a message of `parent`. Marks stand in the fork as they
    /// stand in the parent now; a compaction under way is not taken along.
    pub fn fork(&mut self, parent: Ulid, at: Ulid, title: &str) -> Result<Ulid, StoreError> {
        self.require_session(parent)?;
        self.require_message(parent, at)?;
        let (from, to) = (parent.to_string(), at.to_string());
        self.write("fork a session", |tx, ids| fork_in(tx, ids, &from, &to, title))
    }
}

/// Forks inside a transaction; the message is one of the parent's that is complete.
pub(super) fn fork_in(
    tx: &Transaction<'_>,
    ids: &mut Ulids,
    from: &str,
    to: &str,
    title: &str,
) -> rusqlite::Result<Ulid> {
    let (fork, now) = (ids.next_id(), ids.now());
    tx.execute(
        "INSERT INTO sessions (id, project_id, parent_id, forked_at, title, directory, \
         created_at, updated_at, compacted_at)
         SELECT ?1, project_id, id, ?3, ?4, directory, ?5, ?5, NULL FROM sessions WHERE id = ?2",
        params![fork.to_string(), from, to, title, now],
    )?;
    let boundary: Option<String> = tx
        .query_row(
            "SELECT m.id FROM messages m WHERE m.session_id = ?1 AND m.id <= ?2 AND \
             m.deleted_at IS NULL
             AND m.completed_at IS NOT NULL
             AND EXISTS (SELECT 1 FROM parts p WHERE p.message_id = m.id AND p.kind = ?3) \
             ORDER BY m.id DESC LIMIT 1",
            params![from, to, PartKind::Marker.word()],
            |r| r.get(0),
        )
        .optional()?;
    if let Some(boundary) = &boundary {
        tx.execute(
            "UPDATE sessions SET log_until = ?2 WHERE id = \
            ?1",
            params![fork.to_string(), boundary],
        )?;
        tx.execute(LACKS, params![fork.to_string(), from, boundary])?;
    }
    let mut shown = tx.prepare(
        "SELECT id FROM messages WHERE session_id = ?1 AND id BETWEEN ?2 AND ?3 AND \
         deleted_at IS NULL
         AND completed_at IS NOT NULL ORDER BY id",
    )?;
    let shown: Vec<String> = shown
        .query_map(params![from, boundary.unwrap_or_default(), to], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    for message in shown {
        let copy = ids.next_id().to_string();
        tx.prepare_cached(
            "INSERT INTO messages (id, session_id, role, created_at, completed_at, copied)
             SELECT ?1, ?2, role, created_at, completed_at, copied FROM messages WHERE id \
             = ?3",
        )?
        .execute(params![copy, fork.to_string(), message])?;
        let parts: Vec<String> = tx
            .prepare_cached("SELECT id FROM parts WHERE message_id = ?1 ORDER BY id")?
            .query_map([&message], |r| r.get(0))?
            .collect::<Result<_, _>>()?;
        for part in parts {
            tx.prepare_cached(
                "INSERT INTO parts (id, message_id, session_id, kind, data, compacted_at, \
                 placeholder, created_at)
                 SELECT ?1, ?2, ?3, kind, data, compacted_at, placeholder, created_at FROM \
                 parts WHERE id = ?4",
            )?
            .execute(params![
                ids.next_id().to_string(),
                copy,
                fork.to_string(),
                part
            ])?;
        }
        let checkpoints: Vec<String> = tx
            .prepare_cached("SELECT id FROM checkpoints WHERE message_id = ?1 ORDER BY id")?
            .query_map([&message], |r| r.get(0))?
            .collect::<Result<_, _>>()?;
        for checkpoint in checkpoints {
            tx.prepare_cached(
                "INSERT INTO checkpoints (id, session_id, message_id, created_at, manifest, name, \
                 tags, behind)
                 SELECT ?1, ?2, ?3, created_at, manifest, name, tags, behind FROM checkpoints \
                 WHERE id = ?4",
            )?
            .execute(params![
                ids.next_id().to_string(),
                fork.to_string(),
                copy,
                checkpoint
            ])?;
        }
    }
    note_compaction(tx, &fork.to_string())?;
    Ok(fork)
}
