//! Arguments of the command line: a built-in name, or the session files of a path, which are a file or
//! the files of a folder and its subfolders.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use ctxbench_util::files::{self, FileError};

use crate::builtin;
use crate::error::LoadError;
use crate::formats::{self, SearchedFolders, Source};
use crate::load::{self, SCENARIO_FILE, Take, may_hold_sessions, named_session, nothing_in};
use crate::scenario::Scenario;

pub use crate::load::read_source;

/// Name of all built-in scenarios together.
pub const ALL: &str = "all";

/// Returns whether a name is a path and not a built-in scenario.
pub fn is_path(name: &str) -> bool {
    let path = Path::new(name);
    path.exists() || name.contains(['/', '\\']) || named_session(path)
}

/// Scenarios of a path or a name.
#[derive(Debug, Default)]
pub struct Found {
    /// Scenarios in the order of their paths.
    pub scenarios: Vec<Scenario>,
    /// Files of a folder without a session, each with its error.
    pub skipped: Vec<(PathBuf, LoadError)>,
}

/// Loads the scenarios of `name`: a path, the id of a built-in scenario, or `all`.
pub fn load(name: &str) -> Result<Found, LoadError> {
    let path = Path::new(name);
    if is_path(name) {
        return load_path(path);
    }
    let scenarios = if name == ALL { builtin::all()? } else { vec![builtin::by_id(name)?] };
    Ok(Found { scenarios, ..Found::default() })
}

/// Loads the scenarios in a session file, scenario file or recording, or in a folder with its
/// subfolders or an archive; see [`Corpus`]. Files without a session are skipped, unless there is
/// no other. Sessions without facts get those of [`crate::autofacts`].
pub fn load_path(path: &Path) -> Result<Found, LoadError> {
    let mut found = Found::default();
    let mut loaded: Vec<(PathBuf, Scenario)> = Vec::new();
    let corpus = Corpus::at(path);
    for file in corpus.files() {
        let _ = corpus.read(file, &mut |place, one| {
            match one {
                Ok(mut scenario) => {
                    scenario.find_facts();
                    loaded.push((place.to_path_buf(), scenario));
                }
                Err(e) => found.skipped.push((place.to_path_buf(), e)),
            }
            ControlFlow::Continue(())
        });
    }
    found.skipped.extend(corpus.into_unread());
    if loaded.is_empty() {
        return Err(found.skipped.into_iter().next().map_or_else(|| nothing_in(path), |(_, e)| e));
    }
    name_apart(path, &mut loaded);
    found.scenarios = loaded.into_iter().map(|(_, scenario)| scenario).collect();
    Ok(found)
}

/// Makes ids unique: sessions with the same id get their path below `path` as a prefix, and
/// sessions of the same file a number.
pub fn name_apart(path: &Path, loaded: &mut [(PathBuf, Scenario)]) {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    for by_path in [true, false] {
        let mut names: HashMap<String, (usize, usize)> = HashMap::new();
        loaded.iter().for_each(|(_, s)| names.entry(s.id.clone()).or_default().0 += 1);
        for (file, scenario) in loaded.iter_mut() {
            let Some((_, before)) = names.get_mut(&scenario.id).filter(|(all, _)| *all > 1) else {
                continue;
            };
            *before += 1;
            let id = if by_path {
                let below = file.strip_prefix(folder).unwrap_or(file).with_extension("");
                let parts: Vec<_> = below.iter().map(|p| p.to_string_lossy()).collect();
                let path = parts.join("-");
                let same = path.ends_with(&scenario.id);
                if same { path } else { format!("{path}-{}", scenario.id) }
            } else {
                format!("{}-{before}", scenario.id)
            };
            scenario.id.clone_from(&id);
            scenario.session.header.id = id;
        }
    }
}

/// Files of a path that may contain sessions. In a folder and its subfolders, these are files with
/// the extension `.toml`, `.jsonl`, `.json` (compressed or not) or `.zip`, and files that a
/// recording format recognises. Hidden folders, and links to other folders, are skipped. A folder with a `scenario.toml` is
/// represented by that file, and a folder that is a recording counts as one file. Files that belong
/// to another file, such as those of subagents, are read together with it.
#[derive(Debug, Default)]
pub struct Corpus {
    files: Vec<PathBuf>,
    parts: HashSet<PathBuf>,
    searched: SearchedFolders,
    /// Folders that cannot be read.
    unread: Vec<(PathBuf, LoadError)>,
}

