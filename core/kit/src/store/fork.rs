//! Forks: a session that continues from a message of another one. A rewind keeps the messages that it
//! takes back in a fork.
//!
//! A fork copies the context at that message, not the history: loading a fork never reads its
//! parent, and later changes of the parent do not reach it. Earlier messages stay in the parent:
//! [`Store::log`] reads them there up to `log_until`. `fork_exclusions` lists the ones that had
//! already been rewound when the fork was made. Rejected: sharing messages (each fork would need its
//! own marks), and copying everything (a fork of a long session would double the file).

use rusqlite::{OptionalExtension, Transaction, params};

use super::checkpoints::Position;
use super::ids::{Id, IdGenerator};
use super::log::IS_LOGGED;
use super::part::MARKER;
use super::{Store, StoreError, update_compacted_at};

/// Records the rewound messages of the parent before a message.
pub(super) const EXCLUDE: &str = "INSERT INTO fork_exclusions SELECT ?1, id FROM messages
    WHERE session_id = ?2 AND id < ?3 AND deleted_at IS NOT NULL";

/// Tables with rows of a message, and their columns other than the ids.
const OF_MESSAGE: [(&str, &str); 2] = [
    ("parts", "kind, data, compacted_at, placeholder, created_at"),
    ("checkpoints", "files, name, is_after"),
];

/// Messages that a rewind removed from the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// A fork that still has them; `None` if no message came later than the position.
    pub branch: Option<Id>,
    /// Number of messages that the session's log no longer has.
    pub messages: usize,
}

impl Store {
    /// Creates a session that continues after a message of `parent`, with the pruned results and
    /// checkpoints that the parent has now.
    pub fn fork(&mut self, parent: Id, at: Id, title: &str) -> Result<Id, StoreError> {
        self.require_message(parent, at)?;
        self.write("fork a session", |tx, ids| fork_in(tx, ids, parent, at, title))
    }

    /// Rewinds a session to a position and keeps the later messages in a fork with this title. Both
    /// happen or neither.
    pub fn rewind(
        &mut self,
        session: Id,
        to: Position,
        title: &str,
    ) -> Result<Discarded, StoreError> {
        self.require_message(session, to.message())?;
        let later = match to {
            Position::Before(_) => "session_id = ?1 AND id >= ?2 AND deleted_at IS NULL",
            Position::After(_) => "session_id = ?1 AND id > ?2 AND deleted_at IS NULL",
        };
        self.write("rewind a session", |tx, ids| {
            let of = (session, to.message());
            let newest = format!("SELECT max(id) FROM messages WHERE {later}");
            let Some(newest) = tx.query_row(&newest, of, |r| r.get::<_, Option<Id>>(0))? else {
                return Ok(Discarded { branch: None, messages: 0 });
            };
            let branch = fork_in(tx, ids, session, newest, title)?;
            let logged = format!("SELECT count(*) FROM messages m WHERE {later} AND {IS_LOGGED}");
            let messages: i64 = tx.query_row(&logged, of, |r| r.get(0))?;
            let mark = format!("UPDATE messages SET deleted_at = ?3 WHERE {later}");
            tx.execute(&mark, params![session, to.message(), ids.now()])?;
            update_compacted_at(tx, session)?;
            let updated = "UPDATE sessions SET updated_at = ?2 WHERE id = ?1";
            tx.execute(updated, params![session, ids.now()])?;
            Ok(Discarded { branch: Some(branch), messages: messages as usize })
        })
    }
}

/// Forks inside a transaction. `to` is a message of `from`.
fn fork_in(
    tx: &Transaction<'_>,
    ids: &mut IdGenerator,
    from: Id,
    to: Id,
    title: &str,
) -> rusqlite::Result<Id> {
    let (fork, now) = (ids.next_id(), ids.now());
    tx.execute(
        "INSERT INTO sessions (id, parent_id, forked_at, title, directory, created_at, updated_at)
         SELECT ?1, id, ?3, ?4, directory, ?5, ?5 FROM sessions WHERE id = ?2",
        params![fork, from, to, title, now],
    )?;
    let boundary: Option<Id> = tx
        .query_row(
            "SELECT m.id FROM messages m WHERE m.session_id = ?1 AND m.id <= ?2 AND \
             m.deleted_at IS NULL
             AND EXISTS (SELECT 1 FROM parts p WHERE p.message_id = m.id AND p.kind = ?3) \
             ORDER BY m.id DESC LIMIT 1",
            params![from, to, MARKER],
            |r| r.get(0),
        )
        .optional()?;
    if let Some(boundary) = boundary {
        let until = "UPDATE sessions SET log_until = ?2 WHERE id = ?1";
        tx.execute(until, params![fork, boundary])?;
        tx.execute(EXCLUDE, params![fork, from, boundary])?;
    }
    let shown = "SELECT id FROM messages WHERE session_id = ?1 AND id <= ?2 AND id >= ?3 AND \
                 deleted_at IS NULL ORDER BY id";
    let first = boundary.map_or(String::new(), |id| id.to_string());
    for message in ids_of(tx, shown, params![from, to, first])? {
        let copy = ids.next_id();
        tx.prepare_cached(
            "INSERT INTO messages (id, session_id, role, created_at, copied)
             SELECT ?1, ?2, role, created_at, copied FROM messages WHERE id = ?3",
        )?
        .execute(params![copy, fork, message])?;
        for (table, columns) in OF_MESSAGE {
            let rows = format!("SELECT id FROM {table} WHERE message_id = ?1 ORDER BY id");
            let insert = format!(
                "INSERT INTO {table} (id, message_id, session_id, {columns})
                 SELECT ?1, ?2, ?3, {columns} FROM {table} WHERE id = ?4"
            );
            for row in ids_of(tx, &rows, [message])? {
                tx.prepare_cached(&insert)?.execute(params![ids.next_id(), copy, fork, row])?;
            }
        }
    }
    update_compacted_at(tx, fork)?;
    Ok(fork)
}

fn ids_of(
    tx: &Transaction<'_>,
    query: &str,
    params: impl rusqlite::Params,
) -> rusqlite::Result<Vec<Id>> {
    tx.prepare_cached(query)?.query_map(params, |r| r.get(0))?.collect()
}
