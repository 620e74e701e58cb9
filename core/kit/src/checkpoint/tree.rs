//! The files of a folder as they are, and how much of a restoration succeeded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::blobs::entries;
use super::{CheckpointError, Digest, Root, io};

/// What stood at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum FileState {
    /// Nothing.
    Absent,
    /// A regular file.
    Regular {
        /// Its content.
        sha256: Digest,
        /// Its permission bits, 0 to 0o777.
        mode: u32,
    },
}

/// Every regular file of a folder by its path, `.git` and links left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<String, FileState>);

/// How much of a restoration succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Success {
    /// Files that differed from their state at the prompt before the restoration, or that it
    /// changed, tracked or not.
    pub changed: Vec<String>,
    /// Of these, the ones that do not equal that state afterwards.
    pub missed: Vec<String>,
}

impl Success {
    /// Share of the changed files that equal their state at the prompt, per cent; `None` = nothing
    /// had changed.
    pub fn pct(&self) -> Option<f64> {
        let n = self.changed.len();
        (n > 0).then(|| 100.0 * (n - self.missed.len()) as f64 / n as f64)
    }
}

impl Tree {
    /// Looks at a folder.
    pub fn read(dir: &Path) -> Result<Tree, CheckpointError> {
        let root = Root::open(dir)?;
        let mut out = BTreeMap::new();
        let mut folders = vec![root.dir().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for path in entries(&folder)? {
                let kind =
                    fs::symlink_metadata(&path).map_err(io(&path, "look at it"))?.file_type();
                let Some(text) = path.to_str() else { continue };
                if kind.is_dir() && path.file_name().is_some_and(|n| n != ".git") {
                    folders.push(path);
                } else if kind.is_file() {
                    let safe = root.resolve(text)?;
                    if let Some(c) = root.read(&safe)? {
                        out.insert(
                            safe.as_str().to_string(),
                            FileState::Regular { sha256: Digest::sha256(&c.bytes), mode: c.mode },
                        );
                    }
                }
            }
        }
        Ok(Tree(out))
    }

    /// Paths at which two trees differ.
    pub fn differing(&self, other: &Tree) -> BTreeSet<String> {
        self.0
            .keys()
            .chain(other.0.keys())
            .filter(|p| self.0.get(*p) != other.0.get(*p))
            .cloned()
            .collect()
    }

    /// Judges a restoration by the trees at the prompt, before it and after it. Files that nobody
    /// touched do not count, so that a large project does not hide what was missed.
    pub fn success(at_prompt: &Tree, before: &Tree, after: &Tree) -> Success {
        let changed: BTreeSet<String> = &at_prompt.differing(before) | &before.differing(after);
        let missed =
            at_prompt.differing(after).into_iter().filter(|p| changed.contains(p)).collect();
        Success { changed: changed.into_iter().collect(), missed }
    }
}
