//! Finished runs, one file each, stored at once: what was measured before a crash is not lost.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ctxbench_core::record::{RESULTS_VERSION, Results, RunRecord};
use serde::{Deserialize, Serialize};

use crate::fmt;
use crate::json::{self, ReadError};
use crate::write::{WriteError, io_error};

const ENDING: &str = ".run.json";

#[derive(Serialize)]
struct PairOut<'a> {
    version: u32,
    run: &'a RunRecord,
}

#[derive(Deserialize)]
struct PairIn {
    run: RunRecord,
}

/// The folder for runs in progress: a neighbour of the output folder.
pub fn progress_dir(out: &Path) -> PathBuf {
    let name = out.file_name().map_or("ctxbench-out".into(), |n| n.to_string_lossy().into_owned());
    out.with_file_name(format!("{name}.partial"))
}

/// Stores one finished run; the file appears whole or not at all. Returns its path.
pub fn write_pair(dir_in_progress: &Path, run: &RunRecord) -> Result<PathBuf, WriteError> {
    json::check_finite(run)?;
    fs::create_dir_all(dir_in_progress).map_err(io_error(dir_in_progress, "make the folder"))?;
    let path = dir_in_progress.join(file_name(run));
    let text = serde_json::to_string(&PairOut { version: RESULTS_VERSION, run }).expect("records always serialise");
    let half = path.with_extension(format!("{}.half", std::process::id()));
    fs::write(&half, text).map_err(io_error(&half, "write it"))?;
    fs::rename(&half, &path).map_err(io_error(&path, "move it into place"))?;
    Ok(path)
}

/// Reads every stored run, sorted by scenario, strategy label, model, summariser and seed. A folder that does not exist holds none.
pub fn read_pairs(dir_in_progress: &Path) -> Result<Vec<RunRecord>, ReadError> {
    let mut runs = Vec::new();
    for path in pair_files(dir_in_progress)? {
        let text = json::read_text(&path)?;
        let pair: PairIn = json::versioned(&text, &path, "a stored run", RESULTS_VERSION)?;
        runs.push(pair.run);
    }
    sort_runs(&mut runs);
    Ok(runs)
}

/// Results from the stored runs.
pub fn assemble(dir_in_progress: &Path, generator: &str, assumptions: BTreeMap<String, String>) -> Result<Results, ReadError> {
    Ok(Results { version: RESULTS_VERSION, generator: generator.into(), assumptions, runs: read_pairs(dir_in_progress)? })
}

/// Removes the stored runs, and their folder if nothing else is in it.
pub fn discard_pairs(dir_in_progress: &Path) -> Result<(), WriteError> {
    let files = pair_files(dir_in_progress).map_err(|e| match e {
        ReadError::Io { path, source } => WriteError::Io { path, action: "list it", source },
        other => WriteError::Io { path: dir_in_progress.into(), action: "list it", source: io::Error::other(other.to_string()) },
    })?;
    for path in files {
        fs::remove_file(&path).map_err(io_error(&path, "remove it"))?;
    }
    // Fails when people keep something there, which is theirs to clear.
    let _ = fs::remove_dir(dir_in_progress);
    Ok(())
}

/// The order of runs in results: scenario, strategy label, model, summariser, seed.
pub fn sort_runs(runs: &mut [RunRecord]) {
    runs.sort_by(|a, b| key(a).cmp(&key(b)));
}

fn key(r: &RunRecord) -> (&str, &str, &str, &str, Option<u64>) {
    (&r.scenario.id, &r.strategy.label, &r.model, r.summariser.as_deref().unwrap_or_default(), r.seed)
}

fn pair_files(dir: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let failed = |source: io::Error| ReadError::Io { path: dir.into(), source };
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.file_name().is_some_and(|n| n.to_string_lossy().ends_with(ENDING)) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Readable parts and a hash of the exact ones, because different labels may look alike as file names.
fn file_name(run: &RunRecord) -> String {
    let (scenario, strategy, model, summariser, seed) = key(run);
    let seed = seed.map(|s| s.to_string()).unwrap_or_default();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in [scenario, strategy, model, summariser, &seed] {
        for b in part.bytes().chain([0]) {
            hash = (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    let short = |s: &str| fmt::slug(s).chars().take(40).collect::<String>();
    format!("{}--{}--{hash:016x}{ENDING}", short(scenario), short(strategy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn runs_come_back_sorted_and_equal() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = progress_dir(&tmp.path().join("out"));
        assert_eq!(read_pairs(&dir).unwrap(), vec![]);
        let results = sample::results();
        for run in results.runs.iter().rev() {
            write_pair(&dir, run).unwrap();
        }
        let mut expected = results.runs.clone();
        sort_runs(&mut expected);
        assert_eq!(read_pairs(&dir).unwrap(), expected);
        assert_eq!(assemble(&dir, &results.generator, results.assumptions.clone()).unwrap().runs, expected);
    }

    #[test]
    fn labels_that_look_alike_get_files_of_their_own() {
        let tmp = tempfile::tempdir().unwrap();
        for label in ["a:b=1", "a-b=1", "a-b-1"] {
            write_pair(tmp.path(), &sample::run("s", label, 1)).unwrap();
        }
        write_pair(tmp.path(), &sample::run("s", "a:b=1", 2)).unwrap();
        assert_eq!(read_pairs(tmp.path()).unwrap().len(), 3);
    }

    #[test]
    fn a_damaged_file_is_named_and_half_written_ones_are_skipped() {
        let tmp = tempfile::tempdir().unwrap();
        let path = write_pair(tmp.path(), &sample::run("s", "codex", 1)).unwrap();
        fs::write(tmp.path().join("s--x.run.77.half"), "{").unwrap();
        assert_eq!(read_pairs(tmp.path()).unwrap().len(), 1);
        fs::write(&path, "{\"version\":1,").unwrap();
        let error = read_pairs(tmp.path()).unwrap_err().to_string();
        assert!(error.contains("s--codex--") && error.contains("line 1"), "{error}");
    }

    #[test]
    fn discarding_leaves_what_is_not_ours() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = tmp.path().join("out.partial");
        write_pair(&dir, &sample::run("s", "codex", 1)).unwrap();
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        discard_pairs(&dir).unwrap();
        assert!(dir.join("notes.txt").exists() && read_pairs(&dir).unwrap().is_empty());
    }
}
