//! Differences between two checkpoints, or between a checkpoint and the current files.

use std::collections::BTreeSet;

use super::{CheckpointError, Digest, EditCheckpoints, FileState};
use crate::monitor::{Change, changed_lines};

/// A file that differs between two points in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Path below the session's folder.
    pub path: String,
    /// State at the first point.
    pub from: FileState,
    /// State at the second point.
    pub to: FileState,
    /// Lines that the second has and the first has not, and the other way round; `None` = not a
    /// text.
    pub lines: Option<Change>,
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
            let now = self.current(path)?;
            let current = now.as_ref().map_or(FileState::Absent, |c| FileState::Regular {
                sha256: Digest::sha256(&c.bytes),
                mode: c.mode,
            });
            let now = now.map(|c| c.bytes).unwrap_or_default();
            let [from, to] = [&first, &second].map(|then| then.get(path).unwrap_or(&current));
            if from == to {
                continue;
            }
            let text = |state: &FileState| match state.digest() {
                None => Ok(Ok(String::new())),
                _ if *state == current => Ok(String::from_utf8(now.clone())),
                Some(digest) => self.content(digest).map(String::from_utf8),
            };
            let lines = match (text(from)?, text(to)?) {
                (Ok(a), Ok(b)) => Some(changed_lines(&a, &b)),
                _ => None,
            };
            let (path, from, to) = (path.clone(), from.clone(), to.clone());
            out.push(Difference { path, from, to, lines });
        }
        Ok(out)
    }
}
