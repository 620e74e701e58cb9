//! The results folder. New results are written to a folder inside it, and then each file takes the
//! place of the previous one. Only files that ctxbench wrote are replaced.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};

use ctxbench_util::files::{self, FileError};

use crate::error::{ReportError, unwritten};
use crate::formats;
use crate::plots::{self, Hues};
use crate::stored::{Artifact, Files, OutputFolder, StoredResults};
use crate::{json, page, sqlite};

/// Name of the file that marks a results folder and lists its files.
pub const MARKER: &str = ".ctxbench";
/// Files of a results folder that no other output may replace.
const RESERVED: [&str; 6] =
    [MARKER, json::RESULTS_FILE, sqlite::DATABASE_FILE, "index.html", "matrix.md", "timings.json"];
const MARKER_HEAD: &str = "ctxbench results folder 1";
/// Name of the file that marks results of an earlier run, while a new one is unfinished.
const UNFINISHED: &str = ".ctxbench-run.tmp";
/// Name of the default cache of rows, inside a results folder.
const CACHE: &str = ".rows";
/// Name and text of the file that marks a folder as a cache of rows.
pub(crate) const CACHE_MARKER: &str = ".ctxbench-cache";
pub(crate) const CACHE_TEXT: &str = "ctxbench cache 1\n";

/// Error for a path that cannot be written to, with the reason and the remedy.
pub(crate) fn refused(path: &Path, why: &str) -> ReportError {
    ReportError::Refused(format!("{} {why}", path.display()))
}

/// Fails if the folder exists, is not empty and was not created by ctxbench. Call it before a long
/// run.
pub fn check_out(dir: &Path) -> Result<(), ReportError> {
    let meta = match fs::metadata(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(dir).is_err() => {
            return Ok(());
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let why =
                "is a link to a folder that does not exist; make that or choose another --out";
            return Err(refused(dir, why));
        }
        other => other.map_err(unwritten(dir, "look at it"))?,
    };
    if !meta.is_dir() {
        return Err(refused(dir, "is not a folder; choose another --out"));
    }
    if manifest(dir).is_none() && !is_empty(dir)? {
        return Err(refused(dir, "was not made by ctxbench; choose another --out"));
    }
    files::check_output(&dir.join(MARKER), &[])?;
    Ok(())
}

/// Marks the results in a folder, if any, as those of an earlier run until new ones are published.
/// Call it when a run starts: otherwise results of before pass for those of a run that failed.
pub fn mark_unfinished(dir: &Path) -> Result<(), ReportError> {
    check_out(dir)?;
    if dir.join(json::RESULTS_FILE).exists() {
        files::write(&dir.join(UNFINISHED), "")?;
    }
    Ok(())
}

/// Fails if a run into the folder of these results started and has not finished. `path` is the
/// folder or its `results.json`.
pub fn check_finished(path: &Path) -> Result<(), ReportError> {
    let results = json::results_file(path);
    match results.with_file_name(UNFINISHED).exists() {
        false => Ok(()),
        true => Err(refused(
            &results,
            "has the results of an earlier run: the last run into this folder failed or is not \
             finished; run again",
        )),
    }
}

