//! File checkpoints, which a rewind restores.
//!
//! - [`EditCheckpoints`] works like Claude Code (docs/sources/claude-code.md §1.5). Each user prompt
//!   starts a checkpoint, which stores a file before an edit tool first changes it. It misses
//!   changes by shell commands; [`Tree::success`] measures how many.
//! - [`ShadowGit`] works like OpenCode (docs/sources/opencode.md §7). It writes the whole tree to a
//!   separate git directory around each step.
//!
//! Both restore files through [`Root`], which never leaves the session's folder.

mod edits;
mod git;
mod root;
// Most tests need permission bits and links.
#[cfg(test)]
#[cfg(unix)]
mod tests;
mod tree;

use std::fmt::Display;
use std::path::PathBuf;

use thiserror::Error;

use crate::store::StoreError;
use ctxbench_core::Millis;

pub use edits::{Checkpoint, EditCheckpoints, PendingRestore};
pub use git::{ShadowGit, git_version};
pub use root::{FileContent, Root};
pub use tree::{FileState, RestoreSuccess, Tree};

/// Error from creating or restoring checkpoints.
#[derive(Debug, Error)]
pub enum CheckpointError {
    /// A path that must not be touched.
    #[error("{path}: {reason}")]
    Refused { path: String, reason: String },
    /// A file or a program that failed.
    #[error("{what}: {reason}")]
    Failed { what: String, reason: String },
    /// The saved files cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The checkpoint does not exist.
    #[error("there is no checkpoint {0}; it may have expired")]
    Unknown(u64),
    /// Another process has the checkpoints open.
    #[error("{0}: another program uses these checkpoints; wait for it or end it")]
    InUse(PathBuf),
    /// An edit before the first checkpoint.
    #[error("{0}: no checkpoint to save the file in; call `begin` first")]
    NotBegun(String),
}

/// Returns a closure for `map_err`.
fn failed(what: impl Display, action: &str) -> impl FnOnce(std::io::Error) -> CheckpointError {
    move |e| {
        let reason = format!("could not {action} ({e})");
        CheckpointError::Failed { what: what.to_string(), reason }
    }
}

/// Result of restoring a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOutcome {
    /// Written, or removed because it did not exist at the checkpoint.
    Restored,
    /// Already in the state of the checkpoint.
    Unchanged,
    /// The path was not touched, because it is outside the folder or is a link or device. Contains
    /// the reason.
    Refused(String),
    /// Could not be saved or written. Contains the error.
    Failed(String),
}

impl From<CheckpointError> for FileOutcome {
    fn from(e: CheckpointError) -> FileOutcome {
        match e {
            CheckpointError::Refused { .. } => FileOutcome::Refused(e.to_string()),
            e => FileOutcome::Failed(e.to_string()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Checkpoint with the overwritten files. Restore it to undo this restore.
    pub undo: u64,
    /// Result of each tracked file, sorted by path.
    pub files: Vec<(String, FileOutcome)>,
}

impl Restored {
    pub fn count(&self, matches: impl Fn(&FileOutcome) -> bool) -> u64 {
        self.files.iter().filter(|(_, o)| matches(o)).count() as u64
    }
}

/// Saves the files of a session and restores them.
pub trait Snapshots {
    /// Starts a checkpoint for a user prompt. Returns its number; numbers increase. `now_ms` is the
    /// current time.
    fn begin(&mut self, prompt: &str, now_ms: Millis) -> Result<u64, CheckpointError>;
    /// Records the begin of a step. Call it before the tools of the step run.
    fn step_begins(&mut self) -> Result<(), CheckpointError> {
        Ok(())
    }
    /// Records that a file will be edited. Call it before an edit tool changes the file.
    fn before_edit(&mut self, path: &str) -> Result<(), CheckpointError>;
    /// Records the end of a step. Call it after the tools of the step ran.
    fn step_ends(&mut self) -> Result<(), CheckpointError> {
        Ok(())
    }
    /// Restores all tracked files to their state at a checkpoint. Saves files before overwriting
    /// them.
    fn restore(&mut self, to: u64, now_ms: Millis) -> Result<Restored, CheckpointError>;
    /// Returns the files that restoring this checkpoint would affect.
    fn tracked(&self, to: u64) -> Result<Vec<String>, CheckpointError>;
    /// Returns the bytes of all stored contents and lists before compression.
    fn stored_bytes(&self) -> Result<u64, CheckpointError>;
}
