//! Loading the context of the next request (docs/sources/openoxide.md §1.4).

use rusqlite::{Params, Row, Transaction};
use serde_json::Value;
use ulid::ULID_LEN;

use super::ids::Id;
use super::part::decode;
use super::{Store, StoreError, invalid};
use ctxbench_core::{Part, Role};

/// Messages per read. Most sessions need one or two reads back to their last compaction.
pub const BATCH: usize = 50;

/// The newest messages of a session before an id; one index lookup.
pub(super) const NEWEST: &str = "SELECT id, role, is_boundary FROM messages
    WHERE session_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3";

/// The parts of one message. SQLite would plan a join over a range of messages as a scan of the
/// session.
pub(super) const PARTS: &str = "SELECT id, kind, data, placeholder FROM parts
    WHERE session_id = ?1 AND message_id = ?2 ORDER BY id";

/// Sorts after every id.
const AFTER_ALL_IDS: &str = "~";

/// A message as the next request shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedMessage {
    pub id: Id,
    pub role: Role,
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
        self.session(session)?;
        let mut out: Vec<LoadedMessage> = Vec::new();
        loop {
            let before = out.last().map_or(AFTER_ALL_IDS.to_string(), |m| m.id.to_string());
            let mut batch =
                self.messages(session, NEWEST, (session, before, BATCH as i64), true)?;
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

    /// Returns every message that was not rewound, oldest first, compacted or not. Pruned results are
    /// complete, and copies made by a compaction are left out. Reads the whole session.
    pub fn log(&self, session: Id) -> Result<Vec<LoadedMessage>, StoreError> {
        let _view = self.view()?;
        self.session(session)?;
        let query = "SELECT id, role, is_boundary FROM messages \
                     WHERE session_id = ?1 AND is_copy = 0 ORDER BY id";
        self.messages(session, query, [session], false)
    }

    /// Returns the messages of a query for id, role and boundary, with their parts; with placeholders
    /// for pruned results if `pruned` is set.
    fn messages(
        &self,
        session: Id,
        query: &str,
        params: impl Params,
        pruned: bool,
    ) -> Result<Vec<LoadedMessage>, StoreError> {
        self.rows("read messages", query, params, |r| {
            let (id, role): (Id, String) = (r.get(0)?, r.get(1)?);
            self.count(ULID_LEN + role.len());
            let role = serde_json::from_value(Value::String(role)).map_err(|e| invalid(1, e))?;
            let mut query = self.db.prepare_cached(PARTS)?;
            let parts = query.query_map((session, id), |row| self.part(row, pruned))?;
            let parts = parts.collect::<rusqlite::Result<_>>()?;
            Ok(LoadedMessage { id, role, is_boundary: r.get(2)?, parts })
        })
    }

    fn part(&self, r: &Row<'_>, pruned: bool) -> rusqlite::Result<LoadedPart> {
        let (id, kind, data): (Id, String, String) = (r.get(0)?, r.get(1)?, r.get(2)?);
        // The id of the message is read, too.
        self.count(2 * ULID_LEN + kind.len() + data.len());
        let data: Value = serde_json::from_str(&data).map_err(|e| invalid(2, e))?;
        let mut content =
            decode(&kind, &data).ok_or_else(|| invalid(1, format!("kind `{kind}`")))?;
        let placeholder = r.get::<_, Option<String>>(3)?.filter(|_| pruned);
        if let (Some(text), Part::Result { output, .. }) = (placeholder, &mut content) {
            *output = text.into();
        }
        Ok(LoadedPart { id, content })
    }

    /// Returns the bytes of ids, roles, kinds and contents that loading has read so far.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.get()
    }

    fn count(&self, bytes: usize) {
        self.bytes_read.set(self.bytes_read.get() + bytes as u64);
    }

    /// Starts a read transaction: until it is dropped, reads see one state of the file.
    fn view(&self) -> Result<Transaction<'_>, StoreError> {
        self.db
            .unchecked_transaction()
            .map_err(|e| StoreError::sql(&self.path, "start reading", &e))
    }
}
