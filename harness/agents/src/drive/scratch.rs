//! Folder of an agent: its home, its settings and its project.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{fs, io};

use super::agent::Agent;
use super::plan::{OUTPUTS, output_file};
use super::template::Template;
use ctxbench_os::loopback::{self, Loopback};
use ctxbench_os::shutdown::TempFolder;

/// A scratch folder, removed on drop unless it is kept.
pub(super) struct Scratch {
    path: PathBuf,
    environment: BTreeMap<String, String>,
    /// Lock on the folder, which other drives remove without it. `None` if the folder is kept.
    _lock: Option<File>,
    /// Relay to the model server, for an agent without a network.
    loopback: Option<Loopback>,
    /// Temporary folder. `None` if the folder is kept.
    _folder: Option<TempFolder>,
}

/// Maximum number of scratch folders per agent.
const MAX_FOLDERS: u32 = 1_000;

/// Date of the project's first commit, the same in every run.
const DATE: &str = "2026-01-01T00:00:00Z";

/// File in a scratch folder that its drive has locked.
const LOCK: &str = "lock";
/// Beginning of the names of scratch folders.
const PREFIX: &str = "ctxbench-drive-";

fn locked(file: File) -> io::Result<File> {
    file.try_lock()?;
    Ok(file)
}

/// Removes the scratch folders of drives that were killed.
fn clear(base: &Path) {
    let folders = fs::read_dir(base).into_iter().flatten().flatten();
    let is_scratch =
        |f: &fs::DirEntry| f.file_name().to_str().is_some_and(|n| n.starts_with(PREFIX));
    for folder in folders.filter(|f| is_scratch(f) && f.file_type().is_ok_and(|t| t.is_dir())) {
        if File::open(folder.path().join(LOCK)).and_then(locked).is_ok() {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}

/// Creates the first folder `ctxbench-drive-NAME-NNN` in `base` that does not exist.
fn create_numbered(base: &Path, name: &str) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let path = base.join(format!("{PREFIX}{name}-{number:03}"));
        match create_private(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < MAX_FOLDERS => {
                number += 1;
            }
            created => return created.map(|()| path),
        }
    }
}

impl Scratch {
    /// Creates an empty folder in the temporary folder. Agents show its name to their model, so it
    /// is the same in every run unless another drive uses it.
    pub(super) fn new(name: &str, keep: bool) -> io::Result<Scratch> {
        let base = std::env::temp_dir().canonicalize()?;
        clear(&base);
        let create = || create_numbered(&base, name);
        let folder = if keep { None } else { Some(TempFolder::create(create)?) };
        let path = folder.as_ref().map_or_else(create, |f| Ok(f.path().to_path_buf()))?;
        let lock = (!keep).then(|| File::create(path.join(LOCK)).and_then(locked)).transpose()?;
        for below in ["home", "project", "tmp"] {
            fs::create_dir(path.join(below))?;
        }
        let environment = BTreeMap::new();
        Ok(Scratch { path, environment, _lock: lock, loopback: None, _folder: folder })
    }

    /// Lets the agent reach the model server and nothing else, if the system allows it.
    pub(super) fn isolate(&mut self, server: SocketAddr) -> io::Result<()> {
        if loopback::check().is_ok() {
            self.loopback = Some(Loopback::start(&self.path, server)?);
        }
        Ok(())
    }

    pub(super) fn loopback(&self) -> Option<&Loopback> {
        self.loopback.as_ref()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn project(&self) -> PathBuf {
        self.path.join("project")
    }

    /// Returns the agent's environment variables.
    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Writes the agent's settings, a project with a repository, and the outputs of calls.
    pub(super) fn furnish(
        &mut self,
        agent: &Agent,
        fill: &Template,
        outputs: &[Arc<str>],
    ) -> io::Result<()> {
        let local = "127.0.0.1,localhost";
        let path = std::env::var("PATH").unwrap_or_default();
        let own = |name: &str| self.path.join(name).display().to_string();
        let (home, tmp) = (own("home"), own("tmp"));
        let plain = [
            ("PATH", path.as_str()),
            ("HOME", &home),
            ("TMPDIR", &tmp),
            ("TZ", "UTC"),
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C.UTF-8"),
            ("NO_PROXY", local),
            ("no_proxy", local),
            ("DO_NOT_TRACK", "1"),
            ("NO_COLOR", "1"),
            ("TERM", "dumb"),
        ];
        self.environment = plain.map(|(k, v)| (k.to_string(), v.to_string())).into();
        self.environment.extend(agent.env.iter().map(|(k, v)| (k.clone(), fill.text(v))));
        for file in &agent.file {
            let path = self.path.join(&file.path);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::write(path, fill.text(&file.text))?;
        }
        let project = self.project();
        fs::create_dir(project.join(OUTPUTS))?;
        for (i, output) in outputs.iter().enumerate() {
            fs::write(project.join(output_file(i)), output.as_bytes())?;
        }
        self.repository(&project);
        Ok(())
    }

    /// Creates a repository, which many agents look for. Without git there is none.
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
        // Outputs of calls are not part of the project.
        let exclude = project.join(".git/info/exclude");
        if exclude.parent().is_some_and(Path::is_dir) {
            let _ = fs::write(exclude, format!("{OUTPUTS}/\n"));
        }
        run(&["commit", "--quiet", "--allow-empty", "--message", "Begin"]);
    }
}

/// Creates a folder that only its owner can enter. On Windows the parent folder decides that.
fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_removes_the_folders_of_killed_drives_only() {
        let base = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = base.path().join(name);
            fs::create_dir_all(path.join("home")).unwrap();
            path
        };
        let [killed, live] =
            ["ctxbench-drive-x-001", "ctxbench-drive-y-001"].map(|name| folder(name).join(LOCK));
        let kept = folder("ctxbench-drive-z-001");
        let other = folder("other").join(LOCK);
        for lock in [&killed, &live, &other] {
            fs::write(lock, "").unwrap();
        }
        let lock = locked(File::open(&live).unwrap()).unwrap();
        clear(base.path());
        assert!(!killed.exists() && live.exists() && kept.exists() && other.exists());
        drop(lock);
        clear(base.path());
        assert!(!live.exists());
    }

    #[test]
    fn create_numbered_skips_existing_folders() {
        let base = tempfile::tempdir().unwrap();
        let named = |number: u32| base.path().join(format!("ctxbench-drive-x-{number:03}"));
        assert_eq!(create_numbered(base.path(), "x").unwrap(), named(1));
        assert_eq!(create_numbered(base.path(), "x").unwrap(), named(2));
        fs::remove_dir(named(1)).unwrap();
        assert_eq!(create_numbered(base.path(), "x").unwrap(), named(1));
    }
}
