//! What a path stands for: a file, or the files of a folder and of those below it, read one session
//! at a time.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ctxbench_core::files::{self, FileError};

use crate::error::LoadError;
use crate::formats::{self, Source};
use crate::load::{SCENARIO_FILE, Take, load_with, named_session, nothing_in};

/// The files of a path that may hold sessions. Of a folder and the folders below it: what ends in
/// `.toml`, `.jsonl`, `.json`, the same compressed, `.zip`, and others that a recording format
/// knows. Hidden folders are left alone; of a folder with a `scenario.toml` only this counts, and a
/// folder that is a recording is one. Files that belong to another, such as those of subagents, are
/// read with that.
#[derive(Debug, Default)]
pub struct Corpus {
    files: Vec<PathBuf>,
    /// Folders that cannot be read.
    unread: Vec<(PathBuf, LoadError)>,
}

impl Corpus {
    /// Looks at what there is; no session is read yet.
    pub fn at(path: &Path) -> Corpus {
        if !path.is_dir() || formats::detect(&Source::at(path)).is_some() {
            return Corpus { files: vec![path.to_path_buf()], unread: Vec::new() };
        }
        let mut unread = Vec::new();
        let mut files = files_below(path, &mut unread);
        let parts: HashSet<PathBuf> = files.iter().flat_map(|file| parts(file)).collect();
        files.retain(|file| !parts.contains(file));
        if files.is_empty() && unread.is_empty() {
            unread.push((path.to_path_buf(), nothing_in(path)));
        }
        Corpus { files, unread }
    }

    /// By their paths.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// What of a folder could not be looked at, and why.
    pub fn into_unread(self) -> Vec<(PathBuf, LoadError)> {
        self.unread
    }
}

/// Hands over the sessions of a file, one at a time, and why there is none where one should be.
pub fn read(file: &Path, take: &mut Take<'_>) -> ControlFlow<()> {
    let mut ended = ControlFlow::Continue(());
    let read = load_with(file, 0, &mut |place, one| {
        ended = take(place, one);
        ended
    });
    match read {
        Err(e) if ended.is_continue() => take(file, Err(e)),
        _ => ended,
    }
}

/// Files beside one that belong to it.
fn parts(file: &Path) -> Vec<PathBuf> {
    let source = Source::at(file);
    formats::detect(&source).map(|format| (format.parts)(&source)).unwrap_or_default()
}

/// Whether a file may hold sessions: its name says so, or a format knows it, or it is compressed
/// and damaged, of which somebody wants to hear.
pub(crate) fn may_hold_sessions(name: &Path, source: &Source<'_>) -> bool {
    let knows = || match source.head() {
        Ok(head) => formats::detect_head(&head).is_some(),
        Err(_) => {
            let name = name.file_name().map(|n| n.to_string_lossy()).unwrap_or_default();
            formats::unpacked(&name) != name
        }
    };
    named_session(name) || knows()
}

/// The files of a folder and of those below it that may hold a session, by their paths.
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
    // A pipe would keep whoever looks into it waiting.
    files.retain(|file| {
        let special = std::fs::metadata(file).is_ok_and(|m| !m.is_file());
        let looks = || file.is_file() && may_hold_sessions(file, &Source::at(file));
        !special && (named_session(file) || looks())
    });
    files.extend(whole);
    files.sort();
    files
}
