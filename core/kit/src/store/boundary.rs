//! Compactions: boundary messages, begun and finished, or complete at once.

use rusqlite::{OptionalExtension, Transaction, params};

use super::error::StoreError;
use super::part::{NewPart, PartKind};
use super::ulid::Ulid;
use super::{New, Store, insert_message, insert_part};
use ctxbench_core::block::Role;

/// A compaction under way.
const BOUNDARY: New = New { role: Role::User, complete: false, copied: false };

impl Store {
    /// Begins a compaction here. Until it is finished it is not shown and stops nothing.
    pub fn begin_boundary(&mut self, session: Ulid) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        let marker = [NewPart::marker()];
        self.write("begin a compaction", |tx, ids| {
            Ok(insert_message(tx, ids, session, BOUNDARY, &marker)?.0)
        })
    }

    /// Finishes a compaction: from now on loading stops at it and shows the summary in its place.
    /// One that was taken back by a rewind, or whose session was deleted, stays as it is.
    pub fn finish_boundary(&mut self, boundary: Ulid, summary: &str) -> Result<(), StoreError> {
        let part = NewPart::summary(summary);
        let (path, id) = (self.path.clone(), boundary);
        // Looked at inside the transaction: another program may go back in between.
        self.write("finish a compaction", |tx, ids| {
            let open: Option<(String, bool, bool)> = tx
                .query_row(
                    "SELECT s.id, s.deleted_at IS NOT NULL, m.deleted_at IS NOT NULL
                     FROM messages m JOIN sessions s ON s.id = m.session_id JOIN parts p ON \
                     p.message_id = m.id
                     WHERE m.id = ?1 AND m.completed_at IS NULL AND p.kind = ?2",
                    params![boundary.to_string(), PartKind::Marker.word()],
                    |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)),
                )
                .optional()?;
            let session = match open {
                None => return Ok(Err(StoreError::NoBoundary { path, id })),
                Some((session, true, _)) => {
                    return Ok(Err(match session.parse() {
                        Ok(id) => StoreError::NoSession { path, id },
                        Err(e) => StoreError::BadRow { path, id: session, what: e.to_string() },
                    }));
                }
                Some((_, false, true)) => {
                    return Ok(Err(StoreError::BoundaryTakenBack { path, id }));
                }
                Some((session, false, false)) => session,
            };
            let now = ids.now();
            insert_part(tx, ids, &session, boundary, &part)?;
            tx.execute(
                "UPDATE messages SET completed_at = ?2 WHERE id = \
                ?1",
                params![boundary.to_string(), now],
            )?;
            tx.execute("UPDATE sessions SET updated_at = ?2 WHERE id = ?1", params![session, now])?;
            note_compaction(tx, &session)?;
            Ok(Ok(()))
        })?
    }

    /// A compaction that is complete at once: marker and summary.
    pub fn insert_boundary(&mut self, session: Ulid, summary: &str) -> Result<Ulid, StoreError> {
        self.compact(session, Some(summary), &[])
    }

    /// A compaction that is complete at once, with what is shown behind it: messages that were kept
    /// and are repeated, files that were brought back. Without a summary the boundary itself shows
    /// nothing. All of it is stored, or nothing.
    pub fn compact(
        &mut self,
        session: Ulid,
        summary: Option<&str>,
        kept: &[(Role, Vec<NewPart>)],
    ) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        let parts: Vec<NewPart> = [Some(NewPart::marker()), summary.map(NewPart::summary)]
            .into_iter()
            .flatten()
            .collect();
        self.write("insert a compaction", |tx, ids| {
            let (id, _) =
                insert_message(tx, ids, session, New { complete: true, ..BOUNDARY }, &parts)?;
            for (role, parts) in kept {
                insert_message(
                    tx,
                    ids,
                    session,
                    New { role: *role, complete: true, copied: true },
                    parts,
                )?;
            }
            note_compaction(tx, &session.to_string())?;
            Ok(id)
        })
    }
}

/// Notes in the session when the compaction at which loading stops was finished; nothing where
/// there is none, or none any more.
pub(super) fn note_compaction(tx: &Transaction<'_>, session: &str) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE sessions SET compacted_at = (
             SELECT m.completed_at FROM messages m WHERE m.session_id = ?1 AND m.deleted_at IS \
             NULL AND m.completed_at IS NOT NULL
             AND EXISTS (SELECT 1 FROM parts p WHERE p.message_id = m.id AND p.kind = ?2) ORDER BY \
             m.id DESC LIMIT 1
         ) WHERE id = ?1",
    )?
    .execute(params![session, PartKind::Marker.word()])
    .map(|_| ())
}
