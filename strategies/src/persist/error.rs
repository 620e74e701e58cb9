//! Errors of sessions on disk.

use std::io;
use std::path::{Path, PathBuf};

use ctxbench_kit::store::StoreError;
use ctxbench_util::io_hint;
use thiserror::Error;

/// Error of writing or reading a session.
#[derive(Debug, Error)]
pub enum PersistError {
    /// An operation on a file failed.
    #[error("{}: could not {doing}: {source}; {}", path.display(), io_hint::write_hint(source))]
    Io {
        path: PathBuf,
        /// Operation that failed, as a verb phrase for the message.
        doing: &'static str,
        source: io::Error,
    },
    /// Writing a file in place failed, so the file may be incomplete.
    #[error("{}: could not {doing}: {source}; {}", path.display(), io_hint::partial_write_hint(source))]
    Cut {
        path: PathBuf,
        /// Operation that failed, as a verb phrase for the message.
        doing: &'static str,
        source: io::Error,
    },
    /// An operation of SQLite failed.
    #[error("{}: could not {doing}: {source}; what was stored before is still \
        there", path.display())]
    Sql {
        path: PathBuf,
        /// Operation that failed, as a verb phrase for the message.
        doing: &'static str,
        source: rusqlite::Error,
    },
    /// Error of the ctxbench store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PersistError {
    /// Creates the error of a temporary folder that cannot be created for testing a format.
    pub fn scratch(source: io::Error) -> PersistError {
        PersistError::io(&std::env::temp_dir(), "make a folder there")(source)
    }

    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> PersistError {
        move |source| PersistError::Io { path: path.to_path_buf(), doing, source }
    }

    pub(crate) fn cut(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> PersistError {
        move |source| PersistError::Cut { path: path.to_path_buf(), doing, source }
    }

    pub(crate) fn sql(
        path: &Path,
        doing: &'static str,
    ) -> impl FnOnce(rusqlite::Error) -> PersistError {
        move |source| PersistError::Sql { path: path.to_path_buf(), doing, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn errors_name_file_cause_and_remedy() {
        let of = |kind| {
            PersistError::io(Path::new("/x/session.jsonl"), "append to it")(io::Error::from(kind))
                .to_string()
        };
        let full = of(ErrorKind::StorageFull);
        assert!(
            full.starts_with("/x/session.jsonl: could not append to it: ")
                && full.ends_with("free some space and try again"),
            "{full}"
        );
        let cut = PersistError::cut(Path::new("/x/part.json"), "write it")(io::Error::from(
            ErrorKind::StorageFull,
        ))
        .to_string();
        assert!(
            cut.contains("may be incomplete")
                && !cut.contains("stored before")
                && cut.ends_with("free some space and try again"),
            "{cut}"
        );
        assert!(
            of(ErrorKind::ReadOnlyFilesystem).contains("you have no permission to write there")
        );
    }
}
