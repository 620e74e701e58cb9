//! How files differ between two checkpoints, or between one and now.

use std::collections::BTreeSet;

use super::{CheckpointError, Digest, EditCheckpoints, FileState};
use crate::monitor::{Change, changed_lines};

/// A file that is not the same at two times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Below the session's folder.
    pub path: String,
    /// At the first time.
    pub from: FileState,
    /// At the second.
    pub to: FileState,
    /// Lines that the second has and the first has not, and the other way round; `None` = not a
    /// text.
    pub lines: Option<Change>,
}

impl EditCheckpoints {
    /// Files that differ between a checkpoint and another one, or now. Only those are looked at
    /// that an edit tool has changed since the earlier of the two.
    pub fn compare(&self, from: u64, to: Option<u64>) -> Result<Vec<Difference>, CheckpointError> {
        let first = self.wanted(from)?;
        let second = to.map(|n| self.wanted(n)).transpose()?.unwrap_or_default();
        let paths: BTreeSet<&String> = first.keys().chain(second.keys()).collect();
        let mut out = Vec::new();
        for path in paths {
            let now = self.present(path)?;
            let stands = now.as_ref().map_or(FileState::Absent, |c| FileState::Regular {
                sha256: Digest::sha256(&c.bytes),
                mode: c.mode,
            });
            let now = now.map(|c| c.bytes).unwrap_or_default();
            let [from, to] = [&first, &second].map(|then| then.get(path).unwrap_or(&stands));
            if from == to {
                continue;
            }
            let text = |state: &FileState| match state.digest() {
                None => Ok(Ok(String::new())),
                _ if *state == stands => Ok(String::from_utf8(now.clone())),
                Some(digest) => self.kept(digest).map(String::from_utf8),
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
