//! Finished pairs on disk, one file each, found by the hash of all that decides them: what is there
//! is never computed again. A run keeps its own beside the output folder until they are in results;
//! a cache keeps them for other runs.
//!
//! A file appears whole or not at all, and is believed only when it names its own hash and its
//! checksum is that of its content: what a power cut tore or somebody changed is computed again.

mod leftover;
mod sum;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::record::{RESULTS_VERSION, RunRecord, Status};
use ctxbench_core::{files, natural};
use serde::{Deserialize, Serialize};

use crate::write::{WriteError, io_error, is_empty};

pub(crate) use leftover::INTERRUPTED;
pub use leftover::{Left, Leftover};

const ENDING: &str = ".run.json";
/// Ending of a row that is an error: never found, only read back for the results of its own run.
const FAILED: &str = ".failed.run.json";
/// What results need beside their rows.
const ABOUT: &str = "about.json";
/// The file that marks a folder as a cache of ours.
const CACHE_MARKER: &str = ".ctxbench-cache";
const CACHE_HEAD: &str = "ctxbench cache 1\n";
/// Bytes of rows that are held in memory, too, as their files have them; others are read when they
/// are needed.
const HELD_BYTES: usize = 64 << 20;

/// A finished pair.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// What was measured; nothing that takes other rows.
    pub run: RunRecord,
    /// A JSON line per request, where they were asked for.
    pub trace: Vec<String>,
    /// A JSON line per reply, where they were asked for.
    pub status: Vec<String>,
    /// How long it took; no part of results.
    pub timing: serde_json::Value,
}

#[derive(Serialize)]
struct RowOut<'a> {
    version: u32,
    key: &'a str,
    run: &'a RunRecord,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    trace: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    status: &'a [String],
    timing: &'a serde_json::Value,
}

#[derive(Deserialize)]
struct RowIn {
    version: u32,
    #[serde(default)]
    key: String,
    run: RunRecord,
    #[serde(default)]
    trace: Vec<String>,
    #[serde(default)]
    status: Vec<String>,
    #[serde(default)]
    timing: serde_json::Value,
}

#[derive(Default, Serialize, Deserialize)]
struct About {
    generator: String,
    assumptions: BTreeMap<String, String>,
}

/// The folder for runs in progress: a neighbour of the output folder.
pub fn progress_dir(out: &Path) -> PathBuf {
    neighbour(out, ".partial")
}

fn neighbour(out: &Path, ending: &str) -> PathBuf {
    let name = out.file_name().map_or("ctxbench-out".into(), |n| n.to_string_lossy().into_owned());
    out.with_file_name(format!("{name}{ending}"))
}

/// Rows by their keys. A key is a hash in hexadecimal.
pub struct RowStore {
    dir: PathBuf,
    kind: Kind,
    held: Mutex<Held>,
    failed: Mutex<Vec<PathBuf>>,
}

enum Kind {
    /// Of one run; with what earlier ones left.
    Run {
        _lock: Option<File>,
        progress: PathBuf,
        earlier: Vec<Leftover>,
    },
    Cache,
}

#[derive(Default)]
struct Held {
    rows: HashMap<String, Arc<Row>>,
    bytes: usize,
}

/// A folder below `progress` that is this run's, its lock, and what earlier runs left there; an
/// error while another run goes on.
fn own_folder(progress: &Path) -> Result<(PathBuf, Option<File>, Vec<Leftover>), WriteError> {
    fs::create_dir_all(progress).map_err(io_error(progress, "make the folder"))?;
    // A folder is made and held in one step for the others.
    let alone = File::open(progress).ok();
    let _alone = alone.filter(|folder| folder.lock().is_ok());
    let earlier = leftover::find(progress)?;
    let dir = (1..)
        .map(|n| progress.join(format!("run-{}-{n}", std::process::id())))
        .find_map(|dir| match fs::create_dir(&dir) {
            Ok(()) => Some(Ok(dir)),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => None,
            Err(e) => Some(Err(io_error(&dir, "make the folder")(e))),
        })
        .expect("some number is free")?;
    let lock = File::open(&dir).ok().filter(|d| d.try_lock().is_ok());
    Ok((dir, lock, earlier))
}

/// Keeps other runs out of `out` while this lives, without storing a row.
pub struct Alone {
    dir: PathBuf,
    _lock: Option<File>,
}

impl Alone {
    /// Refuses while another run into `out` goes on.
    pub fn with(out: &Path) -> Result<Alone, WriteError> {
        let (dir, lock, _) = own_folder(&progress_dir(out))?;
        Ok(Alone { dir, _lock: lock })
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        // What is not empty holds what others left, and stays.
        let _ = fs::remove_dir(&self.dir);
        let _ = self.dir.parent().map(fs::remove_dir);
    }
}

impl RowStore {
    /// A folder for one run into `out`. The system lets go of it however the run ends, so what
    /// nobody holds is of runs that broke off, and is found here, too.
    ///
    /// Generator and assumptions are kept with the rows, which make results of them if the run does
    /// not get there itself.
    pub fn begin(
        out: &Path,
        generator: &str,
        assumptions: &BTreeMap<String, String>,
    ) -> Result<RowStore, WriteError> {
        let progress = progress_dir(out);
        let (dir, lock, earlier) = own_folder(&progress)?;
        let about = About { generator: generator.into(), assumptions: assumptions.clone() };
        let text = serde_json::to_string(&about).expect("texts always serialise");
        files::write_unsynced(&dir.join(ABOUT), text)?;
        let kind = Kind::Run { _lock: lock, progress, earlier };
        Ok(RowStore { dir, kind, held: Mutex::default(), failed: Mutex::default() })
    }

