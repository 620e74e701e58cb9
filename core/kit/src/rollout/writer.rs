//! Rollout writer. Each line is one write, so a crash truncates at most the last line.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::line::{Payload, RolloutLine, SessionMeta};
use super::reader::Rollout;
use ctxbench_util::calendar::iso;
use ctxbench_util::io_hint;

/// Error from reading or writing a rollout.
#[derive(Debug, Error)]
pub enum RolloutError {
    /// I/O error.
    #[error("{}: could not {action}: {source}; {}", path.display(), io_hint::write_hint(source))]
    Io {
        path: PathBuf,
        /// The action that failed, for the error message.
        action: &'static str,
        source: std::io::Error,
    },
    /// The file has no rollout lines.
    #[error("{} is not a rollout: {reason}; expected lines of {{timestamp, type, \
        payload}}", path.display())]
    NotARollout {
        path: PathBuf,
        /// Parse error of the first line.
        reason: String,
    },
}

impl RolloutError {
    pub(super) fn io(path: &Path, action: &'static str, source: std::io::Error) -> Self {
        RolloutError::Io { path: path.to_path_buf(), action, source }
    }
}

/// Returns the path of a session's rollout below Codex's folder:
/// `sessions/YYYY/MM/DD/rollout-YYYY-MM-DDTHH-MM-SS-ID.jsonl` in UTC (docs/sources/codex.md §4).
pub fn rollout_path(start_ms: u64, session: &str) -> PathBuf {
    let start = iso(start_ms);
    let (day, second) = (start[..10].replace('-', "/"), start[..19].replace(':', "-"));
    PathBuf::from(format!("sessions/{day}/rollout-{second}-{session}.jsonl"))
}

/// Appends lines to a rollout.
pub struct Writer {
    file: File,
    path: PathBuf,
    /// Number of the next line, in versions that number lines.
    next: Option<u64>,
    /// Whether the last line has no newline, because of a crash or a failed write. If so, the next
    /// write begins with a newline.
    torn: bool,
}

/// Returns true if this version numbers lines (0.169 and later; docs/sources/codex.md §4).
fn numbers_lines(version: &str) -> bool {
    let mut parts = version.split('.').map(|p| p.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (0, 169)
}

impl Writer {
    /// Creates the rollout of a new session below Codex's folder and writes its metadata.
    /// Times are in ms since 1970.
    pub fn create(home: &Path, meta: SessionMeta, now_ms: u64) -> Result<Writer, RolloutError> {
        let path = home.join(rollout_path(now_ms, &meta.id));
        let failed = |action, e| RolloutError::io(&path, action, e);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| failed("make its folder", e))?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(|e| failed("create it", e))?;
        let next = numbers_lines(&meta.cli_version).then_some(0);
        let mut out = Writer { file, path, next, torn: false };
        out.append(Payload::SessionMeta(meta), now_ms)?;
        Ok(out)
    }

    /// Reopens a rollout and returns its contents. Adds a missing newline before the next line.
    pub fn reopen(path: &Path) -> Result<(Writer, Rollout), RolloutError> {
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
        Ok((Writer { file, path: path.to_path_buf(), next, torn }, rollout))
    }

    /// Appends a line.
    pub fn append(&mut self, payload: Payload, now_ms: u64) -> Result<(), RolloutError> {
        let line = RolloutLine { timestamp: iso(now_ms), ordinal: self.next, payload };
        let mut text =
            serde_json::to_string(&line).expect("a line contains only JSON values and strings");
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

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
