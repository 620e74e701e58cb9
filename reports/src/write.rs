//! The results folder: written beside its place, then renamed into it. Only a folder that ctxbench
//! made is replaced.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctxbench_core::files::{self, FileError};

use crate::formats::{Artifact, ReportError};
use crate::plots::{self, Looks};
use crate::row_store::INTERRUPTED;
use crate::stored::{Files, Folder, Stored};
use crate::{csv, json, page, sqlite};

/// Name of the file that marks a folder as ours and lists what we put there.
pub const MARKER: &str = ".ctxbench";
/// Names in a results folder that no other output may have.
const OF_RESULTS: [&str; 7] = [
    MARKER,
    json::RESULTS_FILE,
    sqlite::DATABASE_FILE,
    "index.html",
    "matrix.md",
    "timings.json",
    "team.md",
];
const MARKER_HEAD: &str = "ctxbench results folder 1";

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The folder holds something else.
    #[error("{0} was not made by ctxbench; choose another --out")]
    Foreign(PathBuf),
    /// A cache would be put among files of somebody else.
    #[error("{0} is no cache of ctxbench and not empty; name another folder with --cache")]
    ForeignCache(PathBuf),
    /// The process runs in it.
    #[error("{0} holds the current folder, and results replace a folder; choose another --out")]
    Here(PathBuf),
    /// Another run writes there.
    #[error(
        "another run into this folder is going on and holds {0}; wait for its end or choose \
         another --out"
    )]
    Busy(PathBuf),
    /// There is a file of that name.
    #[error("{0} is not a folder; choose another --out")]
    NotAFolder(PathBuf),
    /// The path names no folder, such as `/`.
    #[error("{0} cannot be an output folder; choose another --out")]
    NoName(PathBuf),
    /// The system refused.
    #[error(
        "{path}: could not {action} ({source}); check that the folder can be written to and has \
         space"
    )]
    Io {
        /// Where.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The path is a link to nothing.
    #[error("{0} is a link to a folder that does not exist; make that or choose another --out")]
    DanglingLink(PathBuf),
    /// A report could not be made.
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error(transparent)]
    File(#[from] FileError),
}

pub(crate) fn io_error(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_path_buf();
    move |source| WriteError::Io { path, action, source }
}

/// Results on their way into a folder: everything is written to a new folder beside it, which then
/// takes its place, so that a reader finds the old results or the new ones, never a mixture. Files
/// in a folder of ours that we did not write are kept.
#[derive(Debug)]
pub struct Placing {
    dir: PathBuf,
    fresh: PathBuf,
    /// Held, so that another run knows that the new folder is not what a killed one left.
    held: Option<File>,
}

/// Refuses a folder that is neither ours nor empty nor absent; good to call before a long run.
pub fn check_out(dir: &Path) -> Result<(), WriteError> {
    let meta = match fs::metadata(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let dangling = fs::symlink_metadata(dir).is_ok();
            return if dangling { Err(WriteError::DanglingLink(dir.into())) } else { Ok(()) };
        }
        other => other.map_err(io_error(dir, "look at it"))?,
    };
    if !meta.is_dir() {
        return Err(WriteError::NotAFolder(dir.into()));
    }
    if !is_empty(dir)? && manifest(dir).is_none() {
        return Err(WriteError::Foreign(dir.into()));
    }
    // It would be exchanged under the feet of whoever stands in it.
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    if here.is_ok_and(|here| dir.canonicalize().is_ok_and(|dir| here.starts_with(dir))) {
        return Err(WriteError::Here(dir.into()));
    }
    // Files of others can only be taken along out of a folder that may be changed.
    files::check_output(&dir.join(MARKER), &[])?;
    Ok(())
}