impl Corpus {
    /// Lists the files of a path without reading a session.
    pub fn at(path: &Path) -> Corpus {
        if !path.is_dir() || formats::detect(&Source::at(path)).is_some() {
            return Corpus::from_files(vec![path.to_path_buf()]);
        }
        let mut unread = Vec::new();
        let files = files_below(path, &mut unread);
        let mut corpus = Corpus { unread, ..Corpus::from_files(files) };
        Corpus::take_each_file_once([&mut corpus]);
        if corpus.files.is_empty() && corpus.unread.is_empty() {
            corpus.unread.push((path.to_path_buf(), nothing_in(path)));
        }
        corpus
    }

    fn from_files(files: Vec<PathBuf>) -> Corpus {
        let searched = SearchedFolders::default();
        let parts = |file: &PathBuf| formats::parts(&Source::at(file).within(&searched));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let share = files.len().div_ceil(cores).max(1);
        let parts = std::thread::scope(|scope| {
            let chunks = files.chunks(share);
            let find = |files: &'_ [PathBuf]| files.iter().flat_map(parts).map(absolute).collect();
            let found: Vec<_> = chunks.map(|files| scope.spawn(move || find(files))).collect();
            let found = found.into_iter().map(|t| t.join().unwrap_or_else(|e| resume_unwind(e)));
            found.collect::<Vec<Vec<PathBuf>>>().concat().into_iter().collect()
        });
        Corpus { files, parts, searched, unread: Vec::new() }
    }

    /// Drops files that belong to another file of any corpus, and duplicates.
    pub fn take_each_file_once<'a>(all: impl IntoIterator<Item = &'a mut Corpus>) {
        let mut all: Vec<&mut Corpus> = all.into_iter().collect();
        let parts: HashSet<PathBuf> = all.iter().flat_map(|c| c.parts.iter().cloned()).collect();
        let mut met = HashSet::new();
        for corpus in &mut all {
            corpus.files.retain(|file| {
                let file = absolute(file);
                !parts.contains(&file) && met.insert(file)
            });
        }
    }

    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Passes the sessions of a file to `take` one at a time, and an error for each session that
    /// cannot be read. Does not search for facts; see [`Scenario::find_facts`]. Members of an
    /// archive are located below it: `FILE.zip/MEMBER`.
    pub fn read(&self, file: &Path, take: &mut Take<'_>) -> ControlFlow<()> {
        load::read(file, &self.searched, take)
    }

    /// Returns the unreadable parts of a folder, each with the reason.
    pub fn into_unread(self) -> Vec<(PathBuf, LoadError)> {
        self.unread
    }
}

/// Makes a path absolute, so that two paths of the same file are equal.
fn absolute(path: impl AsRef<Path>) -> PathBuf {
    std::path::absolute(&path).unwrap_or_else(|_| path.as_ref().to_path_buf())
}

/// Returns the files below a folder that may contain a session, sorted by path.
fn files_below(folder: &Path, skipped: &mut Vec<(PathBuf, LoadError)>) -> Vec<PathBuf> {
    let (mut whole, mut out) = (Vec::new(), Vec::new());
    let root = folder.canonicalize().unwrap_or_default();
    let enter = |below: &Path| {
        if below.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.')) {
            return false;
        }
        if let Some(e) = files::link_out(&root, below) {
            out.push((below.to_path_buf(), e.into()));
            return false;
        }
        let scenario = below.join(SCENARIO_FILE);
        if scenario.is_file() {
            whole.push(scenario);
            return false;
        }
        let recording = formats::detect(&Source::at(below)).is_some();
        if recording {
            whole.push(below.to_path_buf());
        }
        !recording
    };
    let unread = |e: FileError| skipped.push((folder.to_path_buf(), e.into()));
    let mut files = files::walk_into(folder, enter, unread);
    skipped.extend(out);
    // Opening a named pipe would block.
    files.retain(|file| {
        match std::fs::metadata(file) {
            Ok(found) => found.is_file() && may_hold_sessions(file, &Source::at(file)),
            // A link without a target.
            Err(_) => named_session(file),
        }
    });
    files.extend(whole);
    files.sort();
    files
}
