//! Finished rows on disk, one file per row. The file name is a hash of all inputs of the row. A row
//! in the cache is not computed again.
//!
//! Every file is written to a temporary name and renamed, so several runs can share a cache without
//! a lock, also on network file systems. A file is used only if it contains its own key and a valid
//! checksum; a torn or edited file is computed again.

mod checksum;

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::record::{RESULTS_VERSION, RunRecord, Status};
use ctxbench_util::{files, natural};
use serde::{Deserialize, Serialize};

use crate::error::{ReportError, unwritten};
use crate::write::{CACHE_MARKER, CACHE_TEXT, is_cache, is_empty, refused};

const SUFFIX: &str = ".run.json";
/// Maximum size of the rows kept in memory, bytes, measured by their files. Other rows are read
/// again when needed.
const MEMORY_BYTES: usize = 64 << 20;
/// One strategy on one session with one model.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// Figures of this row alone, without savings over other rows.
    pub run: RunRecord,
    /// One JSON line per request, if a trace was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<String>,
    /// Wall-clock time of the computation; not part of results.
    pub timing: serde_json::Value,
}

/// Rows by their keys. A key is a hash in hexadecimal.
pub struct RowCache {
    dir: PathBuf,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    rows: HashMap<String, Arc<Row>>,
    bytes: usize,
}

impl RowCache {
    /// Opens or creates a cache. A folder with other content is an error.
    pub fn open(dir: &Path) -> Result<RowCache, ReportError> {
        fs::create_dir_all(dir).map_err(unwritten(dir, "make the folder"))?;
        if !is_cache(dir) {
            // Another run may have written the marker in the meantime.
            if !is_empty(dir)? && !is_cache(dir) {
                let why =
                    "is not a ctxbench cache (and not empty); name another folder with --cache";
                return Err(refused(dir, why));
            }
            files::write(&dir.join(CACHE_MARKER), CACHE_TEXT)?;
        }
        Ok(RowCache { dir: dir.into(), memory: Mutex::default() })
    }

    fn path(&self, key: &str) -> PathBuf {
        let folder = key.get(..2).unwrap_or("00");
        self.dir.join(folder).join(format!("{key}{SUFFIX}"))
    }

    /// Returns the row of a key, unless it ended with an error: errors are computed again.
    pub fn find(&self, key: &str) -> Option<Arc<Row>> {
        let row = self.memory().rows.get(key).cloned();
        let row = row.or_else(|| {
            let (row, bytes) = read(&self.path(key), key)?;
            Some(self.remember(key, row, bytes))
        });
        row.filter(|row| row.run.status != Status::Error)
    }

    /// Returns the row of a key that this run has stored or found, errors included.
    pub fn get(&self, key: &str) -> Option<Arc<Row>> {
        let row = self.memory().rows.get(key).cloned();
        row.or_else(|| self.find(key))
    }

    /// Stores a finished row. With `private` only its owner can read the file. Errors are kept in
    /// memory only, and so is a row that cannot be written.
    pub fn store(&self, key: &str, row: Row, private: bool) -> Result<(), ReportError> {
        let is_error = row.run.status == Status::Error;
        let written = if is_error { Ok(()) } else { self.write(key, &row, private) };
        let bytes = match (&written, is_error) {
            (Ok(()), false) => fs::metadata(self.path(key)).map_or(0, |m| m.len() as usize),
            _ => 0,
        };
        self.remember(key, row, bytes);
        written
    }

    fn write(&self, key: &str, row: &Row, private: bool) -> Result<(), ReportError> {
        let path = self.path(key);
        let folder = path.parent().unwrap_or(&self.dir);
        fs::create_dir_all(folder).map_err(unwritten(folder, "make the folder"))?;
        let content = |out: &mut dyn Write| checksum::write(out, &(RESULTS_VERSION, key, row));
        Ok(files::write_unsynced(&path, private, content)?)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a row in memory while there is room. `bytes` is 0 for a row that is not on disk.
    fn remember(&self, key: &str, row: Row, bytes: usize) -> Arc<Row> {
        let row = Arc::new(row);
        let mut memory = self.memory();
        if memory.bytes + bytes <= MEMORY_BYTES || bytes == 0 {
            memory.bytes += bytes;
            memory.rows.insert(key.into(), row.clone());
        }
        row
    }
}

/// Reads a row and the length of its file. Returns `None` if the file is missing or invalid.
fn read(path: &Path, key: &str) -> Option<(Row, usize)> {
    let file = fs::read(path).ok()?;
    let (version, own, row): (u32, String, Row) =
        serde_json::from_slice(checksum::verify(&file)?).ok()?;
    (version == RESULTS_VERSION && own == key).then_some((row, file.len()))
}

/// Sorts runs as in results: scenario, strategy label, model, summariser, seed.
pub fn sort_runs(runs: &mut [RunRecord]) {
    runs.sort_by(|a, b| {
        let labels = || natural::order(&a.strategy.label, &b.strategy.label);
        let others = || (&a.model, &a.summariser, a.seed).cmp(&(&b.model, &b.summariser, b.seed));
        a.scenario.id.cmp(&b.scenario.id).then_with(labels).then_with(others)
    });
}

#[cfg(test)]
#[path = "row_cache_tests.rs"]
mod tests;
