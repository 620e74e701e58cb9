//! What a person should know about their memory files.

use std::path::PathBuf;

use thiserror::Error;

use super::index::{INDEX_BYTES, INDEX_LINES, Lost};

/// Something was left out, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Note {
    /// An import leads nowhere.
    #[error("{}: imports @{import}, and there is no such file; correct the path or remove the \
        line", by.display())]
    Missing {
        /// The importing file.
        by: PathBuf,
        /// As it is written there.
        import: String,
    },
    /// An import leads back to a file that is being read.
    #[error("{}: imports {}, which imports it in turn; it is shown \
        once", by.display(), path.display())]
    Cycle {
        /// The importing file.
        by: PathBuf,
        /// The file that is there already.
        path: PathBuf,
    },
    /// Imports of imports end somewhere.
    #[error("{}: imports {} at depth {depth}, and files are followed to depth {most}; import it \
        from a file nearer to the top", by.display(), path.display())]
    TooDeep {
        /// The importing file.
        by: PathBuf,
        /// The file left out.
        path: PathBuf,
        /// Its depth.
        depth: usize,
        /// The greatest one allowed.
        most: usize,
    },
    /// A file from outside of the project that nobody has agreed to.
    #[error("{}: imports {} from outside of the project, which was not \
        approved", by.display(), path.display())]
    NotApproved {
        /// The importing file.
        by: PathBuf,
        /// The file left out.
        path: PathBuf,
    },
    /// The system refused, or it is no text.
    #[error("{}: could not be read ({why})", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
    /// A pattern of a rule cannot be understood; the rule is shown always.
    #[error("{}: `{pattern}` is no pattern for paths ({why}); the rule holds for all \
        files", path.display())]
    BadPattern {
        /// The rule.
        path: PathBuf,
        /// As it is written there.
        pattern: String,
        /// What is wrong.
        why: String,
    },
    /// The index was too long.
    #[error("{}: only its first {INDEX_LINES} lines and {INDEX_BYTES} bytes are shown; {} lines \
        ({} bytes) at its end are not: move detail into files beside \
        it", path.display(), lost.lines, lost.bytes)]
    IndexCut {
        /// The index.
        path: PathBuf,
        /// What is not shown.
        lost: Lost,
    },
}