/// Returns whether a folder contains only unfinished files of ctxbench and the rows of a run
/// without results.
pub(crate) fn is_empty(dir: &Path) -> Result<bool, ReportError> {
    for entry in fs::read_dir(dir).map_err(unwritten(dir, "list it"))? {
        let entry = entry.map_err(unwritten(dir, "list it"))?;
        let is_unfinished = entry.file_name().to_str().is_some_and(files::is_unfinished);
        if !is_unfinished && !is_default_cache(&entry.path()) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub fn default_cache(out: &Path) -> PathBuf {
    out.join(CACHE)
}

/// Returns whether `path` is the default cache of the results folder it is in.
fn is_default_cache(path: &Path) -> bool {
    // Another run may be about to write the marker.
    path.file_name().is_some_and(|name| name == CACHE)
        && (is_cache(path) || is_empty(path).unwrap_or(false))
}

/// Returns whether a folder is marked as a cache of rows.
pub(crate) fn is_cache(dir: &Path) -> bool {
    fs::read_to_string(dir.join(CACHE_MARKER)).is_ok_and(|text| text == CACHE_TEXT)
}

/// Returns the files that ctxbench wrote into a folder. `None` without a marker.
fn manifest(dir: &Path) -> Option<BTreeSet<String>> {
    let text = fs::read_to_string(dir.join(MARKER)).ok()?;
    let mut lines = text.lines();
    (lines.next() == Some(MARKER_HEAD))
        .then(|| lines.map(str::to_string).chain([MARKER.to_string()]).collect())
}

/// Returns whether a run wrote the file `name`, a path inside the results folder `dir`.
pub fn is_listed(dir: &Path, name: &str) -> bool {
    manifest(dir).is_some_and(|listed| listed.contains(name))
}

/// Returns whether only the owner of a file can read it.
#[cfg(unix)]
pub fn is_private(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|m| m.permissions().mode() & 0o077 == 0)
}

/// Always `false`: the permissions of a file are not known on this system.
#[cfg(not(unix))]
pub fn is_private(_: &Path) -> bool {
    false
}

/// Returns whether a path is one that a run into `dir` writes.
pub fn is_of_results(dir: &Path, path: &Path) -> bool {
    let (Ok(dir), Ok(path)) = (files::real(dir), files::real(path)) else { return false };
    let Ok(below) = path.strip_prefix(&dir) else { return false };
    let name = below.to_string_lossy().replace('\\', "/");
    let listed = manifest(&dir).is_some_and(|listed| listed.contains(&name));
    let is_row = path.starts_with(default_cache(&dir));
    listed || is_row || name.starts_with("plots/") || RESERVED.contains(&name.as_str())
}

/// Writes some files of the results.
type Writer<'a> = dyn Fn(&mut OutputFolder) -> Result<(), ReportError> + Sync + 'a;

/// New results, not yet in place.
#[derive(Debug)]
pub struct NewResults {
    dir: PathBuf,
    temp: PathBuf,
}

impl NewResults {
    /// Creates the new folder. The caller removes it unless [`NewResults::publish`] is called.
    pub fn create(dir: &Path) -> Result<NewResults, ReportError> {
        check_out(dir)?;
        fs::create_dir_all(dir).map_err(unwritten(dir, "make the folder"))?;
        Ok(NewResults { dir: dir.into(), temp: files::temp_dir(dir)?.keep() })
    }

    pub fn path(&self) -> &Path {
        &self.temp
    }

    /// Writes `results.json`, `results.sqlite`, the CSV files, `plots/*.svg`, `index.html` with the
    /// features of the systems, and `more`. With `private` only the owner can read the files.
    pub fn fill(
        &self,
        stored: &StoredResults<'_>,
        hues: &Hues,
        matrix: &[Vec<String>],
        more: &[Artifact],
        private: bool,
    ) -> Result<(), ReportError> {
        let format =
            |name, files: &mut OutputFolder| formats::format(name)?.write(stored, hues, files);
        let writers: [&Writer<'_>; 6] = [
            &|files| format("json", files),
            &|files| format("csv", files),
            &|files| format("sqlite", files),
            &|files| page::write(stored, hues, matrix, files),
            &|files| plots::write(stored, hues, files),
            &|files| more.iter().try_for_each(|file| files.put(&file.file, &file.text)),
        ];
        let names = std::thread::scope(|scope| {
            let started = writers.map(|write| {
                scope.spawn(|| {
                    let mut files = OutputFolder::new(&self.temp, private);
                    write(&mut files).map(|()| files.names)
                })
            });
            let written = started.map(|writer| writer.join().unwrap_or_else(|e| resume_unwind(e)));
            written.into_iter().collect::<Result<Vec<_>, ReportError>>()
        })?;
        // All other files can be created again from this one.
        let results = self.temp.join(json::RESULTS_FILE);
        File::open(&results).and_then(|f| f.sync_all()).map_err(unwritten(&results, "write it"))?;
        Ok(mark(&self.temp, names.iter().flatten())?)
    }

    /// Moves the new files into place, and removes previous ones that have no successor. Files that
    /// ctxbench did not write are kept. Two runs do this one after the other, if the file system
    /// has locks.
    pub fn publish(self) -> Result<(), ReportError> {
        let NewResults { dir, temp } = &self;
        let folder = File::open(dir).ok();
        let _ = folder.as_ref().map(File::lock);
        let (former, new) = (manifest(dir).unwrap_or_default(), manifest(temp).unwrap_or_default());
        // An interrupted move leaves no file that the next run does not recognise.
        mark(dir, former.union(&new))?;
        for name in new.iter().filter(|name| *name != MARKER) {
            let target = dir.join(name);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(unwritten(parent, "make the folder"))?;
            }
            if !former.contains(name) && target.symlink_metadata().is_ok() {
                fs::rename(&target, former_name(&target))
                    .map_err(unwritten(&target, "keep a file that ctxbench did not write"))?;
            }
            fs::rename(temp.join(name), &target)
                .map_err(unwritten(&target, "move it into place"))?;
        }
        for name in former.difference(&new) {
            let _ = fs::remove_file(dir.join(name));
        }
        mark(dir, new.iter())?;
        let unfinished = dir.join(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(unwritten(&unfinished, "remove it")(e).into());
            }
            _ => {}
        }
        Ok(fs::remove_dir_all(temp).map_err(unwritten(temp, "remove it"))?)
    }
}

/// Marks a folder as one with these results.
fn mark<'a>(dir: &Path, names: impl Iterator<Item = &'a String>) -> Result<(), FileError> {
    let names = names.map(String::as_str).filter(|name| *name != MARKER);
    let list: String = [MARKER_HEAD].into_iter().chain(names).map(|n| format!("{n}\n")).collect();
    files::write(&dir.join(MARKER), list)
}

/// Returns a free name for a user's file with a name that ctxbench needs.
fn former_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (1..)
        .map(|n| if n == 1 { format!("{name}.former") } else { format!("{name}.former-{n}") })
        .map(|name| path.with_file_name(name))
        .find(|p| fs::symlink_metadata(p).is_err())
        .expect("some number is free")
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