/// Whether a folder holds nothing, or only what others of us are writing at this moment and what was
/// being written when they were killed.
pub(crate) fn is_empty(dir: &Path) -> Result<bool, WriteError> {
    for entry in fs::read_dir(dir).map_err(io_error(dir, "list it"))? {
        let name = entry.map_err(io_error(dir, "list it"))?.file_name();
        if !name.to_str().is_some_and(files::is_unfinished) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The files that we put into a folder; `None` when it has no marker of ours.
fn manifest(dir: &Path) -> Option<BTreeSet<String>> {
    let text = fs::read_to_string(dir.join(MARKER)).ok()?;
    let mut lines = text.lines();
    (lines.next() == Some(MARKER_HEAD))
        .then(|| lines.map(str::to_string).chain([MARKER.to_string()]).collect())
}

/// Whether a run put a file into a folder of results; `name` is its path from there.
pub fn is_listed(dir: &Path, name: &str) -> bool {
    manifest(dir).is_some_and(|ours| ours.contains(name))
}

/// Whether a file may be read by its owner alone.
#[cfg(unix)]
pub fn is_private(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(file).is_ok_and(|m| m.permissions().mode() & 0o077 == 0)
}

/// Elsewhere nobody can tell by the file alone.
#[cfg(not(unix))]
pub fn is_private(_: &Path) -> bool {
    false
}

/// Whether a path leads to what a run puts into `dir`.
pub fn is_of_results(dir: &Path, path: &Path) -> bool {
    let (Ok(dir), Ok(path)) = (files::real(dir), files::real(path)) else { return false };
    let Ok(below) = path.strip_prefix(&dir) else { return false };
    let name = below.to_string_lossy().replace('\\', "/");
    let listed = manifest(&dir).is_some_and(|ours| ours.contains(&name));
    listed || name.starts_with("plots/") || OF_RESULTS.contains(&name.as_str())
}

/// Brings back what a run that was killed while it replaced the results in `dir` left beside them:
/// former results whose place is empty, and files of other people that had not been moved yet. Says
/// so in a line each.
pub fn restore(dir: &Path) -> Result<Vec<String>, WriteError> {
    let mut notes = Vec::new();
    // A link may lead to the folder that is gone.
    let behind = fs::read_link(dir).map(|to| parent_of(dir).join(to));
    let dir = behind.as_deref().unwrap_or(dir);
    let Ok(Placing { dir, .. }) = Placing::into_folder(dir) else { return Ok(notes) };
    // Nobody else is at it, so whatever is there is of a run that broke off.
    let Some(_alone) = Alone::in_folder_of(&dir) else { return Ok(notes) };
    let dir = &dir;
    for fresh in neighbours(dir, is_new)? {
        // Held by a run that is writing at this moment.
        if File::open(&fresh).is_ok_and(|f| matches!(f.try_lock(), Err(TryLockError::WouldBlock))) {
            continue;
        }
        // Never whole in its place; its rows are stored apart.
        fs::remove_dir_all(&fresh).map_err(io_error(&fresh, "remove what an earlier run left"))?;
    }
    for old in neighbours(dir, |rest| numbered(rest, ".old-"))? {
        let Some(ours) = manifest(&old) else {
            // An empty folder was to be replaced.
            if is_empty(&old).is_ok_and(|empty| empty) {
                discard(dir, &old)?;
                continue;
            }
            notes.push(format!("{} was left by an earlier run; look into it", old.display()));
            continue;
        };
        if dir.exists() {
            keep_others(&old, dir, "", &ours)?;
            discard(dir, &old)?;
            notes.push(format!(
                "an earlier run was killed when its results were in {}; files there that are not \
                 of ctxbench were kept",
                dir.display()
            ));
        } else {
            fs::rename(&old, dir).map_err(io_error(&old, "move the former results back"))?;
            notes.push(format!(
                "an earlier run was killed while it replaced the results in {0}; the former \
                 results are in {0} again",
                dir.display()
            ));
        }
    }
    Ok(notes)
}

/// The hidden folders of the exchange beside `dir`, of whatever process: `is_one` is given what
/// follows the name of `dir`.
fn neighbours(dir: &Path, is_one: fn(&str) -> bool) -> Result<Vec<PathBuf>, WriteError> {
    let folder = parent_of(dir);
    let begin = format!(".{}", dir.file_name().unwrap_or_default().to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error(folder, "list it"))? {
        let entry = entry.map_err(io_error(folder, "list it"))?;
        if entry.file_name().to_str().and_then(|n| n.strip_prefix(&begin)).is_some_and(is_one) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

fn numbered(rest: &str, begin: &str) -> bool {
    let number = rest.strip_prefix(begin).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// A folder that never was whole in its place, or is not any more: of `dir`, or of what is made of
/// the rows that runs into it left.
fn is_new(rest: &str) -> bool {
    let digit_or_dash = |c: char| c == '-' || c.is_ascii_digit();
    let rest = rest.strip_prefix(INTERRUPTED).map_or(rest, |r| r.trim_start_matches(digit_or_dash));
    numbered(rest, ".new-")
}

/// A name beside `dir` that nothing has. It ends in our number, or in the next where an earlier
/// process that had it left something.
fn free(dir: &Path, kind: &str) -> PathBuf {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    (u64::from(std::process::id())..)
        .map(|n| dir.with_file_name(format!(".{name}.{kind}-{n}")))
        .find(|path| fs::symlink_metadata(path).is_err())
        .expect("some number is free")
}

/// Gives former results in which is nothing of other people any more a name by which whoever finds
/// them removes them: half removed, they could not be told from what people keep.
fn set_aside(dir: &Path, old: &Path) -> Result<PathBuf, WriteError> {
    let going = free(dir, "new");
    fs::rename(old, &going).map_err(io_error(old, "remove the former results"))?;
    Ok(going)
}

fn discard(dir: &Path, old: &Path) -> Result<(), WriteError> {
    let going = set_aside(dir, old)?;
    fs::remove_dir_all(&going).map_err(io_error(&going, "remove the former results"))
}

fn parent_of(dir: &Path) -> &Path {
    dir.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The right to exchange folders in a folder. The system takes it back however the process ends.
struct Alone {
    _folder: File,
}

impl Alone {
    /// Waits for others, who need it for a moment only. `None` where there is no such thing, or
    /// somebody holds it for a purpose of their own.
    fn in_folder_of(dir: &Path) -> Option<Alone> {
        let folder = File::open(parent_of(dir)).ok()?;
        for _ in 0..100 {
            match folder.try_lock() {
                Ok(()) => return Some(Alone { _folder: folder }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(50)),
                Err(TryLockError::Error(_)) => return None,
            }
        }
        None
    }
}

impl Placing {
    /// Names the folder that is to be replaced, and touches nothing.
    pub fn into_folder(dir: &Path) -> Result<Placing, WriteError> {
        // A link to a folder stays a link: the folder behind it is exchanged.
        let dir = if dir.exists() {
            dir.canonicalize().map_err(io_error(dir, "resolve it"))?
        } else {
            dir.to_path_buf()
        };
        if dir.file_name().is_none() {
            return Err(WriteError::NoName(dir));
        }
        let fresh = free(&dir, "new");
        Ok(Placing { dir, fresh, held: None })
    }

    /// Makes the new folder and gives its path. It is the caller's to remove, unless it is
    /// [put in its place](Placing::put).
    pub fn begin(&mut self) -> Result<PathBuf, WriteError> {
        check_out(&self.dir)?;
        let folder = parent_of(&self.dir);
        fs::create_dir_all(folder).map_err(io_error(folder, "make the folder"))?;
        // It is made and held in one step for whoever clears up.
        let _alone = Alone::in_folder_of(&self.dir);
        loop {
            self.fresh = free(&self.dir, "new");
            match fs::create_dir(&self.fresh) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => break made.map_err(io_error(&self.fresh, "make the folder"))?,
            }
        }
        self.held = File::open(&self.fresh).ok().filter(|f| f.try_lock().is_ok());
        Ok(self.fresh.clone())
    }

    /// Writes `results.json`, `results.sqlite`, the CSV files, `plots/*.svg`, `index.html`, unless
    /// empty `matrix.md`, and what stands `beside` these. `private` = for their owner only.
    pub fn fill(
        &self,
        stored: &Stored<'_>,
        looks: &Looks,
        matrix_md: &str,
        beside: &[Artifact],
        private: bool,
    ) -> Result<(), WriteError> {
        let mut files = Folder::new(&self.fresh, private);
        for format in [json::FORMAT, csv::FORMAT, sqlite::FORMAT] {
            format.write(stored, looks, &mut files)?;
        }
        page::write_page(stored, looks, matrix_md, &mut files)?;
        plots::write(stored, looks, &mut files)?;
        let matrix = Artifact { file: "matrix.md".into(), text: matrix_md.into() };
        for file in [&matrix].into_iter().filter(|m| !m.text.is_empty()).chain(beside) {
            let mut out = files.create(&file.file)?;
            out.write_all(file.text.as_bytes())
                .and_then(|()| out.flush())
                .map_err(|e| WriteError::Report(e.into()))?;
        }
        let list = [MARKER_HEAD].into_iter().chain(files.names.iter().map(String::as_str));
        let list: String = list.map(|line| format!("{line}\n")).collect();
        // The rest can be made again from this.
        let kept = self.fresh.join(json::RESULTS_FILE);
        File::open(&kept).and_then(|f| f.sync_all()).map_err(io_error(&kept, "write it"))?;
        let marker = self.fresh.join(MARKER);
        fs::write(&marker, list).map_err(io_error(&marker, "write it"))
    }

    /// Puts the new folder in its place.
    pub fn put(self) -> Result<(), WriteError> {
        let _alone = Alone::in_folder_of(&self.dir);
        if !self.dir.exists() {
            return fs::rename(&self.fresh, &self.dir)
                .map_err(io_error(&self.dir, "move the new folder into place"));
        }
        // Looked at again: the folder may have changed while the reports were made.
        check_out(&self.dir)?;
        let ours = manifest(&self.dir).unwrap_or_default();
        let old = free(&self.dir, "old");
        fs::rename(&self.dir, &old)
            .map_err(io_error(&self.dir, "move the former results aside"))?;
        if let Err(e) = fs::rename(&self.fresh, &self.dir) {
            let _ = fs::rename(&old, &self.dir);
            return Err(io_error(&self.dir, "move the new folder into place")(e));
        }
        keep_others(&old, &self.dir, "", &ours)?;
        discard(&self.dir, &old)
    }
}

/// A free name for a file of somebody else whose own name is now one of ours.
fn former(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    (1..)
        .map(|n| if n == 1 { format!("{name}.former") } else { format!("{name}.former-{n}") })
        .map(|name| path.with_file_name(name))
        .find(|p| fs::symlink_metadata(p).is_err())
        .expect("some number is free")
}

/// Moves what is not in `ours` from the old folder to the new one.
fn keep_others(
    old: &Path,
    new: &Path,
    below: &str,
    ours: &BTreeSet<String>,
) -> Result<(), WriteError> {
    for entry in fs::read_dir(old).map_err(io_error(old, "list it"))? {
        let entry = entry.map_err(io_error(old, "list it"))?;
        let name = entry.file_name();
        let path = format!("{below}{}", name.to_string_lossy());
        let target = new.join(&name);
        let is_dir = entry.file_type().map_err(io_error(&entry.path(), "look at it"))?.is_dir();
        if ours.contains(&path) {
            continue;
        }
        if is_dir && (target.is_dir() || ours.iter().any(|o| o.starts_with(&format!("{path}/")))) {
            keep_others(&entry.path(), &target, &format!("{path}/"), ours)?;
        } else {
            let target = if target.exists() { former(&target) } else { target };
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent).map_err(io_error(parent, "make the folder"))?;
            }
            fs::rename(entry.path(), &target)
                .map_err(io_error(&target, "keep a file that is not ours"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;
