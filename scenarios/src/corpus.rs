//! Session files of a path: a file, or the files of a folder and its subfolders, read one session
//! at a time.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ctxbench_util::files::{self, FileError};

use crate::error::LoadError;
use crate::formats::{self, Source};
use crate::load::{
    SCENARIO_FILE, Take, is_scenario, load_source, load_with, named_session, nothing_in,
};

/// Files of a path that may contain sessions. In a folder and its subfolders, these are files with
/// the extension `.toml`, `.jsonl`, `.json` (compressed or not) or `.zip`, and files that a
/// recording format recognises. Hidden folders are skipped. A folder with a `scenario.toml` is
/// represented by that file, and a folder that is a recording counts as one file. Files that belong
/// to another file, such as those of subagents, are read together with it.
#[derive(Debug, Default)]
pub struct Corpus {
    files: Vec<PathBuf>,
    /// Files that belong to another file.
    parts: HashSet<PathBuf>,
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
        let parts = files.iter().flat_map(|file| parts(file)).map(absolute).collect();
        Corpus { files, parts, unread: Vec::new() }
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

    /// Returns the files, sorted by path.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the unreadable parts of a folder, each with the reason.
    pub fn into_unread(self) -> Vec<(PathBuf, LoadError)> {
        self.unread
    }
}

/// Passes the sessions of a file to `take` one at a time, and an error for each session that cannot
/// be read. Does not search for facts; see [`Scenario::find_facts`](crate::Scenario::find_facts).
pub fn read(file: &Path, take: &mut Take<'_>) -> ControlFlow<()> {
    load_with(file, &[], take)
}

/// Reads a source without companion files, such as standard input. Messages use `place` as its
/// name.
pub fn read_source(source: &Source<'_>, place: &Path, take: &mut Take<'_>) -> ControlFlow<()> {
    load_source(source, place, take)
}

/// Makes a path absolute, so that two paths of the same file are equal.
fn absolute(path: impl AsRef<Path>) -> PathBuf {
    std::path::absolute(&path).unwrap_or_else(|_| path.as_ref().to_path_buf())
}

/// Returns the companion files of a file.
fn parts(file: &Path) -> Vec<PathBuf> {
    let source = Source::at(file);
    formats::detect(&source).map(|format| (format.parts)(&source)).unwrap_or_default()
}

/// Returns whether a file may contain sessions, judged by its name or its format. Also true for
/// compressed files that cannot be read, so that the error is reported. Most TOML files are not
/// scenarios.
pub(crate) fn may_hold_sessions(name: &Path, source: &Source<'_>) -> bool {
    let file = name.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
    let toml = formats::unpacked(&file).to_lowercase().ends_with(".toml");
    match source.head() {
        Ok(head) if toml => is_scenario(&head.text),
        // A tar archive is not read, but reported.
        Ok(head) if head.is_tar() => true,
        Ok(head) => named_session(name) || formats::detect_head(&head).is_some(),
        Err(_) => {
            let log = file.to_lowercase().ends_with(".eval");
            named_session(name) || log || formats::unpacked(&file) != file
        }
    }
}

/// Returns the files below a folder that may contain a session, sorted by path.
fn files_below(folder: &Path, skipped: &mut Vec<(PathBuf, LoadError)>) -> Vec<PathBuf> {
    let mut whole = Vec::new();
    let enter = |below: &Path| {
        if below.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.')) {
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
