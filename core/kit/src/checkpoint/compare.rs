//! Differences between two checkpoints, or between a checkpoint and the current files.

use std::collections::BTreeSet;

use super::{CheckpointError, Digest, EditCheckpoints, FileState};

/// A file that differs between two points in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path below the session's folder.
    pub path: String,
    /// State at the first point.
    pub from: FileState,
    /// State at the second point.
    pub to: FileState,
}

impl EditCheckpoints {
    /// Returns files that differ between checkpoint `from` and `to`, or the current files if `to` is
    /// `None`. Covers files that an edit tool changed since the earlier checkpoint.
    pub fn compare(&self, from: u64, to: Option<u64>) -> Result<Vec<Difference>, CheckpointError> {
        let first = self.states_at(from)?;
        let second = to.map(|n| self.states_at(n)).transpose()?.unwrap_or_default();
        let paths: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
        let mut out = Vec::new();
        for path in paths {
            let current = self.current(path)?.map_or(FileState::Absent, |c| FileState::Regular {
                sha256: Digest::sha256(&c.bytes),
                mode: c.mode,
            });
            let [from, to] = [&first, &second].map(|s| s.get(path).unwrap_or(&current).clone());
            if from != to {
                out.push(Difference { path: path.clone(), from, to });
            }
        }
        Ok(out)
    }
}
