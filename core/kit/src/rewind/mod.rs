//! Going back in a session: its conversation, the files of its folder, or both
//! (docs/sources/openoxide.md §1.8), and checkpoints with names to go back to.
//!
//! Nothing that was there is lost. What is given up of the conversation lives on as a fork, and the
//! files as they were are a checkpoint of their own, which that fork takes along. Contents of files
//! lie beside the store, as [`EditCheckpoints`] keeps them; the store's checkpoints say by
//! [`manifest`] which of those they mean.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;

use crate::checkpoint::{CheckpointError, Difference, EditCheckpoints, Keep, Restored, Snapshots};
use crate::store::{At, Checkpoint, LoadedMessage, NewCheckpoint, Place, Store, StoreError, Ulid};
use ctxbench_core::block::Role;

/// What goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    /// The files only.
    Code,
    /// The conversation only.
    Conversation,
    /// Both.
    Both,
}

/// Where to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Behind this message. Its files are those of the next checkpoint; of a prompt those that it
    /// began with.
    Message(Ulid),
    /// A checkpoint of the session.
    Checkpoint(Checkpoint),
}

/// What going back did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewound {
    /// The session that holds what was given up of the conversation.
    pub branch: Option<Ulid>,
    /// Messages that the session's log no longer has.
    pub messages: usize,
    /// What became of the files.
    pub files: Option<Restored>,
    /// The checkpoint that brings the files back as they were.
    pub undo: Option<Ulid>,
}

/// Going back is not possible as asked.
#[derive(Debug, Error)]
pub enum RewindError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files refused.
    #[error(transparent)]
    Files(#[from] CheckpointError),
    /// A conversation only.
    #[error("checkpoint {0} holds no files: it is of the conversation only; restore that alone")]
    NoFiles(Ulid),
    /// No checkpoint with files at or behind a message.
    #[error(
        "no checkpoint with files follows message {0}, so the files are as they were then; restore \
         the conversation alone"
    )]
    NoneFollows(Ulid),
    /// Nothing to mark.
    #[error("session {0} has no messages yet; a checkpoint stands behind a message")]
    Empty(Ulid),
    /// Files of nowhere.
    #[error("session {0} has no folder, so none of its checkpoints has files")]
    NoFolder(Ulid),
}

/// A store with the files that are kept beside it.
pub struct Rewinder {
    store: Store,
    /// Folder of the kept files.
    beside: PathBuf,
}

/// What a checkpoint in the store says of its files: their number in [`EditCheckpoints`], if it has
/// any.
pub fn manifest(files: Option<u64>) -> Value {
    files.map_or(Value::Null, |n| json!({ "files": n }))
}

/// The number of a checkpoint's files.
pub fn files_of(checkpoint: &Checkpoint) -> Option<u64> {
    checkpoint.what.manifest["files"].as_u64()
}

