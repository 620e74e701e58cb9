//! Loading what the next request would show (docs/sources/openoxide.md §1.4).

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::Value;

use super::error::StoreError;
use super::part::{PartKind, content, role_of};
use super::ulid::Ulid;
use super::{At, Store};
use ctxbench_core::block::Role;
use ctxbench_core::content::Part;

/// Messages read at a time: enough that most sessions since their last compaction need one or two
/// reads.
pub const BATCH: usize = 50;

/// What stands for the output of a pruned tool result.
pub const PRUNED: &str = "[tool result cleared to make room]";

/// The newest messages of a session before an id. One step into an index.
pub(super) const NEWEST: &str =
    "SELECT id, role, created_at, completed_at IS NOT NULL FROM messages
    WHERE session_id = ?1 AND id < ?2 AND deleted_at IS NULL ORDER BY id DESC LIMIT ?3";

/// The parts of one message. A join over a range of messages is planned by SQLite as a search
/// through the whole session.
pub(super) const PARTS: &str =
    "SELECT id, kind, data, compacted_at, placeholder FROM parts WHERE message_id = ?1 ORDER BY id";

/// A text behind every id.
const BEHIND_ALL: &str = "~";

/// SQL that is true of a message `m` which the log has, if it has any of its place: finished, and
/// not a repetition.
pub(super) const LOGGED: &str = "m.completed_at IS NOT NULL AND m.copied = 0";

/// What one session adds to the log of itself or of a fork below it.
pub(super) struct Stretch {
    session: String,
    /// The message before which it ends.
    until: String,
    /// The fork that ends it; `None` = the session whose log it is.
    fork: Option<String>,
}

impl Stretch {
    /// SQL that is true of its messages `m`, with [`Stretch::params`]. Of an ancestor's messages a
    /// fork says itself which it lacks, whatever became of them since.
    pub(super) fn messages(&self) -> &'static str {
        match self.fork {
            Some(_) => {
                "m.session_id = ?1 AND m.id < ?2 AND m.id NOT IN \
                 (SELECT message_id FROM fork_lacks WHERE session_id = ?3)"
            }
            None => "m.session_id = ?1 AND m.id < ?2 AND m.deleted_at IS NULL AND ?3 IS NULL",
        }
    }

    pub(super) fn params(&self) -> (&str, &str, Option<&str>) {
        (&self.session, &self.until, self.fork.as_deref())
    }
}

/// A message as the next request would show it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedMessage {
    /// Its id.
    pub id: Ulid,
    /// Who spoke.
    pub role: Role,
    /// When it was stored, ms.
    pub created_at: At,
    /// It is a compaction; in a context the one at which loading stopped.
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

impl LoadedPart {
    /// It as a part of a message; `None` for what stands for no content, such as a marker.
    pub fn content(&self) -> Option<Part> {
        content(self.kind, &self.data)
    }
}

struct Row {
    id: String,
    role: String,
    created_at: At,
    complete: bool,
}

