//! What can be wrong with an input, in words for the person who wrote it.

use std::path::PathBuf;

use ctxbench_core::files::FileError;
use ctxbench_core::session::Session;
use ctxbench_core::toml_file::TomlError;

/// A session and what its reader had to say about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The session.
    pub session: Session,
    /// Things that were repaired or left out, one sentence each, with file and line.
    pub warnings: Vec<String>,
}

/// A place in an input that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}; expected {expected}; {fix}")]
pub struct InputError {
    /// File as the user named it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What should stand there.
    pub expected: String,
    /// What to do about it.
    pub fix: String,
}

/// A recording that cannot be imported.
pub type ImportError = InputError;

/// Why a path or a name gave no scenario.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// Why, as the operating system says.
        source: std::io::Error,
    },
    /// A folder cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// It expects something that is not measured.
    #[error(transparent)]
    Expect(#[from] TomlError),
    /// There is no content.
    #[error("{}: the file is empty; record or write a session first", path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The content is none of the known formats.
    #[error("{}: not a known format; expected {expected}", path.display())]
    Unknown {
        /// Which file or folder.
        path: PathBuf,
        /// The formats that can be read.
        expected: String,
    },
    /// Archives of other kinds than zip are not read.
    #[error(
        "{}: a tar archive, which is not read; unpack it and name the folder, or pack it as .zip",
        path.display()
    )]
    Tar {
        /// Which file.
        path: PathBuf,
    },
    /// Nobody says anything in it.
    #[error(
        "{}: no messages in session {id:?}; expected at least one user message or reply",
        path.display()
    )]
    NoMessages {
        /// Which file.
        path: PathBuf,
        /// The session's id.
        id: String,
    },
    /// Neither a file nor a built-in scenario.
    #[error("no file, folder or built-in scenario is called {name:?}; {hint}")]
    NoSuchName {
        /// What was asked for.
        name: String,
        /// The nearest names, or all of them.
        hint: String,
    },
    /// A format to write that does not exist.
    #[error("no format to write is called {name:?}; {hint}")]
    NoSuchExport {
        /// What was asked for.
        name: String,
        /// The nearest names, or all of them.
        hint: String,
    },
    /// A recording format that does not exist.
    #[error("no recording format is called {name:?}; {hint}")]
    NoSuchFormat {
        /// What was asked for.
        name: String,
        /// The nearest names, or all of them.
        hint: String,
    },
}

impl LoadError {
    /// Something else than a session, of which a folder may hold many.
    pub fn is_other(&self) -> bool {
        matches!(
            self,
            LoadError::Unknown { .. } | LoadError::Tar { .. } | LoadError::NoMessages { .. }
        )
    }
}

/// A fault whose file is not known yet: readers of one line or one step raise it, their caller adds
/// the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Line, counted from 1.
    pub(crate) line: usize,
    /// What is wrong.
    pub(crate) what: String,
    /// What should stand there.
    pub(crate) expected: String,
    /// What to do about it.
    pub(crate) fix: String,
}

impl Fault {
    pub(crate) fn new(
        line: usize,
        what: impl Into<String>,
        expected: impl Into<String>,
        fix: impl Into<String>,
    ) -> Fault {
        Fault { line, what: what.into(), expected: expected.into(), fix: fix.into() }
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