impl Rewinder {
    /// With the files in the folder of the store.
    pub fn new(store: Store, path: &Path) -> Rewinder {
        let beside = path.parent().filter(|p| !p.as_os_str().is_empty());
        Rewinder { store, beside: beside.unwrap_or(Path::new(".")).to_path_buf() }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The store, for what changes it in other ways.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// A checkpoint of a session as it is now: behind its newest message, and of its files if it
    /// has a folder.
    pub fn mark(
        &mut self,
        session: Ulid,
        name: Option<&str>,
        tags: &BTreeSet<String>,
        now: At,
    ) -> Result<Ulid, RewindError> {
        let place = self.newest(session)?.ok_or(RewindError::Empty(session))?;
        let number = match self.folder(session)? {
            None => None,
            Some(folder) => Some(self.files(&folder)?.begin(name.unwrap_or_default(), ms(now))?),
        };
        let new = NewCheckpoint {
            name: name.map(str::to_string),
            tags: tags.clone(),
            ..NewCheckpoint::new(place, manifest(number))
        };
        Ok(self.store.add_checkpoint(session, &new)?)
    }

    /// Goes back at a time (ms). Files go before the conversation: what they refuse leaves that as
    /// it is.
    ///
    /// Wherever this ends too soon, the session has a checkpoint of the files as they were, and the
    /// same target still means the same: that checkpoint is entered before a file is written, and
    /// only the conversation, which goes in one step, takes it along into its branch.
    pub fn rewind(
        &mut self,
        session: Ulid,
        to: &Target,
        what: Restore,
        now: At,
    ) -> Result<Rewound, RewindError> {
        let place = match to {
            Target::Message(id) => Place::Behind(*id),
            Target::Checkpoint(c) => c.what.place,
        };
        if what != Restore::Code {
            // Before any file is touched.
            self.store.require_message(session, place.message())?;
        }
        // Held until the end: an agent that is at work would go on as if nothing had happened.
        let (_at_rest, files) = match what {
            Restore::Conversation => (self.at_rest(session)?, None),
            Restore::Code | Restore::Both => {
                let number = self.number(session, to)?;
                let folder = self.folder(session)?.ok_or(RewindError::NoFolder(session))?;
                let mut kept = self.files(&folder)?;
                let files = self.restore(session, &mut kept, number, now)?;
                (Some(kept), Some(files))
            }
        };
        let given_up = match what {
            Restore::Code => None,
            Restore::Conversation | Restore::Both => {
                let title = format!("{} (given up)", self.store.session(session)?.title);
                Some(self.store.rewind_keeping(session, place, &title, now)?)
            }
        };
        let branch = given_up.and_then(|g| g.branch);
        let undo = match &files {
            None => None,
            Some(done) => self.holding(branch.unwrap_or(session), done.undo)?,
        };
        Ok(Rewound { branch, messages: given_up.map_or(0, |g| g.messages), files, undo })
    }

    /// Files that differ between two checkpoints of a session, or between one and now.
    pub fn differences(
        &self,
        session: Ulid,
        from: &Checkpoint,
        to: Option<&Checkpoint>,
    ) -> Result<Vec<Difference>, RewindError> {
        let number = |c: &Checkpoint| files_of(c).ok_or(RewindError::NoFiles(c.id));
        let (from, to) = (number(from)?, to.map(number).transpose()?);
        let folder = self.folder(session)?.ok_or(RewindError::NoFolder(session))?;
        Ok(self.files(&folder)?.compare(from, to)?)
    }

    /// The checkpoint whose files a target means.
    fn number(&self, session: Ulid, to: &Target) -> Result<u64, RewindError> {
        let message = match to {
            Target::Checkpoint(c) => return files_of(c).ok_or(RewindError::NoFiles(c.id)),
            Target::Message(id) => *id,
        };
        let log = self.store.log(session)?;
        let prompt = |m: &LoadedMessage| m.id == message && m.role == Role::User && !m.boundary;
        let is_prompt = log.iter().any(prompt);
        let follows = |c: &&Checkpoint| match c.what.place {
            Place::Before(id) => id > message || is_prompt && id == message,
            Place::Behind(id) => id >= message,
        };
        let all = self.store.checkpoints(session)?;
        all.iter()
            .filter(follows)
            .filter_map(|c| Some((c.what.place.message(), files_of(c)?)))
            .min()
            .map(|(_, number)| number)
            .ok_or(RewindError::NoneFollows(message))
    }

    /// Refuses while another program has the files of a session open, and keeps it from that.
    /// `None` where there are no files, or they cannot be opened for another reason.
    fn at_rest(&self, session: Ulid) -> Result<Option<EditCheckpoints>, RewindError> {
        let folder = self.folder(session)?.filter(|_| EditCheckpoints::are_kept(&self.beside));
        match folder.map(|f| self.files(&f)) {
            Some(Err(e @ RewindError::Files(CheckpointError::InUse(_)))) => Err(e),
            opened => Ok(opened.and_then(Result::ok)),
        }
    }

    /// Brings files back. What they were is a checkpoint of the session before one is written.
    fn restore(
        &mut self,
        session: Ulid,
        kept: &mut EditCheckpoints,
        number: u64,
        now: At,
    ) -> Result<Restored, RewindError> {
        let place = self.newest(session)?.ok_or(RewindError::Empty(session))?;
        let saved = kept.save_present(number, ms(now))?;
        let new = NewCheckpoint {
            name: Some("before going back".to_string()),
            ..NewCheckpoint::new(place, manifest(Some(saved.undo())))
        };
        self.store.add_checkpoint(session, &new)?;
        Ok(kept.go_back(saved))
    }

    /// The checkpoint in a session that holds these files: a branch gives it another id.
    fn holding(&self, session: Ulid, number: u64) -> Result<Option<Ulid>, RewindError> {
        let all = self.store.checkpoints(session)?;
        Ok(all.iter().rfind(|c| files_of(c) == Some(number)).map(|c| c.id))
    }

    fn newest(&self, session: Ulid) -> Result<Option<Place>, RewindError> {
        Ok(self.store.load_context(session)?.last().map(|m| Place::Behind(m.id)))
    }

    fn folder(&self, session: Ulid) -> Result<Option<PathBuf>, RewindError> {
        let of = self.store.session(session)?.directory;
        Ok((!of.is_empty()).then(|| PathBuf::from(of)))
    }

    fn files(&self, folder: &Path) -> Result<EditCheckpoints, RewindError> {
        Ok(EditCheckpoints::open(folder, &self.beside, Keep::default())?)
    }
}

fn ms(at: At) -> u64 {
    at.max(0) as u64
}
