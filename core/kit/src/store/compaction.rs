//! Compactions: boundary messages at which loading stops.

use rusqlite::{Transaction, params};

use super::error::StoreError;
use super::ids::Ulid;
use super::part::{NewPart, PartKind};
use super::{Store, insert_message};
use ctxbench_core::block::Role;

impl Store {
    /// Stores a compaction: a boundary message with the summary, followed by copies of the messages
    /// that stay in the context. Without a summary the boundary shows nothing. All or nothing is
    /// stored. Returns the id of the boundary.
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
            let (id, _) = insert_message(tx, ids, session, Role::User, false, &parts)?;
            for (role, parts) in kept {
                insert_message(tx, ids, session, *role, true, parts)?;
            }
            update_compacted_at(tx, &session.to_string())?;
            Ok(id)
        })
    }
}

/// Sets the session's `compacted_at` to the time of its newest boundary, or to NULL.
pub(super) fn update_compacted_at(tx: &Transaction<'_>, session: &str) -> rusqlite::Result<()> {
    tx.prepare_cached(
        "UPDATE sessions SET compacted_at = (
             SELECT m.created_at FROM messages m WHERE m.session_id = ?1 AND m.deleted_at IS NULL
             AND EXISTS (SELECT 1 FROM parts p WHERE p.message_id = m.id AND p.kind = ?2)
             ORDER BY m.id DESC LIMIT 1
         ) WHERE id = ?1",
    )?
    .execute(params![session, PartKind::Marker.as_str()])
    .map(|_| ())
}
