//! Snapshots in a separate git directory around each step, like OpenCode
//! (docs/sources/opencode.md §7, docs/sources/opencode-vs-claude-code.md §4).
//!
//! Before the tools of a step run, the whole tree is added and written (`add`, `write-tree`). After
//! the step, the changed files are recorded as its patch. A restore takes each file in any patch
//! since the checkpoint from the tree before the first patch with that file. Ignored files and new
//! files larger than 2 MiB are not saved. The project's own git directory is never touched.
//!
//! Contents are read by `cat-file` and written by [`Root`], so a restore cannot leave the session's
//! folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{CheckpointError, FileContent, FileOutcome, Restored, Root, Snapshots, failed};
use ctxbench_core::Millis;
use ctxbench_util::files::create_private_dir;

/// Maximum size of a new file in bytes (docs/sources/opencode.md §7: 2 MiB).
const MAX_NEW_FILE_BYTES: u64 = 2 * 1024 * 1024;

/// Variables of the user that would change the index, objects or root that git uses.
const REMOVED_VARIABLES: [&str; 5] = [
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
];

const CONFIG: [&str; 7] = [
    "core.autocrlf=false",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "core.fileMode=true",
    "core.symlinks=true",
    "advice.addEmbeddedRepo=false",
];

/// Returns the version of git, or `None` if it is not installed.
pub fn git_version() -> Option<String> {
    let out = Command::new("git").arg("--version").output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_string())
}

/// Files changed by a step, and the tree before it.
#[derive(Debug)]
struct Patch {
    tree: String,
    files: Vec<String>,
}

/// Shadow-git snapshots of a session.
#[derive(Debug)]
pub struct ShadowGit {
    root: Root,
    dir: PathBuf,
    /// Patches of each checkpoint, in order. The first checkpoint has number 1.
    prompts: Vec<Vec<Patch>>,
    /// Tree before the current step.
    step: Option<String>,
}

impl ShadowGit {
    /// Opens or creates the git directory `dir` for a session in `root`.
    pub fn open(root: &Path, dir: &Path) -> Result<ShadowGit, CheckpointError> {
        create_private_dir(dir).map_err(failed(dir.display(), "make the folder"))?;
        let dir = dir.canonicalize().map_err(failed(dir.display(), "resolve it"))?;
        let git = ShadowGit { root: Root::open(root)?, dir, prompts: Vec::new(), step: None };
        git.run(&["init", "--quiet"])?;
        // Store contents unchanged, whatever attributes the project sets.
        git.write_info("attributes", "* -text -filter -ident -working-tree-encoding\n")?;
        Ok(git)
    }

    fn write_info(&self, name: &str, text: &str) -> Result<(), CheckpointError> {
        let info = self.dir.join("info");
        fs::create_dir_all(&info).map_err(failed(info.display(), "make the folder"))?;
        fs::write(info.join(name), text).map_err(failed(info.display(), "write into it"))
    }

    /// Runs git on the shadow directory, ignoring the configuration of user, system and project.
    fn run(&self, args: &[&str]) -> Result<Vec<u8>, CheckpointError> {
        let wrong =
            |reason| CheckpointError::Failed { what: format!("git {}", args.join(" ")), reason };
        let mut command = Command::new("git");
        for name in REMOVED_VARIABLES {
            command.env_remove(name);
        }
        command
            .args(CONFIG.iter().flat_map(|setting| ["-c", setting]))
            .args(args)
            .env("GIT_DIR", &self.dir)
            .env("GIT_WORK_TREE", self.root.dir())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_LITERAL_PATHSPECS", "1")
            .env("LC_ALL", "C")
            .current_dir(self.root.dir());
        let out = command
            .output()
            .map_err(|e| wrong(format!("could not start it: {e}; is git installed?")))?;
        match out.status.success() {
            true => Ok(out.stdout),
            false => Err(wrong(String::from_utf8_lossy(&out.stderr).trim().to_string())),
        }
    }

    /// Adds all files except large new ones.
    fn add(&self) -> Result<(), CheckpointError> {
        self.write_info("exclude", "")?;
        let new = self.run(&["ls-files", "--others", "--exclude-standard", "-z"])?;
        let large = names(&new).filter(|n| {
            fs::symlink_metadata(self.root.dir().join(n))
                .is_ok_and(|m| m.len() > MAX_NEW_FILE_BYTES)
        });
        let exclude: String = large.map(|n| format!("/{}\n", escape_pattern(&n))).collect();
        self.write_info("exclude", &exclude)?;
        self.run(&["add", "--all", "--", "."]).map(drop)
    }

    /// Adds all files and writes the tree.
    fn track(&self) -> Result<String, CheckpointError> {
        self.add()?;
        Ok(String::from_utf8_lossy(&self.run(&["write-tree"])?).trim().to_string())
    }

