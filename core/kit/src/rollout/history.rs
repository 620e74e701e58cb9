//! `history.jsonl`: what people typed, over all sessions (docs/sources/codex.md §4,
//! docs/sources/chat-history.md §3.2). No model ever sees it.
//!
//! Several programs append to one file under an advisory lock. A file past its limit loses its
//! oldest lines: what stays is written beside it and takes its place, with the new line, so that
//! whoever is killed on the way leaves the one or the other. The lock belongs to the file and not
//! to its name; whoever waited for it looks whether the name still means this file, and opens it
//! again if not. Places taken before mean another file from then on, which a lookup notices.

use std::fs::{File, Metadata as FileMetadata, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ctxbench_core::files::{self, FileError};
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
    /// A trimmed history did not take the place of the former one.
    #[error(transparent)]
    Replace(#[from] FileError),
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
    &text[first_kept(text.as_bytes(), max_bytes)..]
}

/// Where [`trimmed`] begins: behind a line break.
fn first_kept(text: &[u8], max_bytes: u64) -> usize {
    if text.len() as u64 <= max_bytes {
        return 0;
    }
    let lines = || text.split_inclusive(|b| *b == b'\n').map(<[u8]>::len);
    let newest = lines().next_back().unwrap_or_default() as u64;
    let target = soft_cap(max_bytes).max(newest);
    let mut start = 0;
    for line in lines() {
        if (text.len() - start) as u64 <= target {
            break;
        }
        start += line;
    }
    start
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
        // The lock ends with the file.
        let mut file = self.locked(|| options.open(&self.path), File::try_lock)?;
        self.only_for_its_owner(&file)?;
        if self.ends_torn(&mut file)? {
            line.insert(0, '\n');
        }
        let length = file.metadata().map_err(|e| self.io("measure it", e))?.len();
        if self.max_bytes.is_some_and(|max| length + line.len() as u64 > max) {
            return self.replace(&mut file, &line);
        }
        file.write_all(line.as_bytes()).map_err(|e| {
            // Half a line, as a full disk leaves it, is no use to anybody.
            let _ = file.set_len(length);
            self.io("write to it", e)
        })
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
        match self.locked(|| File::open(&self.path), File::try_lock_shared) {
            Err(HistoryError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// Opens the file and locks it. Opened anew in each try, since another may stand there by then.
    pub(super) fn locked(
        &self,
        open: impl Fn() -> std::io::Result<File>,
        lock: impl Fn(&File) -> Result<(), TryLockError>,
    ) -> Result<File, HistoryError> {
        for attempt in 0..LOCK_TRIES {
            if attempt > 0 {
                (self.pause)(LOCK_PAUSE_MS);
            }
            let file = open().map_err(|e| self.io("open it", e))?;
            match lock(&file) {
                Ok(()) if self.is_still(&file)? => return Ok(file),
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(self.io("lock it", e)),
            }
        }
        Err(HistoryError::Locked { path: self.path.clone() })
    }

    /// Whether the path still leads to an open file.
    fn is_still(&self, file: &File) -> Result<bool, HistoryError> {
        let is = file.metadata().map_err(|e| self.io("identify it", e))?;
        match std::fs::metadata(&self.path) {
            Ok(named) => Ok(same_file(&is, &named)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(self.io("identify it", e)),
        }
    }

    /// Puts the newest lines and one more in the place of a file that would be past its limit,
    /// whole or not at all. The newest line always stays.
    fn replace(&self, file: &mut File, line: &str) -> Result<(), HistoryError> {
        let mut bytes = self.bytes(file)?;
        bytes.extend_from_slice(line.as_bytes());
        let start = first_kept(&bytes, self.max_bytes.unwrap_or(u64::MAX));
        Ok(files::write(&self.path, &bytes[start..])?)
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
        Ok(String::from_utf8_lossy(&self.bytes(file)?).into_owned())
    }

    fn bytes(&self, file: &mut File) -> Result<Vec<u8>, HistoryError> {
        let mut bytes = Vec::new();
        file.rewind()
            .and_then(|()| file.read_to_end(&mut bytes))
            .map_err(|e| self.io("read it", e))?;
        Ok(bytes)
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

#[cfg(unix)]
fn same_file(a: &FileMetadata, b: &FileMetadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// The system tells no number of a file: its times and its size, which nobody changes who has not
/// the lock. A file that takes another's name may have its time of creation.
#[cfg(not(unix))]
fn same_file(a: &FileMetadata, b: &FileMetadata) -> bool {
    let of = |m: &FileMetadata| (m.created().ok(), m.modified().ok(), m.len());
    of(a) == of(b)
}
