//! Errors of inputs, with advice for the user.

use std::path::PathBuf;

use ctxbench_core::files::FileError;
use ctxbench_core::session::Session;
use ctxbench_core::toml_file::TomlError;

/// Session with the warnings of its reader.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    pub session: Session,
    /// Things that were repaired or left out, one sentence each, with file and line.
    pub warnings: Vec<String>,
}

/// Error at a place in an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}; expected {expected}; {fix}")]
pub struct InputError {
    /// File as the user named it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    pub what: String,
    /// Description of valid input.
    pub expected: String,
    /// Suggestion for the user.
    pub fix: String,
}

/// Error of loading a path or name.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A folder cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content is invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The scenario expects a value that is not measured.
    #[error(transparent)]
    Expect(#[from] TomlError),
    /// The file is empty.
    #[error("{}: the file is empty; record or write a session first", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
    /// The content has none of the known formats.
    #[error("{}: not a format that ctxbench reads; expected {expected}", path.display())]
    Unknown {
        /// Path of the file or folder.
        path: PathBuf,
        /// The formats that can be read.
        expected: String,
    },
    /// Archives other than zip are not read.
    #[error(
        "{}: a tar archive, which is not read; unpack it and name the folder, or pack it as .zip",
        path.display()
    )]
    Tar {
        /// Path of the file.
        path: PathBuf,
    },
    /// The session has no messages.
    #[error(
        "{}: no messages in session {id:?}; expected at least one user message or reply",
        path.display()
    )]
    NoMessages {
        /// Path of the file.
        path: PathBuf,
        id: String,
    },
    /// Neither a file nor a built-in scenario.
    #[error("no file, folder or built-in scenario is called {name:?}; {hint}")]
    NoSuchName {
        name: String,
        /// The nearest names, or all of them.
        hint: String,
    },
    /// A format that does not exist.
    #[error("no {kind} is called {name:?}; {hint}")]
    NoSuchFormat {
        /// Kind of format.
        kind: &'static str,
        name: String,
        /// The nearest names, or all of them.
        hint: String,
    },
}

impl LoadError {
    /// Returns whether the input is something other than a session, as many files of a folder are.
    pub fn is_other(&self) -> bool {
        matches!(
            self,
            LoadError::Unknown { .. } | LoadError::Tar { .. } | LoadError::NoMessages { .. }
        )
    }
}

/// Fault without its file: readers of one line or one step return it, and the caller adds the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineFault {
    /// Line, counted from 1.
    pub(crate) line: usize,
    pub(crate) what: String,
    /// Description of valid input.
    pub(crate) expected: String,
    /// Suggestion for the user.
    pub(crate) fix: String,
}

impl LineFault {
    pub(crate) fn new(
        line: usize,
        what: impl Into<String>,
        expected: impl Into<String>,
        fix: impl Into<String>,
    ) -> LineFault {
        LineFault { line, what: what.into(), expected: expected.into(), fix: fix.into() }
    }

    pub(crate) fn at(self, file: &str) -> InputError {
        InputError {
            file: file.to_string(),
            line: self.line,
            what: self.what,
            expected: self.expected,
            fix: self.fix,
        }
    }
}
