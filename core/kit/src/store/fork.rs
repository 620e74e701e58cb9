//! Forks: a session that continues from a message of another one.
//!
//! A fork copies the context at that message, not the history: loading a fork never reads its
//! parent, and later changes of the parent do not reach it. Earlier messages stay in the parent:
//! [`Store::log`] reads them there up to `log_until`. `fork_exclusions` lists the ones that had
//! already been rewound when the fork was made. Rejected: sharing messages (each fork would need its
//! own marks), and copying everything (a fork of a long session would double the file).

use rusqlite::{OptionalExtension, Transaction, params};

use super::Store;
use super::compaction::update_compacted_at;
use super::error::StoreError;
use super::ids::{IdGenerator, Ulid};
use super::part::PartKind;

/// Records the rewound messages of the parent before a message.
pub(super) const EXCLUDE: &str = "INSERT INTO fork_exclusions SELECT ?1, id FROM messages
    WHERE session_id = ?2 AND id < ?3 AND deleted_at IS NOT NULL";

impl Store {
    /// Creates a session that continues after a message of `parent`, with the pruned results and
    /// checkpoints that the parent has now.
    pub fn fork(&mut self, parent: Ulid, at: Ulid, title: &str) -> Result<Ulid, StoreError> {
        self.require_session(parent)?;
        self.require_message(parent, at)?;
        let (from, to) = (parent.to_string(), at.to_string());
        self.write("fork a session", |tx, ids| fork_in(tx, ids, &from, &to, title))
    }
}

/// Forks inside a transaction. `to` is a message of `from`.
pub(super) fn fork_in(
    tx: &Transaction<'_>,
    ids: &mut IdGenerator,
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
             AND EXISTS (SELECT 1 FROM parts p WHERE p.message_id = m.id AND p.kind = ?3) \
             ORDER BY m.id DESC LIMIT 1",
            params![from, to, PartKind::Marker.as_str()],
            |r| r.get(0),
        )
        .optional()?;
    if let Some(boundary) = &boundary {
        tx.execute(
            "UPDATE sessions SET log_until = ?2 WHERE id = \
            ?1",
            params![fork.to_string(), boundary],
        )?;
        tx.execute(EXCLUDE, params![fork.to_string(), from, boundary])?;
    }
    let mut shown = tx.prepare(
        "SELECT id FROM messages WHERE session_id = ?1 AND id BETWEEN ?2 AND ?3 AND \
         deleted_at IS NULL ORDER BY id",
    )?;
    let shown: Vec<String> = shown
        .query_map(params![from, boundary.unwrap_or_default(), to], |r| r.get(0))?
        .collect::<Result<_, _>>()?;
    for message in shown {
        let copy = ids.next_id().to_string();
        tx.prepare_cached(
            "INSERT INTO messages (id, session_id, role, created_at, copied)
             SELECT ?1, ?2, role, created_at, copied FROM messages WHERE id = ?3",
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
                 tags, is_after)
                 SELECT ?1, ?2, ?3, created_at, manifest, name, tags, is_after FROM checkpoints \
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
    update_compacted_at(tx, &fork.to_string())?;
    Ok(fork)
}
