//! Loading the context of the next request (docs/sources/openoxide.md §1.4).

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::Value;

use super::error::StoreError;
use super::ids::Ulid;
use super::part::{PartKind, parse_role, to_content};
use super::{Millis, Store};
use ctxbench_core::block::Role;
use ctxbench_core::content::Part;

/// Messages per read. Most sessions need one or two reads back to their last compaction.
pub const BATCH: usize = 50;

/// Placeholder for the output of a pruned tool result.
pub const PRUNED: &str = "[tool result cleared to make room]";

/// The newest messages of a session before an id; one index lookup.
pub(super) const NEWEST: &str = "SELECT id, role, created_at FROM messages
    WHERE session_id = ?1 AND id < ?2 AND deleted_at IS NULL ORDER BY id DESC LIMIT ?3";

/// The parts of one message. SQLite would plan a join over a range of messages as a scan of the
/// session.
pub(super) const PARTS: &str =
    "SELECT id, kind, data, compacted_at, placeholder FROM parts WHERE message_id = ?1 ORDER BY id";

/// Sorts after every id.
const AFTER_ALL_IDS: &str = "~";

/// SQL condition for messages `m` of the log.
pub(super) const IS_LOGGED: &str = "m.copied = 0";

/// The messages that one session contributes to its own log or to that of a fork.
pub(super) struct Segment {
    session: String,
    /// End of the segment, exclusive.
    until: String,
    /// The fork that starts at the end; `None` for the last segment.
    fork: Option<String>,
}

impl Segment {
    /// Returns the SQL condition for the segment's messages `m`, with [`Segment::params`]. A fork
    /// has its own list of the ancestor's messages that it excludes.
    pub(super) fn messages(&self) -> &'static str {
        match self.fork {
            Some(_) => {
                "m.session_id = ?1 AND m.id < ?2 AND m.id NOT IN \
                 (SELECT message_id FROM fork_exclusions WHERE session_id = ?3)"
            }
            None => "m.session_id = ?1 AND m.id < ?2 AND m.deleted_at IS NULL AND ?3 IS NULL",
        }
    }

    pub(super) fn params(&self) -> (&str, &str, Option<&str>) {
        (&self.session, &self.until, self.fork.as_deref())
    }
}

/// A message as the next request shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedMessage {
    pub id: Ulid,
    pub role: Role,
    /// ms since 1970.
    pub created_at: Millis,
    /// Whether the message is a compaction.
    pub is_boundary: bool,
    pub parts: Vec<LoadedPart>,
}

/// A part as the next request shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPart {
    pub id: Ulid,
    pub kind: PartKind,
    /// The `output` of a pruned tool result is its placeholder.
    pub data: Value,
    /// Time of pruning, ms since 1970.
    pub compacted_at: Option<Millis>,
}

impl LoadedPart {
    /// Converts it to a part of a message; `None` for a marker.
    pub fn content(&self) -> Option<Part> {
        to_content(self.kind, &self.data)
    }
}

struct MessageRecord {
    id: String,
    role: String,
    created_at: Millis,
}

