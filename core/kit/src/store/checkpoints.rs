//! Checkpoints: places in a session that one can go back to, by name if they have one.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::error::StoreError;
use super::ulid::Ulid;
use super::{At, Store};

/// A place in a session, named by a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The message is the first that is not there yet.
    Before(Ulid),
    /// The message is the last that is there.
    Behind(Ulid),
}

impl Place {
    /// The message.
    pub fn message(self) -> Ulid {
        match self {
            Place::Before(id) | Place::Behind(id) => id,
        }
    }

    /// SQL that is true of the ids of messages which come after the place, `?2` being the message.
    pub(super) fn later(self) -> &'static str {
        match self {
            Place::Before(_) => "id >= ?2",
            Place::Behind(_) => "id > ?2",
        }
    }
}

/// A checkpoint to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct NewCheckpoint {
    /// Where it stands. Those that an agent makes for each prompt stand before it.
    pub place: Place,
    /// What a person calls it.
    pub name: Option<String>,
    /// Words to find it by.
    pub tags: BTreeSet<String>,
    /// Which files with which contents: for whoever takes and restores checkpoints.
    pub manifest: Value,
}

impl NewCheckpoint {
    /// One without name and tags.
    pub fn new(place: Place, manifest: Value) -> Self {
        NewCheckpoint { place, name: None, tags: BTreeSet::new(), manifest }
    }
}

/// A checkpoint as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Its id.
    pub id: Ulid,
    /// The session whose message it names: of a fork it may be an ancestor.
    pub session: Ulid,
    /// When, ms.
    pub at: At,
    /// What was stored.
    pub what: NewCheckpoint,
}

impl Store {
    /// Stores a checkpoint at a message of the session.
    pub fn add_checkpoint(
        &mut self,
        session: Ulid,
        new: &NewCheckpoint,
    ) -> Result<Ulid, StoreError> {
        self.require_session(session)?;
        self.require_message(session, new.place.message())?;
        self.write("store a checkpoint", |tx, ids| {
            let id = ids.next_id();
            tx.execute(
                "INSERT INTO checkpoints (id, session_id, message_id, created_at, manifest, name, \
                 tags, behind) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    id.to_string(),
                    session.to_string(),
                    new.place.message().to_string(),
                    ids.now(),
                    new.manifest.to_string(),
                    new.name,
                    json_of(&new.tags),
                    matches!(new.place, Place::Behind(_)),
                ],
            )?;
            Ok(id)
        })
    }

    /// Gives a checkpoint another name, if one is given, and further tags.
    pub fn label_checkpoint(
        &mut self,
        id: Ulid,
        name: Option<&str>,
        tags: &BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let (path, key) = (self.path.clone(), id.to_string());
        self.write("label a checkpoint", |tx, _| {
            let of = "SELECT tags FROM checkpoints WHERE id = ?1";
            let Some(has) = tx.query_row(of, [&key], |r| r.get::<_, String>(0)).optional()? else {
                return Ok(Err(StoreError::NoCheckpoint { path, id }));
            };
            let mut all: BTreeSet<String> = match serde_json::from_str(&has) {
                Ok(all) => all,
                Err(e) => {
                    return Ok(Err(StoreError::BadRow { path, id: key, what: e.to_string() }));
                }
            };
            all.extend(tags.iter().cloned());
            tx.execute(
                "UPDATE checkpoints SET name = coalesce(?2, name), tags = ?3 WHERE id = ?1",
                params![key, name, json_of(&all)],
            )?;
            Ok(Ok(()))
        })?
    }

    /// The checkpoints in a session's log, oldest first: those of messages that were taken back are
    /// left out, and those that a fork has from its ancestors come first.
    pub fn checkpoints(&self, session: Ulid) -> Result<Vec<Checkpoint>, StoreError> {
        type Raw = (String, String, String, At, String, Option<String>, String, bool);
        let _view = self.view()?;
        self.require_session(session)?;
        let mut raw: Vec<Raw> = Vec::new();
        for stretch in self.line(session)? {
            raw.extend(self.read("read checkpoints", |db| {
                let mut q = db.prepare_cached(&format!(
                    "SELECT c.id, c.session_id, c.message_id, c.created_at, c.manifest, c.name, \
                     c.tags, c.behind FROM checkpoints c JOIN messages m ON m.id = c.message_id \
                     WHERE {} ORDER BY c.id",
                    stretch.messages()
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
                q.query_map(stretch.params(), row)?.collect::<rusqlite::Result<Vec<Raw>>>()
            })?);
        }
        let read = |(id, session, message, at, manifest, name, tags, behind): Raw| {
            let ulid = |text: &str| text.parse::<Ulid>().map_err(|e| self.bad(&id, e));
            let message = ulid(&message)?;
            Ok(Checkpoint {
                id: ulid(&id)?,
                session: ulid(&session)?,
                at,
                what: NewCheckpoint {
                    place: if behind { Place::Behind(message) } else { Place::Before(message) },
                    name,
                    tags: serde_json::from_str(&tags).map_err(|e| self.bad(&id, e))?,
                    manifest: serde_json::from_str(&manifest).map_err(|e| self.bad(&id, e))?,
                },
            })
        };
        raw.into_iter().map(read).collect()
    }
}

fn json_of(tags: &BTreeSet<String>) -> String {
    Value::from(tags.iter().cloned().collect::<Vec<_>>()).to_string()
}
