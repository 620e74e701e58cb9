//! Rows of a run in progress, one file each, stored as they finish: what was measured before a crash
//! or on a full disk is found again by the next run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::record::{RESULTS_VERSION, Results, RunRecord};
use ctxbench_core::{files, natural};
use serde::{Deserialize, Serialize};

use crate::fmt;
use crate::json::{self, ReadError};
use crate::write::{WriteError, io_error};

const ENDING: &str = ".run.json";
/// What results need beside their rows.
const ABOUT: &str = "about.json";

#[derive(Serialize)]
struct PairOut<'a> {
    version: u32,
    run: &'a RunRecord,
}

#[derive(Deserialize)]
struct PairIn {
    run: RunRecord,
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

/// The folder of a run in progress, held as long as the run lasts.
pub struct Progress {
    dir: PathBuf,
    /// Shared by the runs into one folder. The system lets go of it however a run ends, so rows
    /// that nobody holds are those of a run that broke off.
    _held: Option<File>,
    stored: Mutex<BTreeSet<PathBuf>>,
}

impl Progress {
    /// Makes the folder. Generator and assumptions are kept with the rows, which make results of
    /// them if the run does not get there itself.
    pub fn begin(
        out: &Path,
        generator: &str,
        assumptions: &BTreeMap<String, String>,
    ) -> Result<Progress, WriteError> {
        let dir = progress_dir(out);
        fs::create_dir_all(&dir).map_err(io_error(&dir, "make the folder"))?;
        let held = File::open(&dir).ok().filter(|d| d.try_lock_shared().is_ok());
        let about = About { generator: generator.into(), assumptions: assumptions.clone() };
        let text = serde_json::to_string(&about).expect("texts always serialise");
        files::write_scratch(&dir.join(ABOUT), text)?;
        Ok(Progress { dir, _held: held, stored: Mutex::default() })
    }

    /// Stores a finished row.
    pub fn store(&self, run: &RunRecord) -> Result<(), WriteError> {
        let path = write_pair(&self.dir, run)?;
        self.stored.lock().unwrap_or_else(|e| e.into_inner()).insert(path);
        Ok(())
    }

    /// Removes the rows of this run, and the folder if nothing else is in it: called when they are
    /// in results.
    pub fn discard(self) -> Result<(), WriteError> {
        let stored = self.stored.into_inner().unwrap_or_else(|e| e.into_inner());
        discard(&self.dir, stored)
    }
}

/// What a run left that neither finished nor is still going on.
pub struct Interrupted {
    dir: PathBuf,
    /// Where it may be moved to, a name that is free.
    pub place: PathBuf,
}

impl Interrupted {
    /// Removes the rows: called when they are in results.
    pub fn discard(self) -> Result<(), WriteError> {
        let files = pair_files(&self.dir).map_err(unlisted(&self.dir))?;
        discard(&self.dir, files)
    }

