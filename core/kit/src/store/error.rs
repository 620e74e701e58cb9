//! Errors of the store.

use std::path::{Path, PathBuf};

use rusqlite::{Error, ErrorCode};

use super::ids::Id;

/// A failed operation of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is not a database.
    #[error("{} is not an SQLite database; it was not changed, give another \
        path", path.display())]
    NotADatabase { path: PathBuf },
    /// The database belongs to another program.
    #[error("{} is a database of another program; it was not changed, give another \
        path", path.display())]
    Foreign { path: PathBuf },
    /// Another version wrote the file.
    #[error("{} has format {found}, this program reads format {known}; use the program that wrote it \
        or another path", path.display())]
    OtherFormat {
        path: PathBuf,
        /// Format of the file.
        found: i64,
        /// Format of this program.
        known: i64,
    },
    /// The file cannot be read.
    #[error("{} cannot be read: {source}; check that it exists and that you may read \
        it", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// SQLite failed, or a row is invalid.
    #[error("{}: could not {action}: {source}; {}", path.display(), advice(source))]
    Sql { path: PathBuf, action: &'static str, source: Error },
    /// No such session.
    #[error("{} has no session {id}; check the id and the file", path.display())]
    NoSession { path: PathBuf, id: Id },
    /// No such message in the session.
    #[error(
        "{}: session {session} has no message {id}; use an id that loading it returned (to rewind before the start of a \
         fork, fork its parent)",
        path.display()
    )]
    NoMessage { path: PathBuf, session: Id, id: Id },
    /// No such part, or not a tool result.
    #[error("{} has no tool result {id}; only a tool result can be pruned", path.display())]
    NoResult { path: PathBuf, id: Id },
}

impl StoreError {
    pub(crate) fn sql(path: &Path, action: &'static str, source: Error) -> Self {
        StoreError::Sql { path: path.to_path_buf(), action, source }
    }
}

fn advice(e: &Error) -> &'static str {
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
        None if matches!(e, Error::FromSqlConversionFailure(..)) => {
            "the file is damaged, restore it from a backup"
        }
        _ => "nothing was changed",
    }
}