    /// Returns each file changed since a checkpoint, with the tree before its first change.
    fn trees_at(&self, to: u64) -> Result<BTreeMap<String, String>, CheckpointError> {
        let since = usize::try_from(to).ok().and_then(|n| self.prompts.get(n.checked_sub(1)?..));
        let mut out = BTreeMap::new();
        for patch in since.ok_or(CheckpointError::Unknown(to))?.iter().flatten() {
            for file in &patch.files {
                out.entry(file.clone()).or_insert_with(|| patch.tree.clone());
            }
        }
        Ok(out)
    }

    fn restore_file(&self, path: &str, tree: &str) -> Result<FileOutcome, CheckpointError> {
        // Each line is `MODE TYPE ID\tPATH`. A folder of this name lists the files below it.
        let list = self.run(&["ls-tree", "-r", "-z", tree, "--", path])?;
        let entry = names(&list).find_map(|line| {
            let (head, listed) = line.split_once('\t')?;
            (listed == path).then(|| head.to_string())
        });
        let current = self.root.read(path)?;
        let target = match &entry {
            None => None,
            Some(head) if !head.starts_with("100") => {
                let reason = "links and nested repositories are not restored";
                return Ok(FileOutcome::Refused(format!("{path}: {reason}")));
            }
            Some(head) => {
                let id = head.rsplit(' ').next().unwrap_or_default();
                // Git stores only the executable bit of the permissions.
                let exec = head.starts_with("100755");
                let same = current.as_ref().map(|n| n.mode).filter(|m| (m & 0o100 != 0) == exec);
                Some(FileContent {
                    bytes: self.run(&["cat-file", "blob", id])?,
                    mode: same.unwrap_or(if exec { 0o755 } else { 0o644 }),
                })
            }
        };
        match &target {
            _ if current == target => return Ok(FileOutcome::Unchanged),
            None => self.root.remove(path)?,
            Some(content) => self.root.write(path, content)?,
        }
        Ok(FileOutcome::Restored)
    }
}

/// Splits a list at zero bytes. Skips names that are not UTF-8.
fn names(list: &[u8]) -> impl Iterator<Item = String> + '_ {
    list.split(|b| *b == 0)
        .filter(|n| !n.is_empty())
        .filter_map(|n| String::from_utf8(n.to_vec()).ok())
}

/// Escapes a name as a pattern that matches only that name.
fn escape_pattern(name: &str) -> String {
    name.chars()
        .flat_map(|c| "\\*?[ #!".contains(c).then_some('\\').into_iter().chain([c]))
        .collect()
}

impl Snapshots for ShadowGit {
    fn begin(&mut self, _prompt: &str, _now_ms: Millis) -> Result<u64, CheckpointError> {
        self.prompts.push(Vec::new());
        Ok(self.prompts.len() as u64)
    }

    fn step_begins(&mut self) -> Result<(), CheckpointError> {
        self.step = Some(self.track()?);
        Ok(())
    }

    /// Checks the path. Nothing is saved, because the tree before the step contains the file.
    fn before_edit(&mut self, path: &str) -> Result<(), CheckpointError> {
        if self.step.is_none() {
            return Err(CheckpointError::NotBegun(path.to_string()));
        }
        self.root.relative(path).map(drop)
    }

    fn step_ends(&mut self) -> Result<(), CheckpointError> {
        let Some(tree) = self.step.take() else { return Ok(()) };
        self.add()?;
        let options = ["--cached", "--name-only", "--no-ext-diff", "--no-renames", "-z"];
        let list = self.run(&[&["diff-index"], &options[..], &[&tree]].concat())?;
        let files: Vec<String> = names(&list).collect();
        if let (false, Some(patches)) = (files.is_empty(), self.prompts.last_mut()) {
            patches.push(Patch { tree, files });
        }
        Ok(())
    }

    fn restore(&mut self, to: u64, _now_ms: Millis) -> Result<Restored, CheckpointError> {
        let targets = self.trees_at(to)?;
        // Save all current files.
        let tree = self.track()?;
        self.prompts.push(vec![Patch { tree, files: targets.keys().cloned().collect() }]);
        let restore = |(path, tree): (String, String)| {
            let outcome = self.restore_file(&path, &tree).unwrap_or_else(FileOutcome::from);
            (path, outcome)
        };
        let files = targets.into_iter().map(restore).collect();
        Ok(Restored { undo: self.prompts.len() as u64, files })
    }

    fn tracked(&self, to: u64) -> Result<Vec<String>, CheckpointError> {
        Ok(self.trees_at(to)?.into_keys().collect())
    }

    fn stored_bytes(&self) -> Result<u64, CheckpointError> {
        let objects = ["cat-file", "--batch-all-objects", "--batch-check=%(objectsize)"];
        let sizes = String::from_utf8_lossy(&self.run(&objects)?).into_owned();
        Ok(sizes.lines().filter_map(|l| l.parse::<u64>().ok()).sum())
    }
}
