//! Contents by their SHA-256: what was kept once is not kept again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ctxbench_core::files::create_private_dir;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{CheckpointError, io};

/// SHA-256 of a content, 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(String);

impl Digest {
    /// Of these bytes.
    pub fn sha256(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect())
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it reads like one: a list from disk could say anything.
    fn is_valid(&self) -> bool {
        self.0.len() == 64
            && self.0.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    }
}

/// Whether what was kept must survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk when a call returns.
    Synced,
    /// The system writes it when it likes: for copies that nobody needs after a power cut.
    Scratch,
}

/// Writes a file beside its place and renames it into it, so that no reader finds half of one.
/// Synced before the rename, or a power cut could leave the name with nothing behind it; and the
/// folder after it, because files are overwritten on the word of this one.
pub(super) fn put_file(
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
    let filled = File::create(&temp).and_then(|mut f| {
        f.write_all(bytes)?;
        if durability == Durability::Synced { f.sync_all() } else { Ok(()) }
    });
    let done = filled.and_then(|()| fs::rename(&temp, path));
    if done.is_err() {
        let _ = fs::remove_file(&temp);
    }
    done.map_err(io(path, "write it"))?;
    path.parent().map_or(Ok(()), |folder| sync_folder(folder, durability))
}

/// Whether a name is one that [`put_file`] writes under. Only a killed writer leaves it.
fn is_unfinished(path: &Path) -> bool {
    let numbers = path.extension().and_then(|e| e.to_str()).and_then(|e| e.strip_prefix("tmp-"));
    let is_number = |n: &str| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit());
    numbers.and_then(|n| n.split_once('-')).is_some_and(|(a, b)| is_number(a) && is_number(b))
}

/// Removes what killed writers left in a folder; only for whoever is its only writer. What cannot
/// be removed is in nobody's way.
pub(super) fn clear_unfinished(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_unfinished(&entry.path()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Makes the names in a folder last, where a program can see to that.
pub(super) fn sync_folder(folder: &Path, durability: Durability) -> Result<(), CheckpointError> {
    match durability {
        Durability::Synced if cfg!(unix) => {
            File::open(folder).and_then(|f| f.sync_all()).map_err(io(folder, "wait for the disk"))
        }
        _ => Ok(()),
    }
}

/// A folder of contents, each in a file named by its SHA-256.
#[derive(Debug)]
pub struct Blobs {
    dir: PathBuf,
    durability: Durability,
}

impl Blobs {
    /// Opens or makes the folder.
    pub fn open(dir: &Path, durability: Durability) -> Result<Blobs, CheckpointError> {
        create_private_dir(dir).map_err(io(dir, "make the folder"))?;
        Ok(Blobs { dir: dir.to_path_buf(), durability })
    }

    fn place(&self, digest: &Digest) -> PathBuf {
        self.dir.join(&digest.0[..2]).join(&digest.0[2..])
    }

    /// Keeps a content, unless it is kept already. A file of its name that says something else, as
    /// a power cut or a bad disk leaves it, is written anew.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, CheckpointError> {
        let digest = Digest::sha256(bytes);
        let place = self.place(&digest);
        if !fs::read(&place).is_ok_and(|kept| kept == bytes) {
            let folder = place.parent().expect("a place lies in a folder of its first two digits");
            if !folder.is_dir() {
                fs::create_dir_all(folder).map_err(io(folder, "make the folder"))?;
                sync_folder(&self.dir, self.durability)?;
            }
            put_file(&place, bytes, self.durability)?;
        }
        Ok(digest)
    }

    /// A kept content; one that does not have its digest any more is an error, never handed out.
    pub fn get(&self, digest: &Digest) -> Result<Vec<u8>, CheckpointError> {
        if !digest.is_valid() {
            return Err(CheckpointError::Damaged {
                path: self.dir.clone(),
                what: format!("{:?} is not a SHA-256", digest.0),
            });
        }
        let path = self.place(digest);
        let bytes = fs::read(&path).map_err(io(&path, "read it"))?;
        if Digest::sha256(&bytes) != *digest {
            return Err(CheckpointError::Damaged {
                path,
                what: "its content does not have the SHA-256 of its name".into(),
            });
        }
        Ok(bytes)
    }

    /// Every kept content with its size in bytes, sorted.
    pub fn list(&self) -> Result<Vec<(Digest, u64)>, CheckpointError> {
        let mut out = Vec::new();
        for folder in entries(&self.dir)? {
            for file in entries(&folder)? {
                let (Some(head), Some(tail)) = (folder.file_name(), file.file_name()) else {
                    continue;
                };
                let digest =
                    Digest(format!("{}{}", head.to_string_lossy(), tail.to_string_lossy()));
                // A writer that was killed leaves a file that is no content.
                if digest.is_valid() {
                    out.push((digest, fs::metadata(&file).map_err(io(&file, "look at it"))?.len()));
                }
            }
        }
        out.sort();
        Ok(out)
    }

    /// [`clear_unfinished`] in every folder of contents.
    pub(super) fn clear_unfinished(&self) -> Result<(), CheckpointError> {
        entries(&self.dir)?.iter().for_each(|folder| clear_unfinished(folder));
        Ok(())
    }

    /// Removes every content that is not in `live`; returns the bytes that this frees.
    pub fn sweep(&self, live: &BTreeSet<Digest>) -> Result<u64, CheckpointError> {
        let mut freed = 0;
        for (digest, bytes) in self.list()?.into_iter().filter(|(d, _)| !live.contains(d)) {
            let path = self.place(&digest);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(io(&path, "remove it")(e)),
                _ => freed += bytes,
            }
        }
        Ok(freed)
    }
}

/// Paths in a folder.
pub(super) fn entries(dir: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
    let list = fs::read_dir(dir).map_err(io(dir, "list it"))?;
    list.map(|e| e.map(|e| e.path()).map_err(io(dir, "list it"))).collect()
}
