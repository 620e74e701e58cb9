//! Problems with memory files, for the user.

use std::path::PathBuf;

use thiserror::Error;

use super::disk::MAX_FILE_BYTES;
use super::index::{CutOff, IndexLimit};

/// A problem with a memory file, or a file that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Note {
    /// The imported file does not exist.
    #[error("{}: imports @{import}, which does not exist; correct the path or remove the \
        line", by.display())]
    Missing {
        by: PathBuf,
        /// The import as written.
        import: String,
    },
    /// The imported file imports the importing one.
    #[error("{}: imports {}, which imports it in turn; it is loaded \
        once", by.display(), path.display())]
    Cycle {
        by: PathBuf,
        /// The file that is already loaded.
        path: PathBuf,
    },
    /// The import exceeds the maximum depth.
    #[error("{}: imports {} at depth {depth}, but the maximum depth is {max}; import it \
        from a file nearer to the top", by.display(), path.display())]
    TooDeep {
        by: PathBuf,
        /// The file left out.
        path: PathBuf,
        /// Import depth of `path`.
        depth: usize,
        /// Maximum depth.
        max: usize,
    },
    /// The user has not approved an import from outside the project.
    #[error("{}: imports {} from outside the project, which was not \
        approved", by.display(), path.display())]
    NotApproved {
        by: PathBuf,
        /// The file left out.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("{}: could not read it ({reason})", path.display())]
    Unreadable {
        path: PathBuf,
        /// Error of the operating system.
        reason: String,
    },
    /// A rule has an invalid path pattern and applies to all files.
    #[error("{}: `{pattern}` is not a valid path pattern ({reason}); the rule applies to all \
        files", path.display())]
    BadPattern {
        path: PathBuf,
        /// The pattern as written.
        pattern: String,
        /// Error in the pattern.
        reason: String,
    },
    /// The index exceeds its limit.
    #[error("{}: only the first {limit} are loaded, the last {cut_off} are not; move details to \
        other files", path.display())]
    IndexCut {
        path: PathBuf,
        /// Maximum size of the index.
        limit: IndexLimit,
        /// Size of the part that is not loaded.
        cut_off: CutOff,
    },
    /// The files of a project exceed their total limit.
    #[error("{}: the last {cut_off} are not loaded, because all files of a project may have \
        {max} bytes in total; shorten them or raise {setting}", path.display())]
    BudgetCut {
        /// The file that is truncated or left out.
        path: PathBuf,
        /// Total limit in bytes.
        max: usize,
        /// Setting with the limit.
        setting: &'static str,
        /// Size of the part that is not loaded.
        cut_off: CutOff,
    },
    /// The file is not valid UTF-8.
    #[error("{}: not UTF-8; invalid bytes are replaced by \u{FFFD}", path.display())]
    NotUtf8 { path: PathBuf },
    /// The file exceeds the size limit.
    #[error("{}: has {bytes} bytes, more than the limit of {MAX_FILE_BYTES}; it is not \
        loaded", path.display())]
    TooLarge {
        path: PathBuf,
        /// Size of the file.
        bytes: u64,
    },
    /// The search for pending files reached the folder limit.
    #[error("{}: the search for memory files below the project stopped here, after {max} \
        folders", path.display())]
    TooMany {
        /// The last folder searched.
        path: PathBuf,
        /// Maximum number of folders.
        max: usize,
    },
    /// The settings file is invalid.
    #[error("{}: ignored ({reason})", path.display())]
    BadSettings {
        path: PathBuf,
        /// Parse error.
        reason: String,
    },
    /// A required file from the settings does not exist.
    #[error("{}: lists {listed}, which does not exist; correct the path or remove \
        it", by.display())]
    NotThere {
        /// The settings file that lists the path.
        by: PathBuf,
        /// The path as written.
        listed: String,
    },
    /// The settings list a URL.
    #[error("{}: lists {url}; the product fetches it at the start, ctxbench does \
        not", by.display())]
    NotFetched {
        /// The settings file that lists the URL.
        by: PathBuf,
        url: String,
    },
}
