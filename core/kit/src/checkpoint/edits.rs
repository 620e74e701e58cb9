//! Checkpoints by edit tools: one per user prompt, and in it each file's content from before its
//! first edit.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::blobs::{clear_unfinished, entries, put_file, sync_folder};
use super::{
    Blobs, CheckpointError, Content, Digest, Durability, FileOutcome, FileState, PathError,
    Restored, Root, Snapshots, Stored, io,
};
use ctxbench_core::files::create_private_dir;
use ctxbench_core::session::Millis;

/// How long checkpoints are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Days; Claude Code keeps them 30 days (docs/sources/claude-code.md §1.5, grade A).
    pub days: u64,
    /// The newest so many; Claude Code keeps 100 (the same place).
    pub newest: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Keep { days: 30, newest: 100 }
    }
}

/// A restoration of which all is kept that it will overwrite.
#[derive(Debug)]
pub struct Saved {
    /// What comes of it where every file can be written.
    restored: Restored,
    /// By place among its files, what is still to be written.
    due: Vec<(usize, FileState)>,
}

impl Saved {
    /// The number of the checkpoint that takes it back.
    pub fn undo(&self) -> u64 {
        self.restored.undo
    }
}

const DAY_MS: Millis = 24 * 60 * 60 * 1000;

/// One checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its number, from 1.
    pub number: u64,
    /// The prompt that began it, or what else did.
    pub prompt: String,
    /// The caller's clock when it began, ms.
    pub made_ms: Millis,
    /// Files as they were before their first edit after the prompt, by path below the root.
    pub files: BTreeMap<String, FileState>,
}

/// Checkpoints of one session in a folder: contents in `blobs/`, a list per checkpoint in
/// `checkpoints/`.
#[derive(Debug)]
pub struct EditCheckpoints {
    root: Root,
    blobs: Blobs,
    lists: PathBuf,
    keep: Keep,
    durability: Durability,
    /// Oldest first.
    all: Vec<Checkpoint>,
    next: u64,
    /// Held as long as this lives.
    pub(super) lock: fs::File,
}

impl Drop for EditCheckpoints {
    /// Closing the file is not enough: a program that another thread is just starting holds a copy
    /// of it until it runs.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

impl EditCheckpoints {
    /// Opens or begins the checkpoints in `store` of the session in `root`. What they keep is on
    /// the disk before a file is overwritten. One program at a time has them open: two would give
    /// the same number to different checkpoints.
    pub fn open(root: &Path, store: &Path, keep: Keep) -> Result<EditCheckpoints, CheckpointError> {
        Self::open_with(root, store, keep, Durability::Synced)
    }

