//! What a session spent, and the checkpoints taken in it.

use std::collections::BTreeMap;

use rusqlite::params;
use serde_json::Value;

use super::error::StoreError;
use super::ulid::Ulid;
use super::{At, Store};
use ctxbench_core::request::Usage;

/// A checkpoint as it is stored. What its manifest says is for whoever takes and restores
/// checkpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Its id.
    pub id: Ulid,
    /// The user's message before which it was taken.
    pub message: Ulid,
    /// When, ms.
    pub at: At,
    /// Which files with which contents.
    pub manifest: Value,
}

impl Store {
    /// Notes what a response cost: tokens as the provider reported them, with the message that it
    /// became, if any.
    pub fn add_usage(
        &mut self,
        session: Ulid,
        message: Option<Ulid>,
        model: &str,
        u: &Usage,
    ) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        if let Some(m) = message {
            self.require_message(session, m)?;
        }
        self.write("note usage", |tx, ids| {
            let id = ids.next_id();
            let n = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
            tx.execute(
                "INSERT INTO usage (id, session_id, message_id, model, created_at, input, output, \
                 reasoning, cache_read, cache_write,
                 cache_write_1h) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    id.to_string(),
                    session.to_string(),
                    message.map(|m| m.to_string()),
                    model,
                    ids.now(),
                    n(u.input),
                    n(u.output),
                    n(u.reasoning),
                    n(u.cache_read),
                    n(u.cache_write),
                    n(u.cache_write_1h),
                ],
            )?;
            Ok(id)
        })
    }

    /// Tokens of a session by model. A fork has spent what was spent in it; its parent's part is
    /// the parent's.
    pub fn usage(&self, session: Ulid) -> Result<BTreeMap<String, Usage>, StoreError> {
        self.require_session(session)?;
        self.read("add up usage", |db| {
            let mut q = db.prepare_cached(
                "SELECT model, input, output, reasoning, cache_read, cache_write, cache_write_1h \
                 FROM usage WHERE session_id = ?1",
            )?;
            let mut out: BTreeMap<String, Usage> = BTreeMap::new();
            let mut rows = q.query([session.to_string()])?;
            while let Some(r) = rows.next()? {
                let n = |i: usize| r.get::<_, i64>(i).map(|v| v.max(0) as u64);
                let one = Usage {
                    input: n(1)?,
                    output: n(2)?,
                    reasoning: n(3)?,
                    cache_read: n(4)?,
                    cache_write: n(5)?,
                    cache_write_1h: n(6)?,
                    reported_total: None,
                };
                out.entry(r.get(0)?).or_default().add(&one);
            }
            Ok(out)
        })
    }

    /// Stores a checkpoint taken before a message of the session.
    pub fn add_checkpoint(
        &mut self,
        session: Ulid,
        message: Ulid,
        manifest: &Value,
    ) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        self.require_message(session, message)?;
        self.write("store a checkpoint", |tx, ids| {
            let id = ids.next_id();
            tx.execute(
                "INSERT INTO checkpoints (id, session_id, message_id, created_at, manifest) VALUES \
                 (?1, ?2, ?3, ?4, ?5)",
                params![
                    id.to_string(),
                    session.to_string(),
                    message.to_string(),
                    ids.now(),
                    manifest.to_string()
                ],
            )?;
            Ok(id)
        })
    }

    /// The checkpoints of a session, oldest first; those of messages that were rewound are left
    /// out.
    pub fn checkpoints(&self, session: Ulid) -> Result<Vec<Checkpoint>, StoreError> {
        self.require_session(session)?;
        let raw: Vec<(String, String, At, String)> = self.read("read checkpoints", |db| {
            let mut q = db.prepare_cached(
                "SELECT c.id, c.message_id, c.created_at, c.manifest FROM checkpoints c JOIN \
                 messages m ON m.id = c.message_id
                 WHERE c.session_id = ?1 AND m.deleted_at IS NULL ORDER BY c.id",
            )?;
            q.query_map([session.to_string()], |r| {
                Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?))
            })?
            .collect()
        })?;
        let read = |(id, message, at, manifest): (String, String, At, String)| {
            Ok(Checkpoint {
                id: id.parse().map_err(|e| self.bad(&id, e))?,
                message: message.parse().map_err(|e| self.bad(&id, e))?,
                at,
                manifest: serde_json::from_str(&manifest).map_err(|e| self.bad(&id, e))?,
            })
        };
        raw.into_iter().map(read).collect()
    }
}