    /// A folder that several runs share, one after the other or at the same time.
    pub fn cache(dir: &Path) -> Result<RowStore, WriteError> {
        fs::create_dir_all(dir).map_err(io_error(dir, "make the folder"))?;
        // Also of one that was killed before it had marked the folder.
        files::remove_unfinished(dir);
        let marker = dir.join(CACHE_MARKER);
        // Looked at in this order: another run that has just begun the cache marks it before it puts
        // a row there.
        let is_new = is_empty(dir)?;
        match fs::read_to_string(&marker) {
            Ok(text) if text == CACHE_HEAD => {}
            Err(e) if is_new && e.kind() == io::ErrorKind::NotFound => {
                files::write(&marker, CACHE_HEAD)?;
            }
            _ => return Err(WriteError::ForeignCache(dir.into())),
        }
        let kind = Kind::Cache;
        Ok(RowStore { dir: dir.into(), kind, held: Mutex::default(), failed: Mutex::default() })
    }

    fn place(&self, key: &str, ending: &str) -> PathBuf {
        place(&self.dir, key, ending)
    }

    /// The row of a key that ended as it always would; not one that is an error.
    pub fn find(&self, key: &str) -> Option<Arc<Row>> {
        let held = |row: &Arc<Row>| row.run.status != Status::Error;
        if let Some(row) = self.held().rows.get(key).filter(|row| held(row)) {
            return Some(row.clone());
        }
        let place = self.place(key, ENDING);
        if let Kind::Run { earlier, .. } = &self.kind
            && !place.exists()
            && let Some(left) = earlier.iter().find_map(|e| e.row(key))
        {
            fs::create_dir_all(place.parent()?).ok()?;
            fs::rename(left, &place).ok()?;
        }
        let (row, bytes) = read(&place, key)?;
        (row.run.status != Status::Error).then(|| self.hold(key, row, bytes))
    }

    /// The row of a key, whatever it is: for the results of the run that stored or found it.
    pub fn get(&self, key: &str) -> Option<Arc<Row>> {
        if let Some(row) = self.held().rows.get(key) {
            return Some(row.clone());
        }
        let failed = || read(&self.place(key, FAILED), key).map(|(row, _)| Arc::new(row));
        self.find(key).or_else(failed)
    }

    /// Stores a finished row. `private` = only its owner may read the file. A row that could not be
    /// written is held in memory, so that nothing that was measured is lost to this run.
    pub fn put(&self, key: &str, row: Row, private: bool) -> Result<(), WriteError> {
        let failed = row.run.status == Status::Error;
        let place = self.place(key, if failed { FAILED } else { ENDING });
        let Row { run, trace, status, timing } = &row;
        let version = RESULTS_VERSION;
        let out = RowOut { version, key, run, trace, status, timing };
        let written = self.write(&place, &out, private);
        let bytes = fs::metadata(&place).map_or(0, |m| m.len() as usize);
        if failed && let Ok(mut all) = self.failed.lock() {
            all.push(place);
        }
        self.hold(key, row, if written.is_ok() { bytes } else { 0 });
        written
    }

    fn write(&self, place: &Path, row: &RowOut<'_>, private: bool) -> Result<(), WriteError> {
        let folder = place.parent().unwrap_or(&self.dir);
        fs::create_dir_all(folder).map_err(io_error(folder, "make the folder"))?;
        let content = |out: &mut dyn Write| sum::write(out, row);
        Ok(files::write_unsynced_via(&self.dir, place, content, private)?)
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn hold(&self, key: &str, row: Row, bytes: usize) -> Arc<Row> {
        let row = Arc::new(row);
        let mut held = self.held();
        if held.bytes + bytes <= HELD_BYTES {
            held.bytes += bytes;
            held.rows.insert(key.into(), row.clone());
        }
        row
    }

    /// Called when the rows are in results: those of a run go, and errors in any case. What earlier
    /// runs left and this one had no use for comes back.
    pub fn end(self) -> Result<Left, WriteError> {
        for path in self.failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
            let _ = fs::remove_file(path);
        }
        match self.kind {
            Kind::Cache => Ok(Left::default()),
            Kind::Run { progress, earlier, .. } => {
                fs::remove_dir_all(&self.dir).map_err(io_error(&self.dir, "remove it"))?;
                leftover::sort_out(&progress, earlier)
            }
        }
    }
}

fn place(dir: &Path, key: &str, ending: &str) -> PathBuf {
    dir.join(key.get(..2).unwrap_or("00")).join(format!("{key}{ending}"))
}

/// A row and the length of its file; `None` = there is none that can be believed.
fn read(path: &Path, key: &str) -> Option<(Row, usize)> {
    let file = fs::read(path).ok()?;
    let (json, true) = sum::checked(&file) else { return None };
    let found: RowIn = serde_json::from_slice(json).ok()?;
    let believed = found.version == RESULTS_VERSION && found.key == key;
    let RowIn { run, trace, status, timing, .. } = found;
    believed.then_some((Row { run, trace, status, timing }, file.len()))
}

/// The order of runs in results: scenario, strategy label, model, summariser, seed.
pub fn sort_runs(runs: &mut [RunRecord]) {
    runs.sort_by(|a, b| {
        let of_strategy = || natural::order(&a.strategy.label, &b.strategy.label);
        a.scenario.id.cmp(&b.scenario.id).then_with(of_strategy).then_with(|| key(a).cmp(&key(b)))
    });
}

fn key(r: &RunRecord) -> (&str, &str, &str, &str, Option<u64>) {
    (
        &r.scenario.id,
        &r.strategy.label,
        &r.model,
        r.summariser.as_deref().unwrap_or_default(),
        r.seed,
    )
}

#[cfg(test)]
#[path = "row_store_tests.rs"]
mod tests;
