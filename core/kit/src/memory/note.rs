//! What a person should know about their memory files.

use std::path::PathBuf;

use thiserror::Error;

use super::disk::FILE_BYTES;
use super::index::{IndexLimit, Lost};

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
    #[error("{}: only its first {limit} are shown; {lost} at its end are not: move detail into \
        files beside it", path.display())]
    IndexCut {
        /// The index.
        path: PathBuf,
        /// What is shown at most.
        limit: IndexLimit,
        /// What is not shown.
        lost: Lost,
    },
    /// The files of a project have more bytes than they may have together.
    #[error("{}: the files of a project may have {most} bytes together; {lost} of this one are \
        not shown: shorten them, or raise {setting}", path.display())]
    BudgetCut {
        /// The file that is cut or left out.
        path: PathBuf,
        /// Bytes of all.
        most: usize,
        /// Setting that says so.
        setting: &'static str,
        /// What is not shown.
        lost: Lost,
    },
    /// Not all bytes are text.
    #[error("{}: is not UTF-8; what cannot be read of it is replaced by \u{FFFD}", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// More than a memory file can be.
    #[error("{}: has {bytes} bytes, and a memory file is read up to {FILE_BYTES}; it is left \
        out", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// The search for files that wait ended early.
    #[error("{}: the search for memory files below the project ended here, after {most} \
        folders", path.display())]
    TooMany {
        /// Where it ended.
        path: PathBuf,
        /// Folders searched.
        most: usize,
    },
    /// Settings that say nothing.
    #[error("{}: is left out ({why})", path.display())]
    BadSettings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A file that the settings list is not there.
    #[error("{}: lists {listed}, and there is no such file; correct the path or remove \
        it", by.display())]
    NotThere {
        /// The settings.
        by: PathBuf,
        /// As it is written there.
        listed: String,
    },
    /// An address is not followed here.
    #[error("{}: lists {url}, which the product fetches at the start and is not fetched \
        here", by.display())]
    NotFetched {
        /// The settings.
        by: PathBuf,
        /// The address.
        url: String,
    },
}
