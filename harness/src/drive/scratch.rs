//! The folder that an agent lives in: its home, its settings, its project.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use super::agent::Agent;
use super::fill::Fill;
use super::plan::output_file;
use crate::groups::{self, Folder, Ours};

/// A scratch folder, gone when it is dropped unless it is kept.
pub(super) struct Scratch {
    path: PathBuf,
    environment: BTreeMap<String, String>,
    /// Last but the lock, so that nobody else uses the folder before it is gone.
    _ours: Option<Ours>,
    /// Held as long as the folder is in use; a killed process holds nothing.
    _lock: Option<File>,
}

/// So many drives of the same kind at once.
const MOST: u32 = 1_000;

/// Date of the project's first commit, so that two runs see the same project.
const DATE: &str = "2026-01-01T00:00:00Z";

/// A folder is this old before one without a lock is taken for left behind.
const FORSAKEN: Duration = Duration::from_secs(60);

/// Locked while the folder is in use.
const LOCK: &str = "in-use";
/// There if the folder was to be kept.
const KEPT: &str = "kept";

/// Whether a folder of that name was left by a drive that was killed.
fn abandoned(path: &Path) -> bool {
    let lock = File::options().write(true).open(path.join(LOCK));
    lock.is_ok_and(|lock| lock.try_lock().is_ok()) && !path.join(KEPT).exists()
}

/// Removes a folder that was left by a drive that was killed before it could lock it.
fn remove_empty(path: &Path) -> bool {
    let age = fs::symlink_metadata(path).and_then(|m| m.modified()).ok().map(|t| t.elapsed());
    let old = age.is_some_and(|age| age.is_ok_and(|age| age >= FORSAKEN));
    // What is not empty stays.
    old && fs::remove_dir(path).is_ok()
}

/// An empty folder below another, which nobody else uses.
fn place(base: &Path, name: &str) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let path = base.join(format!("ctxbench-drive-{name}-{number:03}"));
        match create_private(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && abandoned(&path) => {
                #[cfg(target_os = "linux")]
                groups::marked::end(Some(&path.display().to_string()));
                groups::remove(&path);
                number += u32::from(path.exists());
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && remove_empty(&path) => {}
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < MOST => number += 1,
            Err(e) => return Err(e),
        }
    }
}

impl Scratch {
    /// An empty folder below the temporary folder. Its name is the same every time unless another
    /// drive is using it, since agents show it to their model.
    pub(super) fn new(name: &str, keep: bool) -> io::Result<Scratch> {
        let base = std::env::temp_dir().canonicalize()?;
        let mut path = PathBuf::new();
        let mut place = || {
            path = place(&base, name)?;
            Ok::<_, io::Error>(path.clone())
        };
        let ours = match keep {
            true => place().map(|_| None),
            false => Ours::new(|| place().map(Folder)).map(Some),
        }?;
        let lock = File::create(path.join(LOCK))?;
        let lock = lock.try_lock().is_ok().then_some(lock);
        if keep {
            File::create(path.join(KEPT))?;
        }
        let scratch = Scratch { path, environment: BTreeMap::new(), _ours: ours, _lock: lock };
        for folder in ["home", "project", "tmp"] {
            fs::create_dir(scratch.path.join(folder))?;
        }
        groups::marks(&scratch.mark());
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn project(&self) -> PathBuf {
        self.path.join("project")
    }

    fn mark(&self) -> String {
        self.path.display().to_string()
    }

    /// What an agent finds in its environment.
    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Writes what an agent finds: its settings, a project with a repository, and what calls print.
    pub(super) fn furnish(
        &mut self,
        agent: &Agent,
        fill: &Fill,
        outputs: &[Arc<str>],
    ) -> io::Result<()> {
        let local = "127.0.0.1,localhost";
        let path = std::env::var("PATH").unwrap_or_default();
        let plain = [
            ("PATH", path.as_str()),
            ("TZ", "UTC"),
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C.UTF-8"),
            ("NO_PROXY", local),
            ("no_proxy", local),
            ("DO_NOT_TRACK", "1"),
            ("NO_COLOR", "1"),
            ("TERM", "dumb"),
        ];
        let text = |(k, v): (&str, &str)| (k.to_string(), v.to_string());
        self.environment = plain.into_iter().map(text).collect();
        let own = |name: &str| self.path.join(name).display().to_string();
        let folders = [("HOME", own("home")), ("TMPDIR", own("tmp"))];
        self.environment.extend(folders.map(|(k, v)| (k.to_string(), v)));
        self.environment.insert("CTXBENCH_DRIVE".into(), self.mark());
        let asked = agent.env.iter().map(|(k, v)| (k.clone(), fill.text(v)));
        self.environment.extend(asked);
        for file in &agent.file {
            let path = self.path.join(&file.path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, fill.text(&file.text))?;
        }
        let project = self.project();
        for (i, output) in outputs.iter().enumerate() {
            let path = project.join(output_file(i));
            if i == 0
                && let Some(folder) = path.parent()
            {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, output.as_bytes())?;
        }
        self.repository(&project);
        Ok(())
    }

    /// Many agents ask for a repository, or look for one; without git they do without.
    fn repository(&self, project: &Path) {
        let run = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "init.defaultBranch=main", "-c", "user.name=ctxbench"]);
            git.args(["-c", "user.email=ctxbench@localhost"]).args(arguments);
            git.current_dir(project).env_clear().envs(&self.environment);
            git.env("GIT_AUTHOR_DATE", DATE).env("GIT_COMMITTER_DATE", DATE);
            git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let _ = git.status();
        };
        run(&["init", "--quiet"]);
        // What calls print is no part of the project.
        let exclude = project.join(".git/info/exclude");
        if exclude.parent().is_some_and(Path::is_dir) {
            let _ = fs::write(exclude, ".ctxbench/\n");
        }
        run(&["commit", "--quiet", "--allow-empty", "--message", "Begin"]);
    }

    /// Ends whatever the agent has left behind, however far it went. Returns how many processes.
    pub(super) fn sweep(&self) -> usize {
        #[cfg(target_os = "linux")]
        return groups::marked::end(Some(&self.mark()));
        #[cfg(not(target_os = "linux"))]
        0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.sweep();
        groups::unmarks(&self.mark());
    }
}

/// A folder that nobody else may look into.
#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<()> {
    std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), 0o700).create(path)
}

/// Elsewhere who may look into it is decided by the folder above.
#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_folder_that_was_never_locked_is_used_again_when_it_is_old() {
        let base = tempfile::tempdir().unwrap();
        let named = |number: u32| base.path().join(format!("ctxbench-drive-x-{number:03}"));
        let placed = || place(base.path(), "x").unwrap();
        let age = |path: &Path, seconds: u64| {
            let then = std::time::SystemTime::now() - Duration::from_secs(seconds);
            File::open(path).unwrap().set_modified(then).unwrap();
        };
        assert_eq!(placed(), named(1));
        // Whoever has just made it may be about to lock it.
        age(&named(1), 30);
        assert_eq!(placed(), named(2));
        age(&named(1), 90);
        assert_eq!(placed(), named(1));
        // What holds something is not touched.
        File::create(named(1).join("file")).unwrap();
        age(&named(1), 90);
        age(&named(2), 30);
        assert_eq!(placed(), named(3));
        assert!(named(1).join("file").exists());
    }
}
