//! Errors of inputs, with advice for the user.

use std::fmt::Display;
use std::path::PathBuf;

use ctxbench_session::Session;
use ctxbench_util::files::FileError;
use ctxbench_util::toml_file::TomlError;

/// Session with the warnings of its reader.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    pub session: Session,
    /// Things that were repaired or left out, one sentence each, with file and line.
    pub warnings: Vec<String>,
    /// Companion files that were read.
    pub beside: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct InputError {
    /// File as the user named it. Readers of a line leave it empty; see [`InputError::at`].
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The problem, valid input, and advice for the user.
    pub what: String,
}

impl InputError {
    pub fn new(
        line: usize,
        what: impl Display,
        expected: impl Display,
        fix: impl Display,
    ) -> InputError {
        let what = format!("{what}; expected {expected}; {fix}");
        InputError { file: String::new(), line, what }
    }

    pub fn at(self, file: &str) -> InputError {
        InputError { file: file.to_string(), ..self }
    }
}

impl From<TomlError> for InputError {
    fn from(e: TomlError) -> InputError {
        let TomlError { file, line, what } = e;
        InputError { file, line, what }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// A folder cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content is invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    #[error("{}: the file is empty; record or write a session first", path.display())]
    Empty { path: PathBuf },
    /// The content has none of the known formats.
    #[error("{}: {why}", path.display())]
    Unknown { path: PathBuf, why: String },
    #[error(
        "{}: no messages in session {id:?}; expected at least one user message or reply",
        path.display()
    )]
    NoMessages { path: PathBuf, id: String },
    /// Nothing of the kind `what` has this name.
    #[error("no {what} is called {name:?}; {hint}")]
    NoSuchName {
        what: &'static str,
        name: String,
        /// The nearest names, or all of them.
        hint: String,
    },
}

impl LoadError {
    /// Returns whether the input is something other than a session, as many files of a folder are.
    pub fn is_other(&self) -> bool {
        matches!(self, LoadError::Unknown { .. } | LoadError::NoMessages { .. })
    }
}