impl Store {
    /// What the next request would show, oldest first: everything since the newest finished
    /// compaction, which comes first with its summary. Reads from the newest message back in
    /// batches of [`BATCH`] and stops there, however long the session is.
    pub fn load_context(&self, session: Ulid) -> Result<Vec<LoadedMessage>, StoreError> {
        // One view of the file, whatever others write meanwhile.
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
                if message.boundary && !row.complete {
                    // A compaction that was never finished stands for nothing.
                    continue;
                }
                let stop = message.boundary;
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

    /// Everything that was said and not taken back, oldest first, compacted or not; of a fork first
    /// what its ancestors said before what it repeats, as it stood when the fork was made. Pruned
    /// results are whole. What a compaction repeats comes once. For audit and recovery: it is all
    /// read.
    pub fn log(&self, session: Ulid) -> Result<Vec<LoadedMessage>, StoreError> {
        let _view = self.view()?;
        self.require_session(session)?;
        let mut out = Vec::new();
        for stretch in self.line(session)? {
            let rows = self.read("read messages", |db| {
                let mut q = db.prepare_cached(&format!(
                    "SELECT id, role, created_at, completed_at IS NOT NULL FROM messages m
                     WHERE {} AND {LOGGED} ORDER BY id",
                    stretch.messages()
                ))?;
                q.query_map(stretch.params(), row_of)?.collect::<rusqlite::Result<Vec<Row>>>()
            })?;
            let mut parts = self.parts(&rows, false)?;
            for row in &rows {
                out.push(self.message(row, parts.remove(&row.id).unwrap_or_default())?);
            }
        }
        Ok(out)
    }

    /// Which messages stand in the log of a session: from its oldest ancestor to itself.
    pub(super) fn line(&self, session: Ulid) -> Result<Vec<Stretch>, StoreError> {
        let (session, until) = (session.to_string(), BEHIND_ALL.to_string());
        let mut line = vec![Stretch { session, until, fork: None }];
        while let Some(last) = line.last() {
            let up = self.read("find a session's parent", |db| {
                let of = "SELECT parent_id, log_until, id FROM sessions WHERE id = ?1 AND \
                    log_until IS NOT NULL";
                let stretch = |r: &rusqlite::Row<'_>| {
                    Ok(Stretch { session: r.get(0)?, until: r.get(1)?, fork: r.get(2)? })
                };
                db.query_row(of, [&last.session], stretch).optional()
            })?;
            let Some(up) = up else { break };
            line.push(up);
        }
        line.reverse();
        Ok(line)
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
        let rows: Vec<Row> = self.read("read messages", |db| {
            let mut q = db.prepare_cached(NEWEST)?;
            q.query_map(
                params![session.to_string(), before.unwrap_or(BEHIND_ALL), BATCH as i64],
                row_of,
            )?
            .collect()
        })?;
        self.count(rows.iter().map(|r| r.id.len() + r.role.len()).sum());
        Ok(rows)
    }

    /// Parts of messages, by message, in order; pruned ones as a request shows them, or whole.
    fn parts(
        &self,
        rows: &[Row],
        pruned: bool,
    ) -> Result<HashMap<String, Vec<LoadedPart>>, StoreError> {
        type Raw = (String, String, String, String, Option<At>, Option<String>);
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
            let kind = PartKind::from_word(&kind)
                .ok_or_else(|| self.bad(&id, format!("kind `{kind}`")))?;
            let mut data: Value = serde_json::from_str(&data).map_err(|e| self.bad(&id, e))?;
            if compacted_at.is_some() && pruned {
                let Some(o) = data.as_object_mut() else {
                    return Err(self.bad(&id, "a tool result that is no object"));
                };
                o.insert("output".into(), placeholder.as_deref().unwrap_or(PRUNED).into());
            }
            let id = id.parse().map_err(|e| self.bad(&id, e))?;
            out.entry(message).or_default().push(LoadedPart { id, kind, data, compacted_at });
        }
        Ok(out)
    }

    fn message(&self, row: &Row, parts: Vec<LoadedPart>) -> Result<LoadedMessage, StoreError> {
        let role =
            role_of(&row.role).ok_or_else(|| self.bad(&row.id, format!("role `{}`", row.role)))?;
        let id = row.id.parse().map_err(|e| self.bad(&row.id, e))?;
        let boundary = parts.iter().any(|p| p.kind == PartKind::Marker);
        Ok(LoadedMessage { id, role, created_at: row.created_at, boundary, parts })
    }

    /// Bytes of the rows that loading has read so far: ids, roles, kinds and contents.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.get()
    }

    fn count(&self, bytes: usize) {
        self.bytes_read.set(self.bytes_read.get() + bytes as u64);
    }

    /// Until it is dropped, reads see one state of the file.
    pub(super) fn view(&self) -> Result<Transaction<'_>, StoreError> {
        self.db.unchecked_transaction().map_err(|e| StoreError::sql(&self.path, "begin to read", e))
    }

    pub(super) fn bad(&self, id: &str, what: impl std::fmt::Display) -> StoreError {
        StoreError::BadRow { path: self.path.clone(), id: id.to_string(), what: what.to_string() }
    }
}

fn row_of(r: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row { id: r.get(0)?, role: r.get(1)?, created_at: r.get(2)?, complete: r.get(3)? })
}
