//! Compactions: boundary messages, begun and finished, or complete at once.

use rusqlite::{OptionalExtension, params};

use super::error::StoreError;
use super::part::{NewPart, PartKind};
use super::ulid::Ulid;
use super::{New, Store, insert_message, insert_part};
use crate::block::Role;

/// A compaction under way.
const BOUNDARY: New = New { role: Role::User, complete: false, copied: false };

impl Store {
    /// Begins a compaction here. Until it is finished it is not shown and stops nothing.
    pub fn begin_boundary(&mut self, session: Ulid) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        let marker = [NewPart::marker()];
        self.write("begin a compaction", |tx, ids| Ok(insert_message(tx, ids, session, BOUNDARY, &marker)?.0))
    }

    /// Finishes a compaction: from now on loading stops at it and shows the summary in its place.
    pub fn finish_boundary(&mut self, boundary: Ulid, summary: &str) -> Result<(), StoreError> {
        let found = self.read("find a compaction", |db| {
            db.query_row(
                "SELECT m.session_id FROM messages m JOIN parts p ON p.message_id = m.id WHERE m.id = ?1 AND m.completed_at IS NULL AND p.kind = ?2",
                params![boundary.to_string(), PartKind::Marker.word()],
                |r| r.get::<_, String>(0),
            )
            .optional()
        })?;
        let session = found.ok_or(StoreError::NoBoundary { path: self.path.clone(), id: boundary })?;
        let part = NewPart::summary(summary);
        self.write("finish a compaction", |tx, ids| {
            let now = ids.now();
            insert_part(tx, ids, &session, boundary, &part)?;
            tx.execute("UPDATE messages SET completed_at = ?2 WHERE id = ?1", params![boundary.to_string(), now])?;
            tx.execute("UPDATE sessions SET compacted_at = ?2, updated_at = ?2 WHERE id = ?1", params![session, now])?;
            Ok(())
        })
    }

    /// A compaction that is complete at once: marker and summary.
    pub fn insert_boundary(&mut self, session: Ulid, summary: &str) -> Result<Ulid, StoreError> {
        self.compact(session, Some(summary), &[])
    }

    /// A compaction that is complete at once, with what is shown behind it: messages that were kept and are repeated, files that
    /// were brought back. Without a summary the boundary itself shows nothing. All of it is stored, or nothing.
    pub fn compact(&mut self, session: Ulid, summary: Option<&str>, kept: &[(Role, Vec<NewPart>)]) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        let parts: Vec<NewPart> = [Some(NewPart::marker()), summary.map(NewPart::summary)].into_iter().flatten().collect();
        self.write("insert a compaction", |tx, ids| {
            let (id, _) = insert_message(tx, ids, session, New { complete: true, ..BOUNDARY }, &parts)?;
            for (role, parts) in kept {
                insert_message(tx, ids, session, New { role: *role, complete: true, copied: true }, parts)?;
            }
            tx.execute("UPDATE sessions SET compacted_at = ?2 WHERE id = ?1", params![session.to_string(), ids.now()])?;
            Ok(id)
        })
    }
}
