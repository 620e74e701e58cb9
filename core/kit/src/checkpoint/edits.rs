//! Checkpoints of edit tools: one per user prompt, with the content of each file before its first
//! edit.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::Type;
use rusqlite::{Connection, ErrorCode, Row, params};
use serde::{Deserialize, Serialize};

use super::{
    CheckpointError, FileContent, FileOutcome, FileState, Restored, Root, Snapshots, failed,
};
use crate::store::StoreError;
use ctxbench_core::Millis;
use ctxbench_util::files::{create_private, create_private_dir};
use ctxbench_util::hash::sha256;

/// A restore with all affected files saved, but not overwritten yet.
#[derive(Debug)]
pub struct PendingRestore {
    /// Result if every file can be written.
    restored: Restored,
    /// Index in `restored.files` and target state of each file to write.
    pending: Vec<(usize, FileState)>,
}

impl PendingRestore {
    /// Returns the number of the checkpoint that undoes the restore.
    pub fn undo(&self) -> u64 {
        self.restored.undo
    }
}

/// State of the files before a prompt or action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Number, from 1.
    pub number: u64,
    /// The prompt or action that started it.
    pub prompt: String,
    /// Start time in ms, by the caller's clock.
    pub made_ms: Millis,
    /// State of each file before its first edit after the prompt, by path below the root.
    pub files: BTreeMap<String, FileState>,
}

impl Checkpoint {
    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a checkpoint has only strings and numbers")
    }
}

/// File contents by their SHA-256, and a [`Checkpoint`] as JSON in each row of `checkpoints`.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS contents (sha256 TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS checkpoints (number INTEGER PRIMARY KEY, json TEXT NOT NULL) STRICT;
";

/// Checkpoints of a session in an SQLite file.
#[derive(Debug)]
pub struct EditCheckpoints {
    root: Root,
    path: PathBuf,
    db: Connection,
    /// Oldest first.
    all: Vec<Checkpoint>,
    next: u64,
}

impl EditCheckpoints {
    /// Opens or creates the checkpoints in the folder `store` for a session in `root`. Saved files
    /// are on the disk before a restore overwrites them.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::InUse`] if another program has them open, because both would use the same
    /// numbers.
    pub fn open(root: &Path, store: &Path) -> Result<EditCheckpoints, CheckpointError> {
        Self::open_with(root, store, "")
    }

    /// Opens checkpoints like [`EditCheckpoints::open`], without waiting for the disk, for temporary
    /// copies.
    pub fn open_scratch(root: &Path, store: &Path) -> Result<EditCheckpoints, CheckpointError> {
        Self::open_with(root, store, "PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY;")
    }

