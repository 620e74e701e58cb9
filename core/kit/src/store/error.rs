//! Errors of the store.

use std::path::{Path, PathBuf};

use rusqlite::{Error, ErrorCode};

/// A failed operation of a store.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct StoreError {
    pub path: PathBuf,
    /// The problem and its remedy.
    pub problem: String,
}

impl StoreError {
    pub(super) fn new(path: &Path, problem: impl Into<String>) -> Self {
        StoreError { path: path.to_path_buf(), problem: problem.into() }
    }

    /// Creates the error of SQLite, or of an invalid row. `action` completes "could not …".
    pub(crate) fn sql(path: &Path, action: &str, source: &Error) -> Self {
        let advice = match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase) => "it was not changed, give another path",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another program is writing to it, try again"
            }
            Some(ErrorCode::DiskFull) => "nothing was changed, free some space and try again",
            None => "the file is damaged, restore it from a backup",
            _ => "nothing was changed, check that the folder exists and that you may write there",
        };
        StoreError::new(path, format!("could not {action}: {source}; {advice}"))
    }
}