impl Store {
    /// Returns the context of the next request, oldest first: the newest compaction with its summary,
    /// and everything after it. Reads backward in batches of [`BATCH`] messages, so the cost does not
    /// depend on the length of the session.
    pub fn load_context(&self, session: Ulid) -> Result<Vec<LoadedMessage>, StoreError> {
        // One snapshot, even if another program writes meanwhile.
        let _view = self.view()?;
        self.require_session(session)?;
        let mut out = Vec::new();
        let mut before: Option<String> = None;
        loop {
            let rows = self.batch(session, before.as_deref())?;
            let Some(oldest) = rows.last() else { break };
            let mut parts = self.parts(&rows, true)?;
            let (full, next) = (rows.len() == BATCH, oldest.id.clone());
            for row in rows {
                let message = self.message(&row, parts.remove(&row.id).unwrap_or_default())?;
                let stop = message.is_boundary;
                out.push(message);
                if stop {
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

    /// Returns every message that was not rewound, oldest first, compacted or not. For a fork this
    /// starts with the messages of its ancestors as they were when the fork was made. Pruned results
    /// are complete, and copies made by a compaction are left out. Reads the whole session.
    pub fn log(&self, session: Ulid) -> Result<Vec<LoadedMessage>, StoreError> {
        let _view = self.view()?;
        self.require_session(session)?;
        let mut out = Vec::new();
        for segment in self.segments(session)? {
            let rows = self.read("read messages", |db| {
                let mut q = db.prepare_cached(&format!(
                    "SELECT id, role, created_at FROM messages m
                     WHERE {} AND {IS_LOGGED} ORDER BY id",
                    segment.messages()
                ))?;
                q.query_map(segment.params(), row_of)?
                    .collect::<rusqlite::Result<Vec<MessageRecord>>>()
            })?;
            let mut parts = self.parts(&rows, false)?;
            for row in &rows {
                out.push(self.message(row, parts.remove(&row.id).unwrap_or_default())?);
            }
        }
        Ok(out)
    }

    /// Returns the segments of a session's log, from its oldest ancestor to itself.
    pub(super) fn segments(&self, session: Ulid) -> Result<Vec<Segment>, StoreError> {
        let (session, until) = (session.to_string(), AFTER_ALL_IDS.to_string());
        let mut segments = vec![Segment { session, until, fork: None }];
        while let Some(last) = segments.last() {
            let up = self.read("find a session's parent", |db| {
                let of = "SELECT parent_id, log_until, id FROM sessions WHERE id = ?1 AND \
                    log_until IS NOT NULL";
                let segment = |r: &rusqlite::Row<'_>| {
                    Ok(Segment { session: r.get(0)?, until: r.get(1)?, fork: r.get(2)? })
                };
                db.query_row(of, [&last.session], segment).optional()
            })?;
            let Some(up) = up else { break };
            segments.push(up);
        }
        segments.reverse();
        Ok(segments)
    }

    /// Returns the newest messages before an id, newest first.
    fn batch(&self, session: Ulid, before: Option<&str>) -> Result<Vec<MessageRecord>, StoreError> {
        let rows: Vec<MessageRecord> = self.read("read messages", |db| {
            let mut q = db.prepare_cached(NEWEST)?;
            q.query_map(
                params![session.to_string(), before.unwrap_or(AFTER_ALL_IDS), BATCH as i64],
                row_of,
            )?
            .collect()
        })?;
        self.count(rows.iter().map(|r| r.id.len() + r.role.len()).sum());
        Ok(rows)
    }

    /// Returns parts by message, in order; with placeholders for pruned results if `pruned` is set.
    fn parts(
        &self,
        rows: &[MessageRecord],
        pruned: bool,
    ) -> Result<HashMap<String, Vec<LoadedPart>>, StoreError> {
        type Raw = (String, String, String, String, Option<Millis>, Option<String>);
        let raw: Vec<Raw> = self.read("read parts", |db| {
            let mut q = db.prepare_cached(PARTS)?;
            let mut all = Vec::new();
            for m in rows {
                let row = |r: &rusqlite::Row<'_>| {
                    Ok((r.get(0)?, m.id.clone(), r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?))
                };
                for part in q.query_map([&m.id], row)? {
                    all.push(part?);
                }
            }
            Ok(all)
        })?;
        self.count(
            raw.iter()
                .map(|(id, message, kind, data, ..)| {
                    id.len() + message.len() + kind.len() + data.len()
                })
                .sum(),
        );
        let mut out: HashMap<String, Vec<LoadedPart>> = HashMap::new();
        for (id, message, kind, data, compacted_at, placeholder) in raw {
            let kind =
                PartKind::parse(&kind).ok_or_else(|| self.bad(&id, format!("kind `{kind}`")))?;
            let mut data: Value = serde_json::from_str(&data).map_err(|e| self.bad(&id, e))?;
            if compacted_at.is_some() && pruned {
                let Some(o) = data.as_object_mut() else {
                    return Err(self.bad(&id, "a tool result that is not an object"));
                };
                o.insert("output".into(), placeholder.as_deref().unwrap_or(PRUNED).into());
            }
            let id = id.parse().map_err(|e| self.bad(&id, e))?;
            out.entry(message).or_default().push(LoadedPart { id, kind, data, compacted_at });
        }
        Ok(out)
    }

    fn message(
        &self,
        row: &MessageRecord,
        parts: Vec<LoadedPart>,
    ) -> Result<LoadedMessage, StoreError> {
        let role = parse_role(&row.role)
            .ok_or_else(|| self.bad(&row.id, format!("role `{}`", row.role)))?;
        let id = row.id.parse().map_err(|e| self.bad(&row.id, e))?;
        let is_boundary = parts.iter().any(|p| p.kind == PartKind::Marker);
        Ok(LoadedMessage { id, role, created_at: row.created_at, is_boundary, parts })
    }

    /// Returns the bytes of ids, roles, kinds and contents that loading has read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.get()
    }

    fn count(&self, bytes: usize) {
        self.bytes_read.set(self.bytes_read.get() + bytes as u64);
    }

    /// Starts a read transaction: until it is dropped, reads see one state of the file.
    pub(super) fn view(&self) -> Result<Transaction<'_>, StoreError> {
        self.db.unchecked_transaction().map_err(|e| StoreError::sql(&self.path, "start reading", e))
    }

    pub(super) fn bad(&self, id: &str, reason: impl std::fmt::Display) -> StoreError {
        StoreError::BadRow {
            path: self.path.clone(),
            id: id.to_string(),
            reason: reason.to_string(),
        }
    }
}

fn row_of(r: &rusqlite::Row<'_>) -> rusqlite::Result<MessageRecord> {
    Ok(MessageRecord { id: r.get(0)?, role: r.get(1)?, created_at: r.get(2)? })
}