    fn open_with(
        root: &Path,
        store: &Path,
        setup: &str,
    ) -> Result<EditCheckpoints, CheckpointError> {
        create_private_dir(store).map_err(failed(store.display(), "make the folder"))?;
        let path = file_in(store);
        // If this fails, SQLite reports the reason.
        let _ = create_private(&path);
        // The lock is kept until the connection is closed.
        let lock = format!("{setup} PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
        let open = || -> rusqlite::Result<(Connection, Vec<Checkpoint>)> {
            let db = Connection::open(&path)?;
            db.busy_timeout(Duration::ZERO)?;
            db.execute_batch(&format!("{lock} {TABLES} COMMIT;"))?;
            let all = db
                .prepare("SELECT json FROM checkpoints ORDER BY number")?
                .query_map([], parse_checkpoint)?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            Ok((db, all))
        };
        let (db, all) = open().map_err(|e| match e.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy) => CheckpointError::InUse(store.to_path_buf()),
            _ => StoreError::sql(&path, "open it", &e).into(),
        })?;
        let next = all.last().map_or(1, |c| c.number + 1);
        Ok(EditCheckpoints { root: Root::open(root)?, path, db, all, next })
    }

    /// Returns true if `store` contains checkpoints.
    pub fn exist(store: &Path) -> bool {
        file_in(store).is_file()
    }

    /// Returns all checkpoints, oldest first.
    pub fn list(&self) -> &[Checkpoint] {
        &self.all
    }

    fn sql<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CheckpointError> {
        work(&self.db).map_err(|e| StoreError::sql(&self.path, action, &e).into())
    }

    fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        self.sql("save a checkpoint", |db| {
            let row = params![checkpoint.number as i64, checkpoint.to_json()];
            db.execute("INSERT OR REPLACE INTO checkpoints VALUES (?1, ?2)", row).map(drop)
        })
    }

    /// Saves the current content of a file and returns the state that refers to it.
    fn save_current(&self, path: &str) -> Result<FileState, CheckpointError> {
        let Some(FileContent { bytes, mode }) = self.root.read(path)? else {
            return Ok(FileState::Absent);
        };
        let sha256 = sha256(&bytes);
        self.sql("save a file", |db| {
            db.execute("INSERT OR IGNORE INTO contents VALUES (?1, ?2)", params![sha256, bytes])
        })?;
        Ok(FileState::Regular { sha256, mode })
    }

    /// Returns the state of each file at a checkpoint: the oldest state saved since.
    fn states_at(&self, to: u64) -> Result<BTreeMap<String, FileState>, CheckpointError> {
        let from =
            self.all.iter().position(|c| c.number == to).ok_or(CheckpointError::Unknown(to))?;
        let mut out = BTreeMap::new();
        for (path, state) in self.all[from..].iter().flat_map(|c| &c.files) {
            out.entry(path.clone()).or_insert_with(|| state.clone());
        }
        Ok(out)
    }

    /// Begins a restore: saves the current files as a checkpoint, without overwriting them. The
    /// caller can record that checkpoint before it completes the restore with
    /// [`EditCheckpoints::apply`].
    pub fn prepare(&mut self, to: u64, now_ms: Millis) -> Result<PendingRestore, CheckpointError> {
        let (mut saved, mut files, mut pending) = (BTreeMap::new(), Vec::new(), Vec::new());
        for (path, target) in self.states_at(to)? {
            let result = match self.save_current(&path) {
                Ok(current) if current == target => FileOutcome::Unchanged,
                Ok(current) => {
                    saved.insert(path.clone(), current);
                    pending.push((files.len(), target));
                    FileOutcome::Restored
                }
                // A file that cannot be saved is not overwritten.
                Err(e) => e.into(),
            };
            files.push((path, result));
        }
        let undo = self.add(format!("before restoring checkpoint {to}"), now_ms, saved)?;
        Ok(PendingRestore { restored: Restored { undo, files }, pending })
    }

    /// Completes a restore: writes the files.
    pub fn apply(&self, restore: PendingRestore) -> Restored {
        let PendingRestore { mut restored, pending } = restore;
        for (i, target) in pending {
            let (path, result) = &mut restored.files[i];
            if let Err(e) = self.write(path, &target) {
                *result = e.into();
            }
        }
        restored
    }

    /// Stores the next checkpoint and returns its number.
    fn add(
        &mut self,
        prompt: String,
        made_ms: Millis,
        files: BTreeMap<String, FileState>,
    ) -> Result<u64, CheckpointError> {
        let new = Checkpoint { number: self.next, prompt, made_ms, files };
        self.save(&new)?;
        self.all.push(new);
        self.next += 1;
        Ok(self.next - 1)
    }

    fn write(&self, path: &str, target: &FileState) -> Result<(), CheckpointError> {
        let FileState::Regular { sha256, mode } = target else {
            return self.root.remove(path);
        };
        let bytes = self.sql("read a saved file", |db| {
            db.query_row("SELECT bytes FROM contents WHERE sha256 = ?1", [sha256], |r| r.get(0))
        })?;
        self.root.write(path, &FileContent { bytes, mode: *mode })
    }
}

fn file_in(store: &Path) -> PathBuf {
    store.join("files.db")
}

fn parse_checkpoint(row: &Row<'_>) -> rusqlite::Result<Checkpoint> {
    let json: String = row.get(0)?;
    let invalid = |e| rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(e));
    serde_json::from_str(&json).map_err(invalid)
}

impl Snapshots for EditCheckpoints {
    fn begin(&mut self, prompt: &str, now_ms: Millis) -> Result<u64, CheckpointError> {
        self.add(prompt.to_string(), now_ms, BTreeMap::new())
    }

    fn before_edit(&mut self, path: &str) -> Result<(), CheckpointError> {
        let relative = self.root.relative(path)?;
        let mut changed = match self.all.last() {
            None => return Err(CheckpointError::NotBegun(path.to_string())),
            Some(newest) if newest.files.contains_key(&relative) => return Ok(()),
            Some(newest) => newest.clone(),
        };
        let state = self.save_current(&relative)?;
        changed.files.insert(relative, state);
        self.save(&changed)?;
        self.all.pop();
        self.all.push(changed);
        Ok(())
    }

    fn restore(&mut self, to: u64, now_ms: Millis) -> Result<Restored, CheckpointError> {
        let restore = self.prepare(to, now_ms)?;
        Ok(self.apply(restore))
    }

    fn tracked(&self, to: u64) -> Result<Vec<String>, CheckpointError> {
        Ok(self.states_at(to)?.into_keys().collect())
    }

    fn stored_bytes(&self) -> Result<u64, CheckpointError> {
        let contents: i64 = self.sql("add up its contents", |db| {
            db.query_row("SELECT coalesce(sum(length(bytes)), 0) FROM contents", [], |r| r.get(0))
        })?;
        let lists: usize = self.all.iter().map(|c| c.to_json().len()).sum();
        Ok(contents as u64 + lists as u64)
    }
}
