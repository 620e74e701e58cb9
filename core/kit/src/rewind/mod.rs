//! Rewinding a session: its conversation, the files of its folder, or both
//! (docs/sources/openoxide.md §1.8), and named checkpoints.
//!
//! Nothing is lost: discarded messages stay in a fork, and the replaced files become a checkpoint of
//! that fork. File contents are kept next to the store by [`EditCheckpoints`]; a checkpoint of the
//! store refers to them by their number there.
//!
//! Files are only written below the folder that holds the store's own folder (`FOLDER` for
//! `FOLDER/.agent/sessions.db`). A session that names another folder is refused, so a copied or
//! hostile store cannot change files elsewhere.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::checkpoint::{CheckpointError, EditCheckpoints, Restored, Snapshots};
use crate::store::{Checkpoint, Id, LoadedMessage, Position, Store, StoreError};
use ctxbench_core::block::Role;

/// The part of a session to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restore {
    Code,
    Conversation,
    Both,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A position after this message, with the files of the next checkpoint. For a prompt, these
    /// are the files before it.
    Message(Id),
    Checkpoint(Checkpoint),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewound {
    /// The fork with the discarded messages.
    pub branch: Option<Id>,
    /// Number of discarded messages.
    pub messages: usize,
    pub files: Option<Restored>,
    /// The checkpoint that restores the replaced files; it is in the fork, if there is one.
    pub undo: Option<Id>,
}

/// A rewind that is not possible.
#[derive(Debug, Error)]
pub enum RewindError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Files(#[from] CheckpointError),
    #[error("checkpoint {0} has no files; restore only the conversation")]
    NoFiles(Id),
    #[error(
        "no checkpoint with files follows message {0}, so the files have not changed since; restore \
         only the conversation"
    )]
    NoneFollows(Id),
    #[error("session {0} has no messages yet, so there is nothing to mark")]
    Empty(Id),
}

/// A store, and the file contents that are kept next to it.
pub struct Rewinder {
    pub store: Store,
    /// Folder of the store and of the kept contents.
    store_folder: PathBuf,
    folder: PathBuf,
}

impl Rewinder {
    /// Opens the store in `path`, for sessions that change the files of `folder`.
    pub fn open(path: &Path, folder: &Path) -> Result<Rewinder, StoreError> {
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        Ok(Rewinder {
            store: Store::open(path)?,
            store_folder: parent.unwrap_or(Path::new(".")).to_path_buf(),
            folder: folder.to_path_buf(),
        })
    }

    /// Creates a checkpoint after the newest message of a session, with its files.
    pub fn mark(&mut self, session: Id, name: &str) -> Result<Id, RewindError> {
        let position = self.newest(session)?;
        let files = self.files()?.begin(name, self.now_ms())?;
        Ok(self.store.add_checkpoint(session, position, Some(name), Some(files))?)
    }

    /// Rewinds a session. Files come first: if they fail, the conversation does not change.
    ///
    /// If the program is killed meanwhile, the session has a checkpoint of the replaced files, which
    /// is stored before the first file is written, and the target is still valid.
    pub fn rewind(
        &mut self,
        session: Id,
        to: &Target,
        restore: Restore,
    ) -> Result<Rewound, RewindError> {
        let position = match to {
            Target::Message(id) => Position::After(*id),
            Target::Checkpoint(c) => c.position,
        };
        if restore != Restore::Code {
            // Check this before any file is touched.
            self.store.require_message(session, position.message())?;
        }
        // The lock is kept until the end, so that a running agent cannot continue with the old
        // state.
        let (_lock, files) = match restore {
            Restore::Conversation => (self.lock()?, None),
            Restore::Code | Restore::Both => {
                let number = self.number(session, to)?;
                let mut kept = self.files()?;
                let restored = self.restore(session, &mut kept, number)?;
                (Some(kept), Some(restored))
            }
        };
        let discarded = match restore {
            Restore::Code => None,
            Restore::Conversation | Restore::Both => {
                let title = format!("{} (discarded)", self.store.session(session)?.title);
                Some(self.store.rewind(session, position, &title)?)
            }
        };
        let (undo, files) = files.unzip();
        let branch = discarded.and_then(|d| d.branch);
        Ok(Rewound { branch, messages: discarded.map_or(0, |d| d.messages), files, undo })
    }

    /// Returns the file checkpoint of a target.
    fn number(&self, session: Id, to: &Target) -> Result<u64, RewindError> {
        let message = match to {
            Target::Checkpoint(c) => return c.files.ok_or(RewindError::NoFiles(c.id)),
            Target::Message(id) => *id,
        };
        let log = self.store.log(session)?;
        let prompt = |m: &LoadedMessage| m.id == message && m.role == Role::User && !m.is_boundary;
        let is_prompt = log.iter().any(prompt);
        let follows = |c: &&Checkpoint| match c.position {
            Position::Before(id) => id > message || is_prompt && id == message,
            Position::After(id) => id >= message,
        };
        let all = self.store.checkpoints(session)?;
        all.iter()
            .filter(follows)
            .filter_map(|c| Some((c.position.message(), c.files?)))
            .min()
            .map(|(_, number)| number)
            .ok_or(RewindError::NoneFollows(message))
    }

    /// Locks the kept files. Returns `None` if no files were kept, or if they cannot be opened. Fails if
    /// another program has them open.
    fn lock(&self) -> Result<Option<EditCheckpoints>, RewindError> {
        let exist = EditCheckpoints::exist(&self.store_folder);
        match exist.then(|| self.files()) {
            Some(Err(e @ RewindError::Files(CheckpointError::InUse(_)))) => Err(e),
            opened => Ok(opened.and_then(Result::ok)),
        }
    }

    /// Restores files after storing a checkpoint of the current ones.
    fn restore(
        &mut self,
        session: Id,
        kept: &mut EditCheckpoints,
        number: u64,
    ) -> Result<(Id, Restored), RewindError> {
        let position = self.newest(session)?;
        let pending = kept.prepare(number, self.now_ms())?;
        let files = Some(pending.undo());
        let undo = self.store.add_checkpoint(session, position, Some("before rewind"), files)?;
        Ok((undo, kept.apply(pending)))
    }

    /// Returns the position after the newest message.
    fn newest(&self, session: Id) -> Result<Position, RewindError> {
        let newest = self.store.load_context(session)?.last().map(|m| Position::After(m.id));
        newest.ok_or(RewindError::Empty(session))
    }

    fn now_ms(&self) -> u64 {
        self.store.now().max(0) as u64
    }

    fn files(&self) -> Result<EditCheckpoints, RewindError> {
        Ok(EditCheckpoints::open(&self.folder, &self.store_folder)?)
    }
}
