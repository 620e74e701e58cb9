//! What runs left that broke off: rows that a later run goes on from, and others that are made into
//! results of their own.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use ctxbench_core::files;

use super::{ABOUT, About, ENDING, FAILED, RowIn, neighbour, place, sort_runs, sum};
use crate::formats::ReportError;
use crate::json::{self, ReadError};
use crate::record::{RESULTS_VERSION, Results, RunRecord};
use crate::stored::{Rows, Take};
use crate::write::{WriteError, io_error};

/// What the name of results of such rows ends in, or that and a number.
pub(crate) const INTERRUPTED: &str = ".interrupted";

/// A folder of rows that no process holds.
pub struct Leftover {
    dir: PathBuf,
    /// Ours as long as this run lasts.
    _lock: Option<File>,
}

impl Leftover {
    /// The file of a row.
    pub(super) fn row(&self, key: &str) -> Option<PathBuf> {
        let path = place(&self.dir, key, ENDING);
        path.is_file().then_some(path)
    }

    fn is_progress_itself(&self, progress: &Path) -> bool {
        self.dir == progress
    }
}

/// The folders of runs that broke off; other files directly in the folder of progress, which people
/// or earlier versions put there, count as one. A run that is going on at this moment is an error.
pub(super) fn find(progress: &Path) -> Result<Vec<Leftover>, WriteError> {
    let mut all = Vec::new();
    if !row_files(progress, false).is_empty() {
        all.push(Leftover { dir: progress.into(), _lock: None });
    }
    files::remove_unfinished(progress);
    for entry in fs::read_dir(progress).map_err(io_error(progress, "list it"))? {
        let dir = entry.map_err(io_error(progress, "list it"))?.path();
        let ours = dir.file_name().is_some_and(|n| n.to_string_lossy().starts_with("run-"));
        if !ours || !dir.is_dir() {
            continue;
        }
        let Ok(folder) = File::open(&dir) else { continue };
        match folder.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(WriteError::Busy(dir)),
            // Of one that was killed before it kept anything.
            _ if fs::remove_dir(&dir).is_ok() => {}
            _ => all.push(Leftover { dir, _lock: Some(folder) }),
        }
    }
    all.sort_by(|a, b| a.dir.cmp(&b.dir));
    Ok(all)
}

/// Files of rows in a folder, and in those that it divides rows into.
fn row_files(dir: &Path, below: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(ENDING) {
            found.push(path);
        } else if below && name.len() == 2 {
            found.extend(row_files(&path, false));
        }
    }
    found.sort();
    found
}

/// Rows that were left and not used.
#[derive(Default)]
pub struct Left {
    folders: Vec<Leftover>,
    progress: PathBuf,
    /// The rows by session, and how many.
    sessions: BTreeMap<String, Vec<PathBuf>>,
    /// How many rows can be read.
    pub rows: usize,
    /// The first that cannot be read.
    pub unreadable: Option<ReadError>,
}

/// Removes the folders that are empty now, and looks at what stands in the others.
pub(super) fn sort_out(progress: &Path, earlier: Vec<Leftover>) -> Result<Left, WriteError> {
    let mut left = Left { progress: progress.into(), ..Left::default() };
    for folder in earlier {
        let own = !folder.is_progress_itself(progress);
        let files = row_files(&folder.dir, own);
        // Errors alone say nothing that the run after them did not try again.
        let failed = |f: &PathBuf| f.to_string_lossy().ends_with(FAILED);
        if files.iter().all(failed) {
            if own {
                fs::remove_dir_all(&folder.dir).map_err(io_error(&folder.dir, "remove it"))?;
            }
            continue;
        }
        for path in files {
            match row(&path) {
                Ok(run) => {
                    left.rows += 1;
                    left.sessions.entry(run.scenario.id).or_default().push(path);
                }
                Err(e) => left.unreadable = left.unreadable.or(Some(e)),
            }
        }
        left.folders.push(folder);
    }
    if left.folders.is_empty() {
        // Fails when people keep something there, or another run is going on.
        let _ = fs::remove_dir(progress);
    }
    Ok(left)
}

fn row(path: &Path) -> Result<RunRecord, ReadError> {
    let text = json::read_text(path)?;
    let (json, is_whole) = sum::checked(text.as_bytes());
    // What is of another version is told first: its checksum may stand elsewhere.
    let json = &text[..json.len()];
    let RowIn { run, .. } = json::versioned(json, path, "a stored run", RESULTS_VERSION)?;
    if !is_whole {
        let why = "its checksum is not that of its content, so it was changed since it was stored";
        let source = io::Error::new(io::ErrorKind::InvalidData, why);
        return Err(ReadError::Io { path: path.into(), source });
    }
    Ok(run)
}

impl Left {
    /// Nothing was left.
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty()
    }

    /// A free place beside `out` for what is made of it.
    pub fn place(&self, out: &Path) -> PathBuf {
        (1..)
            .map(|n| if n == 1 { INTERRUPTED.into() } else { format!("{INTERRUPTED}-{n}") })
            .map(|ending| neighbour(out, &ending))
            .find(|place| fs::symlink_metadata(place).is_err())
            .expect("some number is free")
    }

    /// What results of these rows begin with.
    pub fn head(&self) -> Results {
        let about = self.folders.iter().find_map(|f| {
            let text = fs::read_to_string(f.dir.join(ABOUT)).ok()?;
            serde_json::from_str::<About>(&text).ok()
        });
        let About { generator, assumptions } = about.unwrap_or_default();
        Results { version: RESULTS_VERSION, generator, assumptions, ..Results::default() }
    }

    /// Removes the rows: called when they are in results.
    pub fn discard(self) -> Result<(), WriteError> {
        for folder in &self.folders {
            let own = !folder.is_progress_itself(&self.progress);
            for path in row_files(&folder.dir, own) {
                fs::remove_file(&path).map_err(io_error(&path, "remove it"))?;
            }
            let _ = fs::remove_file(folder.dir.join(ABOUT));
            if own {
                fs::remove_dir_all(&folder.dir).map_err(io_error(&folder.dir, "remove it"))?;
            }
        }
        // Fails when people keep something there, which is theirs to clear.
        let _ = fs::remove_dir(&self.progress);
        Ok(())
    }

    /// Moves what was left as it is to a new place.
    pub fn move_aside(self, to: &Path) -> Result<(), WriteError> {
        for folder in &self.folders {
            let own = !folder.is_progress_itself(&self.progress);
            for path in row_files(&folder.dir, own) {
                let name = path.file_name().unwrap_or_default();
                fs::create_dir_all(to).map_err(io_error(to, "make the folder"))?;
                fs::rename(&path, to.join(name)).map_err(io_error(&path, "move it aside"))?;
            }
        }
        self.discard()
    }
}

impl Rows for Left {
    fn sessions(&self, take: &mut Take<'_>) -> Result<(), ReportError> {
        for paths in self.sessions.values() {
            let mut rows = paths.iter().map(|p| row(p)).collect::<Result<Vec<_>, _>>()?;
            sort_runs(&mut rows);
            take(&rows)?;
        }
        Ok(())
    }
}