    /// The same, and whether the disk is waited for.
    pub fn open_with(
        root: &Path,
        store: &Path,
        keep: Keep,
        durability: Durability,
    ) -> Result<EditCheckpoints, CheckpointError> {
        let lists = store.join("checkpoints");
        create_private_dir(&lists).map_err(io(&lists, "make the folder"))?;
        let lock = lock(store)?;
        clear_unfinished(&lists);
        let mut all: Vec<Checkpoint> = Vec::new();
        for path in
            entries(&lists)?.into_iter().filter(|p| p.extension().is_some_and(|e| e == "json"))
        {
            let text = fs::read(&path).map_err(io(&path, "read it"))?;
            all.push(
                serde_json::from_slice(&text)
                    .map_err(|e| CheckpointError::Damaged { path, what: e.to_string() })?,
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
        Ok(EditCheckpoints { root, blobs, lists, keep, durability, all, next, lock })
    }

    /// Whether a folder has been opened for checkpoints before.
    pub fn are_kept(store: &Path) -> bool {
        store.join("checkpoints").is_dir()
    }

    /// All checkpoints, oldest first.
    pub fn list(&self) -> &[Checkpoint] {
        &self.all
    }

    /// Forgets checkpoints that are too old or too many, and contents that none of the others
    /// needs. Returns the bytes freed.
    pub fn expire(&mut self, now_ms: Millis) -> Result<u64, CheckpointError> {
        let too_many = self.all.len().saturating_sub(self.keep.newest);
        let limit = self.keep.days * DAY_MS;
        // An earlier checkpoint takes the states that it lacks from later ones, so only a leading
        // run can go: behind a kept one an older one, as a clock that went back makes it, is kept
        // as long.
        let old = |c: &Checkpoint| now_ms.saturating_sub(c.made_ms) > limit;
        let gone: Vec<u64> = self
            .all
            .iter()
            .enumerate()
            .take_while(|(i, c)| *i < too_many || old(c))
            .map(|(_, c)| c.number)
            .collect();
        for n in &gone {
            let path = self.place(*n);
            fs::remove_file(&path).map_err(io(&path, "remove it"))?;
        }
        self.all.drain(..gone.len());
        let live = self
            .all
            .iter()
            .flat_map(|c| c.files.values())
            .filter_map(FileState::digest)
            .cloned()
            .collect();
        self.blobs.sweep(&live)
    }

    fn place(&self, number: u64) -> PathBuf {
        self.lists.join(format!("{number:08}.json"))
    }

    fn save(&self, checkpoint: &Checkpoint) -> Result<(), CheckpointError> {
        let text = serde_json::to_vec(checkpoint).expect("a checkpoint always serialises");
        put_file(&self.place(checkpoint.number), &text, self.durability)
    }

    /// Keeps a content and says how to find it.
    fn state(&self, content: Option<&Content>) -> Result<FileState, CheckpointError> {
        Ok(match content {
            None => FileState::Absent,
            Some(c) => FileState::Regular { sha256: self.blobs.put(&c.bytes)?, mode: c.mode },
        })
    }

    /// What each file was at a checkpoint: the oldest state noted since.
    pub(super) fn wanted(&self, to: u64) -> Result<BTreeMap<String, FileState>, CheckpointError> {
        let from =
            self.all.iter().position(|c| c.number == to).ok_or(CheckpointError::Unknown(to))?;
        let mut out = BTreeMap::new();
        for (path, state) in self.all[from..].iter().flat_map(|c| &c.files) {
            out.entry(path.clone()).or_insert_with(|| state.clone());
        }
        Ok(out)
    }

    /// What stands at a path now.
    pub(super) fn present(&self, path: &str) -> Result<Option<Content>, CheckpointError> {
        Ok(self.root.read(&self.root.resolve(path)?)?)
    }

    /// A content that was kept.
    pub(super) fn kept(&self, digest: &Digest) -> Result<Vec<u8>, CheckpointError> {
        self.blobs.get(digest)
    }

    /// The first half of going back: a checkpoint of what the files are now. Nothing is written to
    /// them yet, so that whoever keeps account of checkpoints can note this one before.
    pub fn save_present(&mut self, to: u64, now_ms: Millis) -> Result<Saved, CheckpointError> {
        let wanted = self.wanted(to)?;
        let mut undo = Checkpoint {
            number: self.next,
            prompt: format!("before going back to checkpoint {to}"),
            made_ms: now_ms,
            files: BTreeMap::new(),
        };
        let (mut files, mut due) = (Vec::new(), Vec::new());
        for (path, want) in wanted {
            let is = self.present(&path).and_then(|c| self.state(c.as_ref()));
            let done = match is {
                Ok(is) if is == want => FileOutcome::Unchanged,
                Ok(is) => {
                    undo.files.insert(path.clone(), is);
                    due.push((files.len(), want));
                    FileOutcome::Restored
                }
                // What cannot be saved is not overwritten.
                Err(e) => outcome(e),
            };
            files.push((path, done));
        }
        let number = undo.number;
        self.add(undo)?;
        Ok(Saved { restored: Restored { undo: number, files }, due })
    }

    /// The second half: the files are written.
    pub fn go_back(&self, saved: Saved) -> Restored {
        let Saved { mut restored, due } = saved;
        for (i, want) in due {
            let (path, done) = &mut restored.files[i];
            if let Err(e) = self.write(path, &want) {
                *done = outcome(e);
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

    fn write(&self, path: &str, want: &FileState) -> Result<(), CheckpointError> {
        let path = self.root.resolve(path)?;
        match want {
            FileState::Absent => self.root.remove(&path)?,
            FileState::Regular { sha256, mode } => {
                self.root.write(&path, &Content { bytes: self.blobs.get(sha256)?, mode: *mode })?
            }
        }
        Ok(())
    }
}

/// Taken without waiting: whoever holds it does so for a whole session.
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

/// What an error means for one file.
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
        let state = self.state(self.root.read(&safe)?.as_ref())?;
        let mut changed = newest.clone();
        changed.files.insert(safe.as_str().to_string(), state);
        self.save(&changed)?;
        *self.all.last_mut().expect("looked at above") = changed;
        Ok(())
    }

    fn restore(&mut self, to: u64, now_ms: Millis) -> Result<Restored, CheckpointError> {
        let saved = self.save_present(to, now_ms)?;
        Ok(self.go_back(saved))
    }

    fn tracked(&self, to: u64) -> Result<Vec<String>, CheckpointError> {
        Ok(self.wanted(to)?.into_keys().collect())
    }

    fn stored(&self) -> Result<Stored, CheckpointError> {
        let blobs: u64 = self.blobs.list()?.iter().map(|(_, n)| n).sum();
        let mut lists = 0;
        for c in &self.all {
            let path = self.place(c.number);
            lists += fs::metadata(&path).map_err(io(&path, "look at it"))?.len();
        }
        // Nothing is compressed.
        Ok(Stored { content_bytes: blobs + lists, disk_bytes: blobs + lists })
    }
}

impl FileState {
    /// The content's digest, if there is a file.
    pub fn digest(&self) -> Option<&Digest> {
        match self {
            FileState::Absent => None,
            FileState::Regular { sha256, .. } => Some(sha256),
        }
    }
}
