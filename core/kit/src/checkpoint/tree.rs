//! Current files of a folder, and the success of a restore.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ctxbench_util::hash::sha256;
use serde::{Deserialize, Serialize};
use walkdir::WalkDir;

use super::{CheckpointError, FileContent, Root, failed};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum FileState {
    /// The file does not exist.
    Absent,
    Regular {
        /// Digest of the content as 64 hexadecimal digits.
        sha256: String,
        /// Permission bits, 0 to 0o777.
        mode: u32,
    },
}

/// All regular files of a folder by path, without `.git` and links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree(pub BTreeMap<String, FileState>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreSuccess {
    /// Files that differed from their state at the prompt before the restore, or that the restore
    /// changed, tracked or not.
    pub changed: Vec<String>,
    /// Changed files that still differ from that state afterwards.
    pub missed: Vec<String>,
}

impl RestoreSuccess {
    /// Returns the percentage of changed files that equal their state at the prompt, or `None` if no
    /// file changed.
    pub fn pct(&self) -> Option<f64> {
        let n = self.changed.len();
        (n > 0).then(|| 100.0 * (n - self.missed.len()) as f64 / n as f64)
    }
}

impl Tree {
    pub fn read(dir: &Path) -> Result<Tree, CheckpointError> {
        let root = Root::open(dir)?;
        let mut out = BTreeMap::new();
        let walk = WalkDir::new(root.dir()).into_iter();
        for entry in walk.filter_entry(|e| e.file_name() != ".git") {
            let entry = entry.map_err(|e| failed(dir.display(), "list it")(e.into()))?;
            if let Some(path) = entry.path().to_str().filter(|_| entry.file_type().is_file()) {
                let path = root.relative(path)?;
                if let Some(FileContent { bytes, mode }) = root.read(&path)? {
                    out.insert(path, FileState::Regular { sha256: sha256(&bytes), mode });
                }
            }
        }
        Ok(Tree(out))
    }

    /// Returns the paths at which two trees differ.
    pub fn differing(&self, other: &Tree) -> BTreeSet<String> {
        self.0
            .keys()
            .chain(other.0.keys())
            .filter(|p| self.0.get(*p) != other.0.get(*p))
            .cloned()
            .collect()
    }

    /// Compares the trees at the prompt, before the restore and after it. Untouched files do not
    /// count, so that a large project does not hide missed files.
    pub fn success(at_prompt: &Tree, before: &Tree, after: &Tree) -> RestoreSuccess {
        let changed: BTreeSet<String> = &at_prompt.differing(before) | &before.differing(after);
        let missed =
            at_prompt.differing(after).into_iter().filter(|p| changed.contains(p)).collect();
        RestoreSuccess { changed: changed.into_iter().collect(), missed }
    }
}
