//! The results folder. It is written under a temporary name and then exchanged with the previous
//! results. Only a folder that ctxbench created is replaced.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ctxbench_util::files::{self, FileError};

use crate::formats::{self, Artifact, ReportError};
use crate::plots::{self, Hues};
use crate::row_cache::{default_cache, is_default_cache, move_default_cache};
use crate::stored::{Files, OutputFolder, StoredResults};
use crate::{json, page, sqlite};

/// Name of the file that marks a results folder and lists its files.
pub const MARKER: &str = ".ctxbench";
/// Files of a results folder that no other output may replace.
const RESERVED: [&str; 6] =
    [MARKER, json::RESULTS_FILE, sqlite::DATABASE_FILE, "index.html", "matrix.md", "timings.json"];
const MARKER_HEAD: &str = "ctxbench results folder 1";
/// Maximum number of attempts to exchange the folder while other runs do this, too.
const ATTEMPTS: u32 = 20;

/// Error while writing results.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A path that cannot be written to, with the reason and the remedy.
    #[error("{0} {1}")]
    Refused(PathBuf, &'static str),
    #[error(
        "{path}: could not {action} ({source}); check that the folder can be written to and has \
         space"
    )]
    Io { path: PathBuf, action: &'static str, source: io::Error },
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    File(#[from] FileError),
}

pub(crate) fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_path_buf();
    move |source| WriteError::Io { path, action, source }
}

/// Fails if the folder exists, is not empty and was not created by ctxbench. Call it before a long
/// run.
pub fn check_out(dir: &Path) -> Result<(), WriteError> {
    let refused = |why| Err(WriteError::Refused(dir.into(), why));
    let meta = match fs::metadata(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(dir).is_err() => {
            return Ok(());
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return refused(
                "is a link to a folder that does not exist; make that or choose another --out",
            );
        }
        other => other.map_err(io_error(dir, "look at it"))?,
    };
    if !meta.is_dir() {
        return refused("is not a folder; choose another --out");
    }
    if manifest(dir).is_none() && !is_empty(dir)? {
        return refused("was not made by ctxbench; choose another --out");
    }
    // After the exchange, a shell in this folder would be in the previous one.
    let current = std::env::current_dir().and_then(|current| current.canonicalize());
    if current.is_ok_and(|current| dir.canonicalize().is_ok_and(|dir| current.starts_with(dir))) {
        return refused(
            "contains the current folder, which results would replace; choose another --out",
        );
    }
    // Other files in the folder can be moved only if it is writable.
    files::check_output(&dir.join(MARKER), &[])?;
    Ok(())
}

