//! Checkpoints of edit tools: one per user prompt, with the content of each file before its first
//! edit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::blobs::{clear_unfinished, list_dir, sync_folder, write_atomic};
use super::{
    Blobs, CheckpointError, Digest, Durability, FileContent, FileOutcome, FileState, PathError,
    Restored, Root, Snapshots, StorageSize, io,
};
use ctxbench_core::files::create_private_dir;
use ctxbench_core::session::Millis;

/// Retention limits of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Maximum age in days; 30 in Claude Code (docs/sources/claude-code.md §1.5, grade A).
    pub days: u64,
    /// Maximum number; 100 in Claude Code (docs/sources/claude-code.md §1.5).
    pub newest: usize,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { days: 30, newest: 100 }
    }
}

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

const DAY_MS: Millis = 24 * 60 * 60 * 1000;

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

/// Checkpoints of a session in a folder: contents in `blobs/`, a list of files per checkpoint in
/// `checkpoints/`.
#[derive(Debug)]
pub struct EditCheckpoints {
    root: Root,
    blobs: Blobs,
    lists: PathBuf,
    retention: Retention,
    durability: Durability,
    /// Oldest first.
    all: Vec<Checkpoint>,
    next: u64,
    /// Lock on the checkpoints, released on drop.
    pub(super) lock: fs::File,
}

impl Drop for EditCheckpoints {
    /// Closing the file is not enough: a process that another thread is spawning has a copy of the
    /// descriptor until `exec`.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

impl EditCheckpoints {
    /// Opens or creates the checkpoints in `store` for a session in `root`. Saved files are synced to
    /// disk before a restore overwrites them.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::InUse`] if another process has them open, because both would use the same
    /// numbers.
    pub fn open(
        root: &Path,
        store: &Path,
        retention: Retention,
    ) -> Result<EditCheckpoints, CheckpointError> {
        Self::open_with(root, store, retention, Durability::Synced)
    }

    /// Opens the checkpoints like [`EditCheckpoints::open`], with a choice of durability.
    pub fn open_with(
        root: &Path,
        store: &Path,
        retention: Retention,
        durability: Durability,
    ) -> Result<EditCheckpoints, CheckpointError> {
        let lists = store.join("checkpoints");
        create_private_dir(&lists).map_err(io(&lists, "make the folder"))?;
        let lock = lock(store)?;
        clear_unfinished(&lists);
        let mut all: Vec<Checkpoint> = Vec::new();
        for path in
            list_dir(&lists)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "json"))
        {
            let text = fs::read(&path).map_err(io(&path, "read it"))?;
            all.push(
                serde_json::from_slice(&text)
                    .map_err(|e| CheckpointError::Damaged { path, reason: e.to_string() })?,
            );
        }
        all.sort_by_key(|c| c.number);
        let next = all.last().map_or(1, |c| c.number + 1);
        let blobs = Blobs::open(&store.join("blobs"), durability)?;
        blobs.clear_unfinished()?;
        for folder in [Some(store), store.parent().filter(|p| !p.as_os_str().is_empty())]
            .into_iter()
            .flatten()
        {
            sync_folder(folder, durability)?;
        }
        let root = Root::open(root)?;
        Ok(EditCheckpoints { root, blobs, lists, retention, durability, all, next, lock })
    }

    /// Returns true if `store` contains checkpoints.
    pub fn exist(store: &Path) -> bool {
        store.join("checkpoints").is_dir()
    }

    /// Returns all checkpoints, oldest first.
    pub fn list(&self) -> &[Checkpoint] {
        &self.all
    }

    /// Removes checkpoints beyond the retention limits, and all contents that they alone used.
    /// Returns the number of bytes freed.
    pub fn expire(&mut self, now_ms: Millis) -> Result<u64, CheckpointError> {
        let too_many = self.all.len().saturating_sub(self.retention.newest);
        let limit = self.retention.days * DAY_MS;
        // A checkpoint takes states that it lacks from later ones, so only a prefix can be removed.
        // An older checkpoint after a newer one, as after a clock change, is kept as long.
        let old = |c: &Checkpoint| now_ms.saturating_sub(c.made_ms) > limit;
        let expired: Vec<u64> = self
            .all
            .iter()
            .enumerate()
            .take_while(|(i, c)| *i < too_many || old(c))
            .map(|(_, c)| c.number)
            .collect();
        for n in &expired {
            let path = self.list_path(*n);
            fs::remove_file(&path).map_err(io(&path, "remove it"))?;
        }
        self.all.drain(..expired.len());
        let live = self
            .all
            .iter()
            .flat_map(|c| c.files.values())
            .filter_map(FileState::digest)
            .cloned()
            .collect();
        self.blobs.sweep(&live)
    }

    fn list_path(&self, number: u64) -> PathBuf {
        self.lists.join(format!("{number:08}.json"))
    }

    fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let text =
            serde_json::to_vec(checkpoint).expect("a checkpoint has only strings and numbers");
        write_atomic(&self.list_path(checkpoint.number), &text, self.durability)
    }

    /// Stores a content and returns the state that refers to it.
    fn store_content(&self, content: Option<&FileContent>) -> Result<FileState, CheckpointError> {
        Ok(match content {
            None => FileState::Absent,
            Some(c) => FileState::Regular { sha256: self.blobs.insert(&c.bytes)?, mode: c.mode },
        })
    }

    /// Returns the state of each file at a checkpoint: the oldest state saved since.
    pub(super) fn states_at(
        &self,
        to: u64,
    ) -> Result<BTreeMap<String, FileState>, CheckpointError> {
        let from =
            self.all.iter().position(|c| c.number == to).ok_or(CheckpointError::Unknown(to))?;
        let mut out = BTreeMap::new();
        for (path, state) in self.all[from..].iter().flat_map(|c| &c.files) {
            out.entry(path.clone()).or_insert_with(|| state.clone());
        }
        Ok(out)
    }

    /// Reads the current content of a path.
    pub(super) fn current(&self, path: &str) -> Result<Option<FileContent>, CheckpointError> {
        Ok(self.root.read(&self.root.resolve(path)?)?)
    }

    /// Begins a restore: saves the current files as a checkpoint, without overwriting them. The
    /// caller can record that checkpoint before it completes the restore with
    /// [`EditCheckpoints::apply`].
    pub fn prepare(&mut self, to: u64, now_ms: Millis) -> Result<PendingRestore, CheckpointError> {
        let targets = self.states_at(to)?;
        let mut undo = Checkpoint {
            number: self.next,
            prompt: format!("before restoring checkpoint {to}"),
            made_ms: now_ms,
            files: BTreeMap::new(),
        };
        let (mut files, mut pending) = (Vec::new(), Vec::new());
        for (path, target) in targets {
            let current = self.current(&path).and_then(|c| self.store_content(c.as_ref()));
            let result = match current {
                Ok(current) if current == target => FileOutcome::Unchanged,
                Ok(current) => {
                    undo.files.insert(path.clone(), current);
                    pending.push((files.len(), target));
                    FileOutcome::Restored
                }
                // A file that cannot be saved is not overwritten.
                Err(e) => outcome(e),
            };
            files.push((path, result));
        }
        let number = undo.number;
        self.add(undo)?;
        Ok(PendingRestore { restored: Restored { undo: number, files }, pending })
    }

    /// Completes a restore: writes the files.
    pub fn apply(&self, restore: PendingRestore) -> Restored {
        let PendingRestore { mut restored, pending } = restore;
        for (i, target) in pending {
            let (path, result) = &mut restored.files[i];
            if let Err(e) = self.write(path, &target) {
                *result = outcome(e);
            }
        }
        restored
    }

    /// Stores the next checkpoint.
    fn add(&mut self, new: Checkpoint) -> Result<(), CheckpointError> {
        self.save(&new)?;
        self.next = new.number + 1;
        self.all.push(new);
        Ok(())
    }

    fn write(&self, path: &str, target: &FileState) -> Result<(), CheckpointError> {
        let path = self.root.resolve(path)?;
        match target {
            FileState::Absent => self.root.remove(&path)?,
            FileState::Regular { sha256, mode } => self
                .root
                .write(&path, &FileContent { bytes: self.blobs.get(sha256)?, mode: *mode })?,
        }
        Ok(())
    }
}

