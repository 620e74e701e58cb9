//! Folders for a moment, in the system's temporary folder.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;

use ctxbench_core::files::remove_unfinished;

use crate::groups::{Folder, Ours};

/// A new folder that goes away with this. What a kill leaves goes when the next process makes one.
pub(crate) struct Temporary {
    path: PathBuf,
    _ours: Ours,
    /// Says that it is in use.
    _held: Option<File>,
}

impl Temporary {
    /// Of a name that is as long as every other.
    pub(crate) fn new() -> io::Result<Temporary> {
        static CLEARED: Once = Once::new();
        CLEARED.call_once(|| remove_unfinished(&std::env::temp_dir()));
        loop {
            let mut path = PathBuf::new();
            let ours = Ours::new(|| {
                let dir = tempfile::Builder::new().prefix(".ctxbench-").suffix(".tmp").tempdir()?;
                path = dir.keep();
                Ok::<_, io::Error>(Folder(path.clone()))
            })?;
            let held = File::open(&path).ok();
            // Between making and holding it, another process may take it for what a kill left.
            let lost = held
                .as_ref()
                .is_some_and(|folder| matches!(folder.try_lock(), Err(TryLockError::WouldBlock)));
            if !lost && path.exists() {
                return Ok(Temporary { path, _ours: ours, _held: held });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