/// Returns whether a folder contains only unfinished files of ctxbench and the rows of a run
/// without results.
pub(crate) fn is_empty(dir: &Path) -> Result<bool, WriteError> {
    for entry in fs::read_dir(dir).map_err(io_error(dir, "list it"))? {
        let entry = entry.map_err(io_error(dir, "list it"))?;
        let is_unfinished = entry.file_name().to_str().is_some_and(files::is_unfinished);
        if !is_unfinished && !is_default_cache(&entry.path()) {
            return Ok(false);
        }
    }
    Ok(true)
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

/// New results next to the folder that they will replace. A reader sees either the old results or
/// the new ones, never a mixture. Files in the folder that ctxbench did not write are kept.
#[derive(Debug)]
pub struct NewResults {
    dir: PathBuf,
    temp: PathBuf,
}

impl NewResults {
    /// Creates the new folder. The caller removes it unless [`NewResults::publish`] is called.
    pub fn create(dir: &Path) -> Result<NewResults, WriteError> {
        check_out(dir)?;
        // Resolve a link, so that its target is exchanged.
        let dir = if dir.exists() {
            dir.canonicalize().map_err(io_error(dir, "resolve it"))?
        } else {
            dir.to_path_buf()
        };
        // As in `/`.
        if dir.file_name().is_none() {
            let why = "cannot be an output folder; choose another --out";
            return Err(WriteError::Refused(dir, why));
        }
        let parent = parent_of(&dir);
        fs::create_dir_all(parent).map_err(io_error(parent, "make the folder"))?;
        let temp = sibling(&dir)?;
        Ok(NewResults { dir, temp })
    }

    /// Returns the path of the new folder.
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
    ) -> Result<(), WriteError> {
        let mut files = OutputFolder::new(&self.temp, private);
        for name in ["json", "csv", "sqlite"] {
            formats::format(name)?.write(stored, hues, &mut files)?;
        }
        page::write(stored, hues, matrix, &mut files)?;
        plots::write(stored, hues, &mut files)?;
        more.iter().try_for_each(|file| files.put(&file.file, &file.text))?;
        let list = [MARKER_HEAD].into_iter().chain(files.names.iter().map(String::as_str));
        let list: String = list.map(|line| format!("{line}\n")).collect();
        // All other files can be created again from this one.
        let results = self.temp.join(json::RESULTS_FILE);
        File::open(&results).and_then(|f| f.sync_all()).map_err(io_error(&results, "write it"))?;
        let marker = self.temp.join(MARKER);
        fs::write(&marker, list).map_err(io_error(&marker, "write it"))
    }

    /// Replaces the previous folder with the new one, in one step if the system can exchange two
    /// folders. On other systems, an interruption between two renames leaves the previous results
    /// in a sibling `.NAME.tmp-…`. After an error the previous results are still in place.
    pub fn publish(self) -> Result<(), WriteError> {
        let NewResults { dir, temp } = &self;
        let mut attempt = 1;
        let old = loop {
            // The folder may have changed while the reports were written.
            let replaced = check_out(dir).and_then(|()| {
                replace(temp, dir).map_err(io_error(dir, "move the new folder into place"))
            });
            match replaced {
                Ok(old) => break old,
                // Another run was faster, so try again.
                Err(_) if attempt < ATTEMPTS && temp.exists() => attempt += 1,
                Err(e) => {
                    let _ = fs::remove_dir_all(temp);
                    return Err(e);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        };
        let Some(old) = old else { return Ok(()) };
        let listed = manifest(&old).unwrap_or_default();
        move_default_cache(&old, dir).map_err(io_error(&old, "move the rows"))?;
        for _ in 0..ATTEMPTS {
            keep_others(&old, dir, "", &listed)?;
            // This fails if another run has moved a file here in the meantime.
            if remove_listed(&old, &listed).is_ok() {
                return Ok(());
            }
        }
        let left = io::Error::new(io::ErrorKind::DirectoryNotEmpty, "it contains other files");
        Err(io_error(&old, "remove the former results")(left))
    }
}

/// Moves `new` to `dir` and returns the path of the folder that was there.
fn replace(new: &Path, dir: &Path) -> io::Result<Option<PathBuf>> {
    if !dir.exists() {
        return fs::rename(new, dir).map(|()| None);
    }
    if exchange(new, dir).is_ok() {
        return Ok(Some(new.into()));
    }
    let old = sibling(dir).map_err(io::Error::other)?;
    fs::rename(dir, &old)?;
    match fs::rename(new, dir) {
        Ok(()) => Ok(Some(old)),
        Err(e) => {
            let _ = fs::rename(&old, dir);
            Err(e)
        }
    }
}

/// Exchanges two folders in one step.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Creates an empty folder next to `dir`.
fn sibling(dir: &Path) -> Result<PathBuf, WriteError> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let mut builder = tempfile::Builder::new();
    let prefix = format!(".{name}.tmp-");
    builder.prefix(&prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    let folder =
        builder.tempdir_in(parent_of(dir)).map_err(io_error(dir, "make a folder next to it"))?;
    Ok(folder.keep())
}

fn parent_of(dir: &Path) -> &Path {
    dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes the files that ctxbench wrote into a folder, and the folder itself. Nothing else is
/// deleted; other content is an error.
fn remove_listed(dir: &Path, listed: &BTreeSet<String>) -> io::Result<()> {
    let mut folders = BTreeSet::new();
    for name in listed {
        let path = dir.join(name);
        let _ = fs::remove_file(&path);
        folders.extend(path.ancestors().skip(1).take_while(|p| *p != dir).map(Path::to_path_buf));
    }
    // Remove the deepest folders first.
    folders.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    fs::remove_dir(dir)
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

/// Moves everything that is not `listed` from the old folder to the new one.
fn keep_others(
    old: &Path,
    new: &Path,
    below: &str,
    listed: &BTreeSet<String>,
) -> Result<(), WriteError> {
    for entry in fs::read_dir(old).map_err(io_error(old, "list it"))? {
        let entry = entry.map_err(io_error(old, "list it"))?;
        let name = entry.file_name();
        let path = format!("{below}{}", name.to_string_lossy());
        let target = new.join(&name);
        let is_dir = entry.file_type().map_err(io_error(&entry.path(), "look at it"))?.is_dir();
        if listed.contains(&path) {
            continue;
        }
        if name.to_str().is_some_and(files::is_unfinished) && !is_dir {
            // Another run tried whether the folder is writable, or was killed.
            let _ = fs::remove_file(entry.path());
            continue;
        }
        if is_dir && (target.is_dir() || listed.iter().any(|o| o.starts_with(&format!("{path}/"))))
        {
            keep_others(&entry.path(), &target, &format!("{path}/"), listed)?;
        } else {
            let target = if target.exists() { former_name(&target) } else { target };
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(io_error(parent, "make the folder"))?;
            }
            fs::rename(entry.path(), &target)
                .map_err(io_error(&target, "keep a file that ctxbench did not write"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
