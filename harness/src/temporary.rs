//! Folders for a moment, in the system's temporary folder.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Once;

use ctxbench_core::files::remove_unfinished;
use tempfile::TempDir;

/// A new folder that goes away with this. What a kill leaves goes when the next process makes one.
pub(crate) struct Temporary {
    dir: TempDir,
    /// Says that it is in use.
    _held: Option<File>,
}

impl Temporary {
    /// Of a name that is as long as every other.
    pub(crate) fn new() -> io::Result<Temporary> {
        static CLEARED: Once = Once::new();
        CLEARED.call_once(|| remove_unfinished(&std::env::temp_dir()));
        loop {
            let dir = tempfile::Builder::new().prefix(".ctxbench-").suffix(".tmp").tempdir()?;
            let held = File::open(dir.path()).ok();
            // Between making and holding it, another process may take it for what a kill left.
            let lost = held
                .as_ref()
                .is_some_and(|folder| matches!(folder.try_lock(), Err(TryLockError::WouldBlock)));
            if !lost && dir.path().exists() {
                return Ok(Temporary { dir, _held: held });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}
