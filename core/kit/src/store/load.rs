//! Loading the context of the next request (docs/sources/openoxide.md §1.4).

use rusqlite::{Params, Row, Transaction};
use serde_json::Value;
use ulid::ULID_LEN;

use super::ids::Id;
use super::part::{MARKER, decode, parse_role};
use super::{Store, StoreError, invalid};
use ctxbench_core::block::Role;
use ctxbench_core::content::Part;

/// Messages per read. Most sessions need one or two reads back to their last compaction.
pub const BATCH: usize = 50;

/// The newest messages of a session before an id; one index lookup.
pub(super) const NEWEST: &str = "SELECT id, role FROM messages
    WHERE session_id = ?1 AND id < ?2 AND deleted_at IS NULL ORDER BY id DESC LIMIT ?3";

/// The parts of one message. SQLite would plan a join over a range of messages as a scan of the
/// session.
pub(super) const PARTS: &str =
    "SELECT id, kind, data, placeholder FROM parts WHERE message_id = ?1 ORDER BY id";

/// Sorts after every id.
pub(super) const AFTER_ALL_IDS: &str = "~";

/// A message as the next request shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedMessage {
    pub id: Id,
    pub role: Role,
    /// Whether the message is a compaction.
    pub is_boundary: bool,
    pub parts: Vec<LoadedPart>,
}

/// A part as the next request shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedPart {
    pub id: Id,
    /// The output of a pruned tool result is its placeholder.
    pub content: Part,
}

impl Store {
    /// Returns the context of the next request, oldest first: the newest compaction with its summary,
    /// and everything after it. Reads backward in batches of [`BATCH`] messages, so the cost does not
    /// depend on the length of the session.
    pub fn load_context(&self, session: Id) -> Result<Vec<LoadedMessage>, StoreError> {
        // One snapshot, even if another program writes meanwhile.
        let _view = self.view()?;
        self.require_session(session)?;
        let mut out: Vec<LoadedMessage> = Vec::new();
        loop {
            let before = out.last().map_or(AFTER_ALL_IDS.to_string(), |m| m.id.to_string());
            let mut batch = self.messages(NEWEST, (session, before, BATCH as i64), true)?;
            let is_last = batch.len() < BATCH;
            let boundary = batch.iter().position(|m| m.is_boundary);
            batch.truncate(boundary.map_or(BATCH, |i| i + 1));
            out.extend(batch);
            if is_last || boundary.is_some() {
                out.reverse();
                return Ok(out);
            }
        }
    }

    /// Returns the messages of a query for id and role, with their parts; with placeholders for
    /// pruned results if `pruned` is set.
    pub(super) fn messages(
        &self,
        query: &str,
        params: impl Params,
        pruned: bool,
    ) -> Result<Vec<LoadedMessage>, StoreError> {
        self.rows("read messages", query, params, |r| {
            let (id, role): (Id, String) = (r.get(0)?, r.get(1)?);
            self.count(ULID_LEN + role.len());
            let role = parse_role(&role).ok_or_else(|| invalid(1, format!("role `{role}`")))?;
            let (mut parts, mut is_boundary) = (Vec::new(), false);
            let mut query = self.db.prepare_cached(PARTS)?;
            let mut rows = query.query([id])?;
            while let Some(row) = rows.next()? {
                match self.part(row, pruned)? {
                    Some(part) => parts.push(part),
                    None => is_boundary = true,
                }
            }
            Ok(LoadedMessage { id, role, is_boundary, parts })
        })
    }

    /// Reads a part; `None` for a marker.
    fn part(&self, r: &Row<'_>, pruned: bool) -> rusqlite::Result<Option<LoadedPart>> {
        let (id, kind, data): (Id, String, String) = (r.get(0)?, r.get(1)?, r.get(2)?);
        // The id of the message is read, too.
        self.count(2 * ULID_LEN + kind.len() + data.len());
        if kind == MARKER {
            return Ok(None);
        }
        let data: Value = serde_json::from_str(&data).map_err(|e| invalid(2, e))?;
        let mut content =
            decode(&kind, &data).ok_or_else(|| invalid(1, format!("kind `{kind}`")))?;
        let placeholder = r.get::<_, Option<String>>(3)?.filter(|_| pruned);
        if let (Some(text), Part::Result { output, .. }) = (placeholder, &mut content) {
            *output = text.into();
        }
        Ok(Some(LoadedPart { id, content }))
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
}
