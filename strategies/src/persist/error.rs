//! Errors of sessions on disk.

use std::io;
use std::path::{Path, PathBuf};

use ctxbench_kit::store::StoreError;
use ctxbench_util::io_hint::{partial_write_hint, write_hint};
use thiserror::Error;

/// Error of writing or reading a session.
#[derive(Debug, Error)]
pub enum PersistError {
    #[error("{}: could not {doing}: {why}", path.display())]
    File {
        path: PathBuf,
        /// Operation that failed, as a verb phrase for the message.
        doing: &'static str,
        /// Cause and remedy.
        why: String,
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

    fn file(path: &Path, doing: &'static str, why: String) -> PersistError {
        PersistError::File { path: path.to_path_buf(), doing, why }
    }

    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> PersistError {
        move |e| PersistError::file(path, doing, format!("{e}; {}", write_hint(&e)))
    }

    /// Creates the error of a write in place, after which the file may be incomplete.
    pub(crate) fn cut(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> PersistError {
        move |e| PersistError::file(path, doing, format!("{e}; {}", partial_write_hint(&e)))
    }

    pub(crate) fn sql(
        path: &Path,
        doing: &'static str,
    ) -> impl FnOnce(rusqlite::Error) -> PersistError {
        let kept = "what was stored before is still there";
        move |e| PersistError::file(path, doing, format!("{e}; {kept}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_file_cause_and_remedy() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let text = PersistError::io(Path::new("/x/session.jsonl"), "append to it")(full());
        let text = text.to_string();
        assert!(text.starts_with("/x/session.jsonl: could not append to it: "), "{text}");
        assert!(text.ends_with("nothing was changed; free some space and try again"), "{text}");
        let cut = PersistError::cut(Path::new("/x/part.json"), "write it")(full()).to_string();
        assert!(cut.contains("may be incomplete") && !cut.contains("nothing was changed"), "{cut}");
    }
}
