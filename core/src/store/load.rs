//! Loading what the next request would show (seeds/000, "Message Loading").

use std::collections::HashMap;

use rusqlite::params;
use serde_json::Value;

use super::error::StoreError;
use super::part::{PartKind, role_of};
use super::ulid::Ulid;
use super::{At, Store};
use crate::block::Role;

/// Messages read at a time: enough that most sessions since their last compaction need one or two reads.
pub const BATCH: usize = 50;

/// What stands for the output of a pruned tool result.
pub const PRUNED: &str = "[tool result cleared to make room]";

/// A message as the next request would show it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedMessage {
    /// Its id.
    pub id: Ulid,
    /// Who spoke.
    pub role: Role,
    /// When it was stored, ms.
    pub created_at: At,
    /// It is the boundary at which loading stopped.
    pub boundary: bool,
    /// What was said, in order.
    pub parts: Vec<LoadedPart>,
}

/// A part as the next request would show it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPart {
    /// Its id.
    pub id: Ulid,
    /// What it is.
    pub kind: PartKind,
    /// Its contents; of a pruned tool result the output is [`PRUNED`].
    pub data: Value,
    /// When it was pruned, ms; `None` = live.
    pub compacted_at: Option<At>,
}

struct Row {
    id: String,
    role: String,
    created_at: At,
    complete: bool,
}

impl Store {
    /// What the next request would show, oldest first: everything since the newest finished compaction, which comes first with
    /// its summary. Reads from the newest message back in batches of [`BATCH`] and stops there, however long the session is.
    pub fn load_context(&self, session: Ulid) -> Result<Vec<LoadedMessage>, StoreError> {
        self.require_session(session)?;
        let mut out = Vec::new();
        let mut before: Option<String> = None;
        loop {
            let rows = self.batch(session, before.as_deref())?;
            let (Some(newest), Some(oldest)) = (rows.first(), rows.last()) else { break };
            let mut parts = self.parts(session, &oldest.id, &newest.id)?;
            let (full, next) = (rows.len() == BATCH, oldest.id.clone());
            for row in rows {
                let message = self.message(&row, parts.remove(&row.id).unwrap_or_default())?;
                let marker = message.parts.iter().any(|p| p.kind == PartKind::Marker);
                if marker && !row.complete {
                    // A compaction that was never finished stands for nothing.
                    continue;
                }
                out.push(LoadedMessage { boundary: marker, ..message });
                if marker {
                    out.reverse();
                    return Ok(out);
                }
            }
            if !full {
                break;
            }
            before = Some(next);
        }
        out.reverse();
        Ok(out)
    }

    /// The contents of a part as they were stored, pruned or not.
    pub fn part_data(&self, part: Ulid) -> Result<Value, StoreError> {
        let id = part.to_string();
        let found = self.read("read a part", |db| {
            let mut q = db.prepare_cached("SELECT data FROM parts WHERE id = ?1")?;
            let mut rows = q.query([&id])?;
            rows.next()?.map(|r| r.get::<_, String>(0)).transpose()
        })?;
        let text = found.ok_or(StoreError::NoPart { path: self.path.clone(), id: part })?;
        serde_json::from_str(&text).map_err(|e| self.bad(&id, e))
    }

    /// The newest messages before an id, newest first.
    fn batch(&self, session: Ulid, before: Option<&str>) -> Result<Vec<Row>, StoreError> {
        self.read("read messages", |db| {
            let mut q = db.prepare_cached(
                "SELECT id, role, created_at, completed_at IS NOT NULL FROM messages
                 WHERE session_id = ?1 AND deleted_at IS NULL AND (?2 IS NULL OR id < ?2) ORDER BY id DESC LIMIT ?3",
            )?;
            let row = |r: &rusqlite::Row<'_>| Ok(Row { id: r.get(0)?, role: r.get(1)?, created_at: r.get(2)?, complete: r.get(3)? });
            q.query_map(params![session.to_string(), before, BATCH as i64], row)?.collect()
        })
    }

    /// Parts of the messages in a range of ids, by message, in order.
    fn parts(&self, session: Ulid, first: &str, last: &str) -> Result<HashMap<String, Vec<LoadedPart>>, StoreError> {
        type Raw = (String, String, String, String, Option<At>);
        let raw: Vec<Raw> = self.read("read parts", |db| {
            let mut q = db.prepare_cached(
                "SELECT id, message_id, kind, data, compacted_at FROM parts
                 WHERE message_id BETWEEN ?2 AND ?3 AND session_id = ?1 ORDER BY message_id, id",
            )?;
            let row = |r: &rusqlite::Row<'_>| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?));
            q.query_map(params![session.to_string(), first, last], row)?.collect()
        })?;
        let mut out: HashMap<String, Vec<LoadedPart>> = HashMap::new();
        for (id, message, kind, data, compacted_at) in raw {
            let kind = PartKind::of(&kind).ok_or_else(|| self.bad(&id, format!("kind `{kind}`")))?;
            let mut data: Value = serde_json::from_str(&data).map_err(|e| self.bad(&id, e))?;
            if compacted_at.is_some() {
                data["output"] = PRUNED.into();
            }
            let id = id.parse().map_err(|e| self.bad(&id, e))?;
            out.entry(message).or_default().push(LoadedPart { id, kind, data, compacted_at });
        }
        Ok(out)
    }

    fn message(&self, row: &Row, parts: Vec<LoadedPart>) -> Result<LoadedMessage, StoreError> {
        let role = role_of(&row.role).ok_or_else(|| self.bad(&row.id, format!("role `{}`", row.role)))?;
        let id = row.id.parse().map_err(|e| self.bad(&row.id, e))?;
        Ok(LoadedMessage { id, role, created_at: row.created_at, boundary: false, parts })
    }

    fn bad(&self, id: &str, what: impl std::fmt::Display) -> StoreError {
        StoreError::BadRow { path: self.path.clone(), id: id.to_string(), what: what.to_string() }
    }
}
