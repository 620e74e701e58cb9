//! Checkpoints of files: what a rewind restores, two ways behind one door.
//!
//! [`EditCheckpoints`] is the way of Claude Code (docs/sources/claude-code.md §1.5): one
//! checkpoint per user prompt, and before an edit tool touches a file its former content is kept.
//! What a shell command changes is not seen: that is the blind spot that [`Tree::success`]
//! measures. [`ShadowGit`] is the way of OpenCode (docs/sources/opencode.md §7): the whole tree is
//! written into a git directory of its own around every step. Either restores through [`Root`],
//! which never leaves the session's folder.

mod blobs;
mod compare;
mod edits;
mod git;
mod root;
// Permission bits and links are what most of them are about; `root::paths` has tests of its own.
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod tree;

use std::path::PathBuf;

use thiserror::Error;

use ctxbench_core::session::Millis;

pub use blobs::{Blobs, Digest, Durability};
pub use compare::Difference;
pub use edits::{Checkpoint, EditCheckpoints, Keep, Saved};
pub use git::{ShadowGit, git_version};
pub use root::{Content, PathError, Root, SafePath, Why};
pub use tree::{FileState, Success, Tree};

/// What went wrong with a checkpoint.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// A path that is not touched.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The system refused.
    #[error(
        "{path}: could not {action} ({source}); check that the folder can be written to and has \
         space"
    )]
    Io {
        /// Where.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// No such checkpoint.
    #[error("there is no checkpoint {0}; it was never made, or it has expired")]
    Unknown(u64),
    /// Somebody else has them open.
    #[error(
        "{0}: another program is working with these checkpoints; end it, or wait until it has ended"
    )]
    InUse(PathBuf),
    /// An edit before the first prompt.
    #[error("{0}: a file can only be kept after a checkpoint was begun; call `begin` first")]
    NotBegun(String),
    /// A stored file does not say what it should.
    #[error("{path}: {what}; the store is damaged, remove this file to go on without it")]
    Damaged {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The git program failed.
    #[error("git {command} failed: {said}")]
    Git {
        /// Which command.
        command: String,
        /// What it said.
        said: String,
    },
}

/// For `map_err`.
fn io(
    path: &std::path::Path,
    action: &'static str,
) -> impl FnOnce(std::io::Error) -> CheckpointError {
    let path = path.to_path_buf();
    move |source| CheckpointError::Io { path, action, source }
}

/// What became of a file when code was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// It was written, or removed because it did not exist then.
    Restored,
    /// It was as it should be.
    Unchanged,
    /// It lies where nothing may be written, or a link or device stands in its place; nothing was
    /// touched.
    Refused(String),
    /// It could not be saved or written.
    Failed(String),
}

/// What a restoration did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// The checkpoint that holds what was overwritten; restoring to it takes the restoration back.
    pub undo: u64,
    /// Every file that was looked at, by path, in order.
    pub files: Vec<(String, FileOutcome)>,
}

impl Restored {
    /// Number of files with an outcome like this.
    pub fn count(&self, like: impl Fn(&FileOutcome) -> bool) -> u64 {
        self.files.iter().filter(|(_, o)| like(o)).count() as u64
    }
}

/// What a way keeps on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Bytes of all kept contents and lists before compression: the same on every machine.
    pub content_bytes: u64,
    /// Bytes of the files that hold them, as this machine's programs compress them.
    pub disk_bytes: u64,
}

/// A way of keeping the files of a session so that they can be brought back.
pub trait Snapshots {
    /// A few words for reports.
    fn name(&self) -> &'static str;
    /// A user prompt arrived: a checkpoint begins. Returns its number, larger than all before.
    /// `now_ms` is the caller's clock.
    fn begin(&mut self, prompt: &str, now_ms: Millis) -> Result<u64, CheckpointError>;
    /// The tools of a step are about to run.
    fn step_begins(&mut self) -> Result<(), CheckpointError> {
        Ok(())
    }
    /// An edit tool is about to change this file.
    fn before_edit(&mut self, path: &str) -> Result<(), CheckpointError>;
    /// The tools of a step have run.
    fn step_ends(&mut self) -> Result<(), CheckpointError> {
        Ok(())
    }
    /// Brings the files back to where they were at a checkpoint, as far as this way knows. What it
    /// overwrites is saved first.
    fn restore(&mut self, to: u64, now_ms: Millis) -> Result<Restored, CheckpointError>;
    /// Files that a restoration to this checkpoint would look at.
    fn tracked(&self, to: u64) -> Result<Vec<String>, CheckpointError>;
    /// What is kept so far.
    fn stored(&self) -> Result<Stored, CheckpointError>;
}