/// Locks the store without waiting, because a session keeps the lock until it ends.
fn lock(store: &Path) -> Result<fs::File, CheckpointError> {
    let path = store.join("lock");
    let open = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = open.map_err(io(&path, "open it"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(CheckpointError::InUse(store.to_path_buf())),
        Err(fs::TryLockError::Error(e)) => Err(io(&path, "lock it")(e)),
    }
}

/// Converts an error to the outcome of a file.
fn outcome(e: CheckpointError) -> FileOutcome {
    match e {
        CheckpointError::Path(e @ PathError { .. }) if e.is_refusal() => {
            FileOutcome::Refused(e.to_string())
        }
        e => FileOutcome::Failed(e.to_string()),
    }
}

impl Snapshots for EditCheckpoints {
    fn name(&self) -> &'static str {
        "edit tools"
    }

    fn begin(&mut self, prompt: &str, now_ms: Millis) -> Result<u64, CheckpointError> {
        let new = Checkpoint {
            number: self.next,
            prompt: prompt.to_string(),
            made_ms: now_ms,
            files: BTreeMap::new(),
        };
        let number = new.number;
        self.add(new)?;
        Ok(number)
    }

    fn before_edit(&mut self, path: &str) -> Result<(), CheckpointError> {
        let safe = self.root.resolve(path)?;
        let Some(newest) = self.all.last() else {
            return Err(CheckpointError::NotBegun(path.to_string()));
        };
        if newest.files.contains_key(safe.as_str()) {
            return Ok(());
        }
        let state = self.store_content(self.root.read(&safe)?.as_ref())?;
        let mut changed = newest.clone();
        changed.files.insert(safe.as_str().to_string(), state);
        self.save(&changed)?;
        *self.all.last_mut().expect("checked above") = changed;
        Ok(())
    }

    fn restore(&mut self, to: u64, now_ms: Millis) -> Result<Restored, CheckpointError> {
        let restore = self.prepare(to, now_ms)?;
        Ok(self.apply(restore))
    }

    fn tracked(&self, to: u64) -> Result<Vec<String>, CheckpointError> {
        Ok(self.states_at(to)?.into_keys().collect())
    }

    fn storage_size(&self) -> Result<StorageSize, CheckpointError> {
        let blobs: u64 = self.blobs.list()?.iter().map(|(_, n)| n).sum();
        let mut lists = 0;
        for c in &self.all {
            let path = self.list_path(c.number);
            lists += fs::metadata(&path).map_err(io(&path, "look at it"))?.len();
        }
        // Contents are not compressed.
        Ok(StorageSize { content_bytes: blobs + lists, disk_bytes: blobs + lists })
    }
}

impl FileState {
    /// Returns the digest of a regular file.
    pub fn digest(&self) -> Option<&Digest> {
        match self {
            FileState::Absent => None,
            FileState::Regular { sha256, .. } => Some(sha256),
        }
    }
}
