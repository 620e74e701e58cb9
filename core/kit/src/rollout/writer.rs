//! Writing a rollout: each line with one write, so that a crash leaves at most one torn line, at
//! the end.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::Clock;
use super::line::{Payload, RolloutLine, SessionMeta};
use super::path::rollout_path;
use super::reader::Rollout;
use ctxbench_core::calendar::iso;
use ctxbench_core::io_hint;

/// A rollout that cannot be used as asked.
#[derive(Debug, Error)]
pub enum RolloutError {
    /// The system refused.
    #[error("{}: could not {doing}: {source}; {}", path.display(), io_hint::write_hint(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
    /// Not one line of it is of a rollout.
    #[error("{} is no rollout: {why}; expected lines of {{timestamp, type, \
        payload}}", path.display())]
    NotARollout {
        /// The file.
        path: PathBuf,
        /// What was found.
        why: String,
    },
}

impl RolloutError {
    pub(super) fn io(path: &Path, doing: &'static str, source: std::io::Error) -> Self {
        RolloutError::Io { path: path.to_path_buf(), doing, source }
    }
}

/// An open rollout.
pub struct Writer {
    file: File,
    path: PathBuf,
    clock: Clock,
    /// Number of the next line, in versions that number them.
    next: Option<u64>,
    /// The last line has no end, after a crash or a write that failed half way: the next one begins
    /// with it.
    torn: bool,
}

/// 0.169 numbers the lines (docs/sources/codex.md §4).
fn numbers_lines(version: &str) -> bool {
    let mut parts = version.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (0, 169)
}

impl Writer {
    /// Begins a session below the program's folder; the first line is its description.
    pub fn create(home: &Path, meta: SessionMeta, clock: Clock) -> Result<Writer, RolloutError> {
        let path = home.join(rollout_path(clock(), &meta.id));
        let failed = |doing, e| RolloutError::io(&path, doing, e);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| failed("make its folder", e))?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| failed("create it", e))?;
        let next = numbers_lines(&meta.cli_version).then_some(0);
        let mut out = Writer { file, path, clock, next, torn: false };
        out.append(Payload::SessionMeta(meta))?;
        Ok(out)
    }

    /// Opens a session again, and returns what stands in it. A last line without a line break, torn
    /// or whole, gets one before what follows.
    pub fn reopen(path: &Path, clock: Clock) -> Result<(Writer, Rollout), RolloutError> {
        let rollout = Rollout::read(path)?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(path)
            .map_err(|e| RolloutError::io(path, "open it", e))?;
        let mut last = [b'\n'];
        if file.seek(SeekFrom::End(0)).map_err(|e| RolloutError::io(path, "read it", e))? > 0 {
            let read = file.seek(SeekFrom::End(-1)).and_then(|_| file.read_exact(&mut last));
            read.map_err(|e| RolloutError::io(path, "read it", e))?;
        }
        let torn = last != *b"\n";
        let next = rollout.lines.iter().rev().find_map(|l| l.ordinal).map(|n| n + 1);
        Ok((Writer { file, path: path.to_path_buf(), clock, next, torn }, rollout))
    }

    /// Appends one line with the time of the clock.
    pub fn append(&mut self, payload: Payload) -> Result<(), RolloutError> {
        let line = RolloutLine { timestamp: iso((self.clock)()), ordinal: self.next, payload };
        let mut text =
            serde_json::to_string(&line).expect("a line holds nothing but JSON values and texts");
        text.push('\n');
        if std::mem::replace(&mut self.torn, true) {
            text.insert(0, '\n');
        }
        self.file
            .write_all(text.as_bytes())
            .map_err(|e| RolloutError::io(&self.path, "write to it", e))?;
        self.torn = false;
        self.next = self.next.map(|n| n + 1);
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
