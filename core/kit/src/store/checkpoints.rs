//! Checkpoints: positions in a session to rewind to.

use rusqlite::params;

use super::ids::Id;
use super::{Store, StoreError};

/// A position in a session, next to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    Before(Id),
    After(Id),
}

impl Position {
    pub fn message(self) -> Id {
        match self {
            Position::Before(id) | Position::After(id) => id,
        }
    }
}

/// A stored checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub id: Id,
    /// The checkpoint of a prompt is before that prompt.
    pub position: Position,
    /// Name given by a user.
    pub name: Option<String>,
    /// Number of the checkpoint's files for the program that restores them, if any.
    pub files: Option<u64>,
}

impl Store {
    /// Stores a checkpoint of the session and returns its id.
    pub fn add_checkpoint(
        &mut self,
        session: Id,
        position: Position,
        name: Option<&str>,
        files: Option<u64>,
    ) -> Result<Id, StoreError> {
        let message = position.message();
        self.require_message(session, message)?;
        self.write("store a checkpoint", |tx, ids| {
            let id = ids.next_id();
            let is_after = matches!(position, Position::After(_));
            let files = files.map(|n| n as i64);
            tx.execute(
                "INSERT INTO checkpoints (id, session_id, message_id, files, name, is_after) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id, session, message, files, name, is_after],
            )?;
            Ok(id)
        })
    }

    /// Returns the checkpoints in a session's log, oldest first. A fork has those of its ancestors;
    /// checkpoints of rewound messages are left out.
    pub fn checkpoints(&self, session: Id) -> Result<Vec<Checkpoint>, StoreError> {
        let _view = self.view()?;
        let mut out = Vec::new();
        for segment in self.segments(session)? {
            let query = format!(
                "SELECT c.id, c.message_id, c.files, c.name, c.is_after FROM checkpoints c \
                 JOIN messages m ON m.id = c.message_id WHERE {} ORDER BY c.id",
                segment.messages()
            );
            out.extend(self.rows("read checkpoints", &query, segment.params(), |r| {
                let position = if r.get(4)? { Position::After } else { Position::Before };
                Ok(Checkpoint {
                    id: r.get(0)?,
                    position: position(r.get(1)?),
                    files: r.get::<_, Option<i64>>(2)?.map(|n| n as u64),
                    name: r.get(3)?,
                })
            })?);
        }
        Ok(out)
    }
}
