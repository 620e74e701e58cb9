//! Errors of reading results and of writing reports.

use std::io;
use std::path::{Path, PathBuf};

use ctxbench_util::files::FileError;

/// Error while reading results.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be opened.
    #[error(
        "{path}: cannot be read ({source}); expected a results.json or a folder that `ctxbench \
         run` wrote"
    )]
    Io { path: PathBuf, source: io::Error },
    #[error("{path}: the file is empty; expected {expected} as written by ctxbench")]
    Empty { path: PathBuf, expected: &'static str },
    /// Not JSON, or JSON of another structure. Line and column count from 1.
    #[error(
        "{path}, line {line}, column {column}: {message}; expected {expected} as written by \
         ctxbench"
    )]
    Syntax { path: PathBuf, line: usize, column: usize, message: String, expected: &'static str },
    /// A baseline that is not as it was written.
    #[error(
        "{path}: the baseline was edited or has no checksum; restore what `gate --store` wrote"
    )]
    Edited { path: PathBuf },
    /// Another version of the format.
    #[error("{path}: version {found} of {what}, expected version {expected}; {advice}")]
    Version { path: PathBuf, what: &'static str, found: u64, expected: u32, advice: &'static str },
}

/// Error while creating a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The report cannot be made; contains the reason and the remedy.
    #[error("{0}")]
    Refused(String),
    /// Rows could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Standard output or a file could not be written; contains the system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    File(#[from] FileError),
}

/// Error of an action on a file or folder of the output.
pub(crate) fn unwritten(
    path: &Path,
    action: &'static str,
) -> impl FnOnce(io::Error) -> FileError + use<> {
    let path = path.to_path_buf();
    let advice = "check that the folder can be written to and has space";
    move |source| FileError::Io { path, action, source, advice }
}
