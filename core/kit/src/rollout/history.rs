//! `history.jsonl`: what people typed, over all sessions (docs/sources/codex.md §4,
//! docs/sources/chat-history.md §3.2). No model ever sees it.
//!
//! Several programs append to one file under an advisory lock. A file past its limit loses its
//! oldest lines; it is rewritten in place, because the lock belongs to the file and not to its
//! name, so that places taken before then mean later lines: the file is the same. Only when the
//! file was replaced by another does a lookup notice.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Clock;

/// Share of the limit that a trimmed file may fill, in per cent: the rest is room before the next
/// trim (docs/sources/codex.md §4).
const SOFT_CAP_PERCENT: u64 = 80;
/// How often the lock is tried, and how long the wait in between is in ms (docs/sources/codex.md
/// §4).
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE_MS: u64 = 100;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypedPrompt {
    /// Session in which it was typed.
    pub session_id: String,
    /// Seconds since 1970.
    pub ts: u64,
    /// What was typed.
    pub text: String,
}

/// Which file it is: the inode on Unix, the time of creation elsewhere
/// (docs/sources/chat-history.md §3.2). Another id means another file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId(pub u64);

/// What a reader must know to ask for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Which file.
    pub log: LogId,
    /// How many lines it has.
    pub entries: usize,
}

/// The history cannot be written or read.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// The system refused.
    #[error("{}: could not {doing}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The system's words.
        source: std::io::Error,
    },
    /// Another program holds the lock.
    #[error("{} is locked by another program; {LOCK_TRIES} tries failed, try again \
        later", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
}

/// The file with its limit.
pub struct HistoryFile {
    path: PathBuf,
    /// Bytes from which it is trimmed; `None` = never.
    max_bytes: Option<u64>,
    clock: Clock,
    pause: Box<dyn Fn(u64) + Send>,
}

/// What stays of a history under a limit in bytes: all of it up to the limit; beyond, its newest
/// lines, as many as fit into 80 % of the limit, and the newest one whatever its size.
pub fn trimmed(text: &str, max_bytes: u64) -> &str {
    let mut kept = text;
    if kept.len() as u64 <= max_bytes {
        return kept;
    }
    let newest = text.split_inclusive('\n').next_back().map_or(0, str::len) as u64;
    let target = soft_cap(max_bytes).max(newest);
    while kept.len() as u64 > target {
        let Some(end) = kept.find('\n') else { break };
        kept = &kept[end + 1..];
    }
    kept
}

/// Bytes that a file past its limit is trimmed to: 80 % of the limit.
pub fn soft_cap(max_bytes: u64) -> u64 {
    let cap = u128::from(max_bytes) * u128::from(SOFT_CAP_PERCENT) / 100;
    cap.try_into().unwrap_or(max_bytes)
}

impl HistoryFile {
    /// A history at a path. `clock` gives ms since 1970; `pause` waits that many ms between tries
    /// for the lock.
    pub fn new(
        path: impl Into<PathBuf>,
        max_bytes: Option<u64>,
        clock: Clock,
        pause: impl Fn(u64) + Send + 'static,
    ) -> Self {
        HistoryFile { path: path.into(), max_bytes, clock, pause: Box::new(pause) }
    }

