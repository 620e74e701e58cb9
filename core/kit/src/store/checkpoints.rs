//! Checkpoints: positions in a session to rewind to.

use std::collections::BTreeSet;

use rusqlite::params;
use serde_json::Value;

use super::error::StoreError;
use super::ids::Ulid;
use super::{Millis, Store};

/// A position in a session, next to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Before(Ulid),
    After(Ulid),
}

impl Position {
    pub fn message(self) -> Ulid {
        match self {
            Position::Before(id) | Position::After(id) => id,
        }
    }

    /// Returns the SQL condition for ids of messages after the position; `?2` is the message.
    pub(super) fn is_later(self) -> &'static str {
        match self {
            Position::Before(_) => "id >= ?2",
            Position::After(_) => "id > ?2",
        }
    }
}

/// A checkpoint to store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCheckpoint {
    /// The checkpoint of a prompt is before that prompt.
    pub position: Position,
    /// Name given by a user.
    pub name: Option<String>,
    pub tags: BTreeSet<String>,
    /// Identifies the file contents for the program that restores them.
    pub manifest: Value,
}

impl NewCheckpoint {
    /// Creates a checkpoint without name and tags.
    pub fn new(position: Position, manifest: Value) -> Self {
        NewCheckpoint { position, name: None, tags: BTreeSet::new(), manifest }
    }
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub id: Ulid,
    /// Session of the checkpoint's message. In a fork, this may be an ancestor.
    pub session: Ulid,
    /// Time of creation, ms since 1970.
    pub created_at: Millis,
    pub details: NewCheckpoint,
}

impl Store {
    /// Stores a checkpoint of the session.
    pub fn add_checkpoint(
        &mut self,
        session: Ulid,
        new: &NewCheckpoint,
    ) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        self.require_message(session, new.position.message())?;
        self.write("store a checkpoint", |tx, ids| {
            let id = ids.next_id();
            tx.execute(
                "INSERT INTO checkpoints (id, session_id, message_id, created_at, manifest, name, \
                 tags, is_after) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    id.to_string(),
                    session.to_string(),
                    new.position.message().to_string(),
                    ids.now(),
                    new.manifest.to_string(),
                    new.name,
                    tags_json(&new.tags),
                    matches!(new.position, Position::After(_)),
                ],
            )?;
            Ok(id)
        })
    }

    /// Returns the checkpoints in a session's log, oldest first. A fork has those of its ancestors;
    /// checkpoints of rewound messages are left out.
    pub fn checkpoints(&self, session: Ulid) -> Result<Vec<Checkpoint>, StoreError> {
        type Raw = (String, String, String, Millis, String, Option<String>, String, bool);
        let _view = self.view()?;
        self.require_session(session)?;
        let mut raw: Vec<Raw> = Vec::new();
        for segment in self.segments(session)? {
            raw.extend(self.read("read checkpoints", |db| {
                let mut q = db.prepare_cached(&format!(
                    "SELECT c.id, c.session_id, c.message_id, c.created_at, c.manifest, c.name, \
                     c.tags, c.is_after FROM checkpoints c JOIN messages m ON m.id = c.message_id \
                     WHERE {} ORDER BY c.id",
                    segment.messages()
                ))?;
                let row = |r: &rusqlite::Row<'_>| {
                    Ok((
                        r.get(0)?,
                        r.get(1)?,
                        r.get(2)?,
                        r.get(3)?,
                        r.get(4)?,
                        r.get(5)?,
                        r.get(6)?,
                        r.get(7)?,
                    ))
                };
                q.query_map(segment.params(), row)?.collect::<rusqlite::Result<Vec<Raw>>>()
            })?);
        }
        let read = |(id, session, message, created_at, manifest, name, tags, is_after): Raw| {
            let ulid = |text: &str| text.parse::<Ulid>().map_err(|e| self.bad(&id, e));
            let message = ulid(&message)?;
            Ok(Checkpoint {
                id: ulid(&id)?,
                session: ulid(&session)?,
                created_at,
                details: NewCheckpoint {
                    position: if is_after {
                        Position::After(message)
                    } else {
                        Position::Before(message)
                    },
                    name,
                    tags: serde_json::from_str(&tags).map_err(|e| self.bad(&id, e))?,
                    manifest: serde_json::from_str(&manifest).map_err(|e| self.bad(&id, e))?,
                },
            })
        };
        raw.into_iter().map(read).collect()
    }
}

fn tags_json(tags: &BTreeSet<String>) -> String {
    Value::from(tags.iter().cloned().collect::<Vec<_>>()).to_string()
}
