//! What can go wrong with a store, for people: which file, what happened, what to do.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::ulid::Ulid;

/// A store that cannot be used as asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The file holds something else.
    #[error("{} is not an SQLite database; it was left as it is, give another \
        path", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The database belongs to another program.
    #[error("{} is a database of another program; it was left as it is, give another \
        path", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later version.
    #[error("{} has format {found}, this program knows up to {known}; use the newer program or \
        another path", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Format of the file.
        found: i64,
        /// Newest format known here.
        known: i64,
    },
    /// The file cannot be read.
    #[error("{} cannot be read: {source}; check that it exists and that you may read \
        it", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("{}: could not {doing}: {source}; {}", path.display(), advice(source))]
    Sql {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// SQLite's words.
        source: rusqlite::Error,
    },
    /// No such session.
    #[error("{} has no session {id}; it may have been deleted, or belongs to another \
        file", path.display())]
    NoSession {
        /// The file.
        path: PathBuf,
        /// The session.
        id: Ulid,
    },
    /// Written by an earlier version, and it cannot be brought up to date.
    #[error("{} has format {found} and is read-only, so it cannot be brought to format {known}; \
        make it writable or copy it", path.display())]
    OldAndReadOnly {
        /// The file.
        path: PathBuf,
        /// Format of the file.
        found: i64,
        /// Format of this program.
        known: i64,
    },
    /// No such message in the session.
    #[error(
        "{}: session {session} has no message {id} of its own; take an id that loading it returned \
         (what lies before a fork is \
         reached by forking its parent there)",
        path.display()
    )]
    NoMessage {
        /// The file.
        path: PathBuf,
        /// The session.
        session: Ulid,
        /// The message.
        id: Ulid,
    },
    /// No such part.
    #[error("{} has no part {id}; take the ids that appending or loading returned", path.display())]
    NoPart {
        /// The file.
        path: PathBuf,
        /// The part.
        id: Ulid,
    },
    /// No such checkpoint.
    #[error("{} has no checkpoint {id}; take an id that `checkpoints` returned", path.display())]
    NoCheckpoint {
        /// The file.
        path: PathBuf,
        /// The checkpoint.
        id: Ulid,
    },
    /// Only tool results are pruned.
    #[error("{}: part {id} is a {kind}; only a tool_result can be pruned", path.display())]
    NotAResult {
        /// The file.
        path: PathBuf,
        /// The part.
        id: Ulid,
        /// What it is.
        kind: String,
    },
    /// No compaction under way.
    #[error("{}: message {id} is no compaction under way; begin one first, and finish it \
        once", path.display())]
    NoBoundary {
        /// The file.
        path: PathBuf,
        /// The message.
        id: Ulid,
    },
    /// The compaction was rewound.
    #[error("{}: compaction {id} was taken back by going back to an earlier message; restore what \
        was taken back, or begin a new one", path.display())]
    BoundaryTakenBack {
        /// The file.
        path: PathBuf,
        /// The boundary.
        id: Ulid,
    },
    /// A row that this program cannot have written.
    #[error("{}: row {id} cannot be understood ({what}); restore the file from a \
        backup", path.display())]
    BadRow {
        /// The file.
        path: PathBuf,
        /// The row.
        id: String,
        /// What is wrong with it.
        what: String,
    },
}

impl StoreError {
    pub(super) fn sql(path: &Path, doing: &'static str, source: rusqlite::Error) -> Self {
        StoreError::Sql { path: path.to_path_buf(), doing, source }
    }
}

fn advice(e: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program is writing to it, try again"
        }
        Some(ErrorCode::CannotOpen) => "check that the folder exists and that you may write there",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "it is read-only; nothing was changed, check that you may write to it"
        }
        Some(ErrorCode::DiskFull) => {
            "the disk is full; nothing was changed, free some space and try again"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "the file is damaged, restore it from a backup"
        }
        _ => "nothing was changed",
    }
}