    /// Appends what was typed in a session, and trims the file where it is past its limit.
    pub fn append(&self, session: &str, text: &str) -> Result<(), HistoryError> {
        let entry = TypedPrompt {
            session_id: session.to_string(),
            ts: (self.clock)() / 1_000,
            text: text.to_string(),
        };
        let mut line = serde_json::to_string(&entry).expect("texts and a number always serialise");
        line.push('\n');
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.path).map_err(|e| self.io("open it", e))?;
        self.locked(|| file.try_lock())?;
        self.only_for_its_owner(&file)?;
        if self.ends_torn(&mut file)? {
            line.insert(0, '\n');
        }
        file.write_all(line.as_bytes()).map_err(|e| self.io("write to it", e))?;
        // The lock ends with the file.
        self.trim(&mut file)
    }

    /// Which file it is and how many lines it has; a missing file has none.
    pub fn metadata(&self) -> Result<Option<Metadata>, HistoryError> {
        let Some(mut file) = self.open()? else { return Ok(None) };
        let entries = self.text(&mut file)?.lines().count();
        Ok(Some(Metadata { log: self.id(&file)?, entries }))
    }

    /// The whole text, read under a shared lock; none where there is no file.
    pub fn read(&self) -> Result<Option<String>, HistoryError> {
        let Some(mut file) = self.open()? else { return Ok(None) };
        self.text(&mut file).map(Some)
    }

    /// The line at a place, from 0. None when the file is another than `log`, has no such line, or
    /// the line cannot be read.
    pub fn lookup(&self, log: LogId, offset: usize) -> Result<Option<TypedPrompt>, HistoryError> {
        let Some(mut file) = self.open()? else { return Ok(None) };
        if self.id(&file)? != log {
            return Ok(None);
        }
        let text = self.text(&mut file)?;
        Ok(text.lines().nth(offset).and_then(|l| serde_json::from_str(l).ok()))
    }

    fn open(&self) -> Result<Option<File>, HistoryError> {
        let file = match File::open(&self.path) {
            Ok(f) => f,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(self.io("open it", e)),
        };
        self.locked(|| file.try_lock_shared())?;
        Ok(Some(file))
    }

    fn locked(&self, lock: impl Fn() -> Result<(), TryLockError>) -> Result<(), HistoryError> {
        for attempt in 0..LOCK_TRIES {
            if attempt > 0 {
                (self.pause)(LOCK_PAUSE_MS);
            }
            match lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(self.io("lock it", e)),
            }
        }
        Err(HistoryError::Locked { path: self.path.clone() })
    }

    /// Drops the oldest lines of a file past its limit. The newest line always stays.
    fn trim(&self, file: &mut File) -> Result<(), HistoryError> {
        let Some(max) = self.max_bytes else { return Ok(()) };
        if file.metadata().map_err(|e| self.io("measure it", e))?.len() <= max {
            return Ok(());
        }
        let text = self.text(file)?;
        let kept = trimmed(&text, max);
        file.set_len(0).map_err(|e| self.io("trim it", e))?;
        file.write_all(kept.as_bytes()).map_err(|e| self.io("trim it", e))
    }

    /// Whether the last line has no line break: a write was cut off.
    fn ends_torn(&self, file: &mut File) -> Result<bool, HistoryError> {
        let mut last = [b'\n'];
        let at = file.seek(SeekFrom::End(0)).map_err(|e| self.io("read it", e))?;
        if at > 0 {
            file.seek(SeekFrom::End(-1))
                .and_then(|_| file.read_exact(&mut last))
                .map_err(|e| self.io("read it", e))?;
        }
        Ok(last != *b"\n")
    }

    fn text(&self, file: &mut File) -> Result<String, HistoryError> {
        let mut bytes = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut bytes))
            .map_err(|e| self.io("read it", e))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[cfg(unix)]
    fn only_for_its_owner(&self, file: &File) -> Result<(), HistoryError> {
        use std::os::unix::fs::PermissionsExt;
        let mut permissions =
            file.metadata().map_err(|e| self.io("read its permissions", e))?.permissions();
        if permissions.mode() & 0o777 != 0o600 {
            permissions.set_mode(0o600);
            file.set_permissions(permissions).map_err(|e| self.io("set its permissions", e))?;
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn only_for_its_owner(&self, _file: &File) -> Result<(), HistoryError> {
        Ok(())
    }

    fn id(&self, file: &File) -> Result<LogId, HistoryError> {
        let metadata = file.metadata().map_err(|e| self.io("identify it", e))?;
        #[cfg(unix)]
        let id = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let id = {
            let since =
                metadata.created().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
            since.map_or(0, |d| d.as_nanos() as u64)
        };
        Ok(LogId(id))
    }

    fn io(&self, doing: &'static str, source: std::io::Error) -> HistoryError {
        HistoryError::Io { path: self.path.clone(), doing, source }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