    /// Moves the folder as it is to its new place.
    pub fn move_aside(&self) -> Result<(), WriteError> {
        fs::rename(&self.dir, &self.place).map_err(io_error(&self.dir, "move it aside"))
    }
}

/// The finished rows of a run that broke off, or why they cannot be read.
pub type Rows = Result<Results, ReadError>;

/// What a run into `out` left that broke off, if there is any, and its finished rows as results, in
/// which figures that compare rows are not filled in.
pub fn interrupted(out: &Path) -> Result<Option<(Interrupted, Rows)>, WriteError> {
    let dir = progress_dir(out);
    if pair_files(&dir).map_err(unlisted(&dir))?.is_empty() {
        return Ok(None);
    }
    // Held by a run that is going on at this moment.
    if let Ok(folder) = File::open(&dir)
        && matches!(folder.try_lock(), Err(fs::TryLockError::WouldBlock))
    {
        return Ok(None);
    }
    let about: About = fs::read_to_string(dir.join(ABOUT))
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let results = assemble(&dir, &about.generator, about.assumptions);
    let place = (1..)
        .map(|n| if n == 1 { ".interrupted".into() } else { format!(".interrupted-{n}") })
        .map(|ending| neighbour(out, &ending))
        .find(|place| fs::symlink_metadata(place).is_err())
        .expect("some number is free");
    Ok(Some((Interrupted { dir, place }, results)))
}

/// Stores one finished run; the file appears whole or not at all. Returns its path.
fn write_pair(dir_in_progress: &Path, run: &RunRecord) -> Result<PathBuf, WriteError> {
    json::check_finite(run)?;
    fs::create_dir_all(dir_in_progress).map_err(io_error(dir_in_progress, "make the folder"))?;
    let path = dir_in_progress.join(file_name(run));
    // In the form of results, so that records are compiled to one form only.
    let text = serde_json::to_string_pretty(&PairOut { version: RESULTS_VERSION, run })
        .expect("records always serialise");
    files::write_scratch(&path, text)?;
    Ok(path)
}

/// Reads every stored run, sorted by scenario, strategy label, model, summariser and seed. A folder
/// that does not exist holds none.
fn read_pairs(dir_in_progress: &Path) -> Result<Vec<RunRecord>, ReadError> {
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
fn assemble(
    dir_in_progress: &Path,
    generator: &str,
    assumptions: BTreeMap<String, String>,
) -> Result<Results, ReadError> {
    Ok(Results {
        version: RESULTS_VERSION,
        generator: generator.into(),
        assumptions,
        goals: Vec::new(),
        runs: read_pairs(dir_in_progress)?,
    })
}

fn discard(dir: &Path, rows: impl IntoIterator<Item = PathBuf>) -> Result<(), WriteError> {
    for path in rows {
        match fs::remove_file(&path) {
            // Two runs of the same rows went on beside each other.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            other => other.map_err(io_error(&path, "remove it"))?,
        }
    }
    if pair_files(dir).is_ok_and(|left| left.is_empty()) {
        let _ = fs::remove_file(dir.join(ABOUT));
        files::remove_unfinished(dir);
    }
    // Fails when people keep something there, which is theirs to clear.
    let _ = fs::remove_dir(dir);
    Ok(())
}

fn unlisted(dir: &Path) -> impl FnOnce(ReadError) -> WriteError + use<> {
    let dir = dir.to_path_buf();
    move |e| {
        let source = match e {
            ReadError::Io { source, .. } => source,
            other => io::Error::other(other.to_string()),
        };
        WriteError::Io { path: dir, action: "list it", source }
    }
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

/// Readable parts and a hash of the exact ones, because different labels may look alike as file
/// names.
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
        assert_eq!(
            assemble(&dir, &results.generator, results.assumptions.clone()).unwrap().runs,
            expected
        );
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
        let out = tmp.path().join("out");
        let dir = progress_dir(&out);
        let progress = Progress::begin(&out, "test", &BTreeMap::new()).unwrap();
        progress.store(&sample::run("s", "codex", 1)).unwrap();
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        progress.discard().unwrap();
        assert!(dir.join("notes.txt").exists() && read_pairs(&dir).unwrap().is_empty());
    }

    #[test]
    fn rows_are_interrupted_when_nobody_holds_them() {
        let tmp = tempfile::tempdir().unwrap();
        let out = tmp.path().join("out");
        let assumptions = BTreeMap::from([("seed".to_string(), "1".to_string())]);
        let progress = Progress::begin(&out, "ctxbench 9", &assumptions).unwrap();
        progress.store(&sample::run("s", "codex", 1)).unwrap();
        assert!(interrupted(&out).unwrap().is_none(), "the run is still going on");
        drop(progress);
        fs::create_dir(tmp.path().join("out.interrupted")).unwrap();
        let (left, results) = interrupted(&out).unwrap().unwrap();
        assert_eq!(left.place, tmp.path().join("out.interrupted-2"));
        let results = results.unwrap();
        assert_eq!((results.runs.len(), &*results.generator), (1, "ctxbench 9"));
        assert_eq!(results.assumptions, assumptions);
        left.discard().unwrap();
        assert!(!progress_dir(&out).exists());
    }
}
