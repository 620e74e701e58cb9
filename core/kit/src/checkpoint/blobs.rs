//! Content-addressed storage by SHA-256. Equal contents are stored once.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ctxbench_core::files::create_private_dir;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{CheckpointError, io};

/// SHA-256 digest as 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(String);

impl Digest {
    /// Computes the digest of `bytes`.
    pub fn sha256(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect())
    }

    /// Returns the hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if it has 64 hexadecimal digits. A deserialized digest can be any string.
    fn is_valid(&self) -> bool {
        self.0.len() == 64
            && self.0.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    }
}

/// Durability of stored files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Synced to disk before a call returns.
    Synced,
    /// Written by the system at any later time, for temporary copies.
    Scratch,
}

/// Writes a temporary file and renames it to `path`, so that readers never see a partial file.
///
/// Syncs the file before the rename, so that a power failure cannot leave an empty file, and the
/// folder after it, because a restore overwrites files only once they are saved.
pub(super) fn write_atomic(
    path: &Path,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), CheckpointError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let temp = path.with_extension(format!(
        "tmp-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    ));
    let written = File::create(&temp).and_then(|mut f| {
        f.write_all(bytes)?;
        if durability == Durability::Synced { f.sync_all() } else { Ok(()) }
    });
    let result = written.and_then(|()| fs::rename(&temp, path));
    if result.is_err() {
        let _ = fs::remove_file(&temp);
    }
    result.map_err(io(path, "write it"))?;
    path.parent().map_or(Ok(()), |folder| sync_folder(folder, durability))
}

/// Returns true if a path is a temporary file of [`write_atomic`]. Only a killed writer leaves one.
fn is_unfinished(path: &Path) -> bool {
    let numbers = path.extension().and_then(|e| e.to_str()).and_then(|e| e.strip_prefix("tmp-"));
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    numbers.and_then(|n| n.split_once('-')).is_some_and(|(a, b)| is_number(a) && is_number(b))
}

/// Removes temporary files of killed writers. The caller must be the only writer in the folder.
/// Ignores files that cannot be removed.
pub(super) fn clear_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_unfinished(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Syncs a folder's entries to disk, on systems that support it.
pub(super) fn sync_folder(folder: &Path, durability: Durability) -> Result<(), CheckpointError> {
    match durability {
        Durability::Synced if cfg!(unix) => {
            File::open(folder).and_then(|f| f.sync_all()).map_err(io(folder, "wait for the disk"))
        }
        _ => Ok(()),
    }
}

/// A folder of contents in files named by their SHA-256.
#[derive(Debug)]
pub struct Blobs {
    dir: PathBuf,
    durability: Durability,
}

impl Blobs {
    /// Opens or creates the folder.
    pub fn open(dir: &Path, durability: Durability) -> Result<Blobs, CheckpointError> {
        create_private_dir(dir).map_err(io(dir, "make the folder"))?;
        Ok(Blobs { dir: dir.to_path_buf(), durability })
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.dir.join(&digest.0[..2]).join(&digest.0[2..])
    }

    /// Stores a content, unless it exists already. Rewrites a damaged file.
    pub fn insert(&self, bytes: &[u8]) -> Result<Digest, CheckpointError> {
        let digest = Digest::sha256(bytes);
        let path = self.path(&digest);
        if !fs::read(&path).is_ok_and(|stored| stored == bytes) {
            let folder =
                path.parent().expect("a blob is in a folder named by its first two digits");
            if !folder.is_dir() {
                fs::create_dir_all(folder).map_err(io(folder, "make the folder"))?;
                sync_folder(&self.dir, self.durability)?;
            }
            write_atomic(&path, bytes, self.durability)?;
        }
        Ok(digest)
    }

    /// Returns a stored content after checking its digest.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, CheckpointError> {
        if !digest.is_valid() {
            return Err(CheckpointError::Damaged {
                path: self.dir.clone(),
                reason: format!("{:?} is not a SHA-256", digest.0),
            });
        }
        let path = self.path(digest);
        let bytes = fs::read(&path).map_err(io(&path, "read it"))?;
        if Digest::sha256(&bytes) != *digest {
            return Err(CheckpointError::Damaged {
                path,
                reason: "the content does not match the SHA-256 in its name".into(),
            });
        }
        Ok(bytes)
    }

    /// Returns all digests with their sizes in bytes, sorted.
    pub fn list(&self) -> Result<Vec<(Digest, u64)>, CheckpointError> {
        let mut out = Vec::new();
        for folder in list_dir(&self.dir)? {
            for file in list_dir(&folder)? {
                let (Some(head), Some(tail)) = (folder.file_name(), file.file_name()) else {
                    continue;
                };
                let digest =
                    Digest(format!("{}{}", head.to_string_lossy(), tail.to_string_lossy()));
                // Skip temporary files of killed writers.
                if digest.is_valid() {
                    out.push((digest, fs::metadata(&file).map_err(io(&file, "look at it"))?.len()));
                }
            }
        }
        out.sort();
        Ok(out)
    }

    /// Calls [`clear_unfinished`] in every folder.
    pub(super) fn clear_unfinished(&self) -> Result<(), CheckpointError> {
        list_dir(&self.dir)?.iter().for_each(|folder| clear_unfinished(folder));
        Ok(())
    }

    /// Removes all contents that are not in `live` and returns the number of bytes freed.
    pub fn sweep(&self, live: &BTreeSet<Digest>) -> Result<u64, CheckpointError> {
        let mut freed = 0;
        for (digest, bytes) in self.list()?.into_iter().filter(|(d, _)| !live.contains(d)) {
            let path = self.path(&digest);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(io(&path, "remove it")(e)),
                _ => freed += bytes,
            }
        }
        Ok(freed)
    }
}

/// Returns the paths in a folder.
pub(super) fn list_dir(dir: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let list = fs::read_dir(dir).map_err(io(dir, "list it"))?;
    list.map(|e| e.map(|e| e.path()).map_err(io(dir, "list it"))).collect()
}
