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
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::blobs::list_dir;
use super::{
    CheckpointError, FileContent, FileOutcome, Restored, Root, Snapshots, StorageSize, io,
};
use ctxbench_core::files::create_private_dir;
use ctxbench_core::session::Millis;

/// Maximum size of a new file in bytes (docs/sources/opencode.md §7: 2 MiB).
const MAX_NEW_FILE_BYTES: u64 = 2 * 1024 * 1024;

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
    /// Patches of each checkpoint, in order.
    prompts: Vec<(u64, Vec<Patch>)>,
    /// Tree before the current step.
    step: Option<String>,
}

/// An entry of a git tree.
#[derive(Clone, Debug)]
struct TreeEntry {
    mode: String,
    id: String,
}

impl ShadowGit {
    /// Opens or creates the git directory `dir` for a session in `root`.
    pub fn open(root: &Path, dir: &Path) -> Result<ShadowGit, CheckpointError> {
        create_private_dir(dir).map_err(io(dir, "make the folder"))?;
        let dir = dir.canonicalize().map_err(io(dir, "resolve it"))?;
        let git = ShadowGit { root: Root::open(root)?, dir, prompts: Vec::new(), step: None };
        git.run(&["init", "--quiet"], b"")?;
        // Store contents unchanged, whatever attributes the project sets.
        git.write_info("attributes", b"* -text -filter -ident -working-tree-encoding\n")?;
        Ok(git)
    }

    fn write_info(&self, name: &str, text: &[u8]) -> Result<(), CheckpointError> {
        let info = self.dir.join("info");
        fs::create_dir_all(&info).map_err(io(&info, "make the folder"))?;
        fs::write(info.join(name), text).map_err(io(&info, "write into it"))
    }

    /// Runs git on the shadow directory, ignoring the configuration of user, system and project.
    fn run(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, CheckpointError> {
        let failed = |reason: String| CheckpointError::Git { command: args.join(" "), reason };
        let mut command = Command::new("git");
        for name in [
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            "GIT_NAMESPACE",
            "GIT_CEILING_DIRECTORIES",
        ] {
            command.env_remove(name);
        }
        command
            .args([
                "-c",
                "core.autocrlf=false",
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "core.fsmonitor=false",
                "-c",
                "gc.auto=0",
            ])
            .args([
                "-c",
                "core.fileMode=true",
                "-c",
                "core.symlinks=true",
                "-c",
                "advice.addEmbeddedRepo=false",
            ])
            .args(args)
            .env("GIT_DIR", &self.dir)
            .env("GIT_WORK_TREE", self.root.dir())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("LC_ALL", "C")
            .current_dir(self.root.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|e| failed(format!("could not start it: {e}; is git installed?")))?;
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let out = std::thread::scope(|scope| {
            // Write on a separate thread: git may produce output before it has read all input.
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output()
        });
        let out = out.map_err(|e| failed(e.to_string()))?;
        if out.status.success() {
            Ok(out.stdout)
        } else {
            Err(failed(String::from_utf8_lossy(&out.stderr).trim().to_string()))
        }
    }

    fn output_line(&self, args: &[&str]) -> Result<String, CheckpointError> {
        Ok(String::from_utf8_lossy(&self.run(args, b"")?).trim().to_string())
    }

    /// Adds all files except large new ones.
    fn add(&self) -> Result<(), CheckpointError> {
        self.write_info("exclude", b"")?;
        let new = self.run(&["ls-files", "--others", "--exclude-standard", "-z"], b"")?;
        let large = names(&new).filter(|n| {
            fs::symlink_metadata(self.root.dir().join(n))
                .is_ok_and(|m| m.len() > MAX_NEW_FILE_BYTES)
        });
        let exclude: String = large.map(|n| format!("/{}\n", escape_pattern(&n))).collect();
        self.write_info("exclude", exclude.as_bytes())?;
        self.run(&["add", "--all", "--", "."], b"").map(drop)
    }

    /// Adds all files and writes the tree.
    fn track(&self) -> Result<String, CheckpointError> {
        self.add()?;
        self.output_line(&["write-tree"])
    }

    /// Returns the files of a tree.
    fn tree(&self, tree: &str) -> Result<BTreeMap<String, TreeEntry>, CheckpointError> {
        let list = self.run(&["ls-tree", "-r", "-z", tree], b"")?;
        let entry = |line: String| {
            let (head, path) = line.split_once('\t')?;
            let mut fields = head.split(' ');
            Some((
                path.to_string(),
                TreeEntry { mode: fields.next()?.to_string(), id: fields.nth(1)?.to_string() },
            ))
        };
        Ok(names(&list).filter_map(entry).collect())
    }

    /// Reads the contents of objects, in order.
    fn contents(&self, ids: &[&str]) -> Result<Vec<Vec<u8>>, CheckpointError> {
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let output = self.run(&["cat-file", "--batch"], input.as_bytes())?;
        let incomplete = || CheckpointError::Git {
            command: "cat-file --batch".into(),
            reason: "an object is missing or the output is incomplete".into(),
        };
        let mut rest = &output[..];
        let mut out = Vec::new();
        for _ in ids {
            let end = rest.iter().position(|b| *b == b'\n').ok_or_else(incomplete)?;
            let size = std::str::from_utf8(&rest[..end])
                .ok()
                .and_then(|l| l.rsplit(' ').next()?.parse::<usize>().ok())
                .ok_or_else(incomplete)?;
            let content = rest.get(end + 1..end + 1 + size).ok_or_else(incomplete)?;
            out.push(content.to_vec());
            rest = rest.get(end + 2 + size..).ok_or_else(incomplete)?;
        }
        Ok(out)
    }

    /// Returns each file changed since a checkpoint, with the tree before its first change.
    fn trees_at(&self, to: u64) -> Result<BTreeMap<String, String>, CheckpointError> {
        let from =
            self.prompts.iter().position(|(n, _)| *n == to).ok_or(CheckpointError::Unknown(to))?;
        let mut out = BTreeMap::new();
        for patch in self.prompts[from..].iter().flat_map(|(_, p)| p) {
            for file in &patch.files {
                out.entry(file.clone()).or_insert_with(|| patch.tree.clone());
            }
        }
        Ok(out)
    }

    fn restore_file(&self, path: &str, entry: Option<&(String, Vec<u8>)>) -> FileOutcome {
        let write = || {
            let path = self.root.resolve(path)?;
            let current = self.root.read(&path)?;
            let target = entry.map(|(mode, bytes)| {
                // Git stores only the executable bit of the permissions.
                let exec = mode == "100755";
                let same = current.as_ref().map(|n| n.mode).filter(|m| (m & 0o100 != 0) == exec);
                FileContent {
                    bytes: bytes.clone(),
                    mode: same.unwrap_or(if exec { 0o755 } else { 0o644 }),
                }
            });
            match &target {
                _ if current == target => return Ok(FileOutcome::Unchanged),
                None => self.root.remove(&path)?,
                Some(content) => self.root.write(&path, content)?,
            }
            Ok(FileOutcome::Restored)
        };
        match write() {
            Ok(outcome) => outcome,
            Err(e @ super::PathError { .. }) if e.is_refusal() => {
                FileOutcome::Refused(e.to_string())
            }
            Err(e) => FileOutcome::Failed(e.to_string()),
        }
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
    fn name(&self) -> &'static str {
        "shadow git"
    }

    fn begin(&mut self, _prompt: &str, _now_ms: Millis) -> Result<u64, CheckpointError> {
        let number = self.prompts.last().map_or(1, |(n, _)| n + 1);
        self.prompts.push((number, Vec::new()));
        Ok(number)
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
        Ok(self.root.resolve(path).map(drop)?)
    }

    fn step_ends(&mut self) -> Result<(), CheckpointError> {
        let Some(tree) = self.step.take() else { return Ok(()) };
        self.add()?;
        let list = self.run(
            &[
                "diff-index",
                "--cached",
                "--name-only",
                "--no-ext-diff",
                "--no-renames",
                "-z",
                &tree,
            ],
            b"",
        )?;
        let files: Vec<String> = names(&list).collect();
        if let (false, Some((_, patches))) = (files.is_empty(), self.prompts.last_mut()) {
            patches.push(Patch { tree, files });
        }
        Ok(())
    }

    fn restore(&mut self, to: u64, now_ms: Millis) -> Result<Restored, CheckpointError> {
        let targets = self.trees_at(to)?;
        // Save all current files.
        let tree = self.track()?;
        let undo = self.begin("", now_ms)?;
        if let Some((_, patches)) = self.prompts.last_mut() {
            patches.push(Patch { tree, files: targets.keys().cloned().collect() });
        }
        let mut trees: BTreeMap<String, BTreeMap<String, TreeEntry>> = BTreeMap::new();
        for tree in targets.values() {
            if !trees.contains_key(tree) {
                trees.insert(tree.clone(), self.tree(tree)?);
            }
        }
        let found: Vec<Option<&TreeEntry>> =
            targets.iter().map(|(path, tree)| trees[tree].get(path)).collect();
        let is_file = |e: &&TreeEntry| e.mode.starts_with("100");
        let ids: Vec<&str> =
            found.iter().flatten().copied().filter(is_file).map(|e| &*e.id).collect();
        let mut contents = self.contents(&ids)?.into_iter();
        let mut files = Vec::new();
        for (path, entry) in targets.keys().zip(&found) {
            let outcome = match entry {
                Some(e) if is_file(e) => {
                    self.restore_file(path, contents.next().map(|c| (e.mode.clone(), c)).as_ref())
                }
                Some(_) => FileOutcome::Refused(format!(
                    "{path}: links and nested repositories are not restored"
                )),
                None => self.restore_file(path, None),
            };
            files.push((path.clone(), outcome));
        }
        Ok(Restored { undo, files })
    }

    fn tracked(&self, to: u64) -> Result<Vec<String>, CheckpointError> {
        Ok(self.trees_at(to)?.into_keys().collect())
    }

    fn storage_size(&self) -> Result<StorageSize, CheckpointError> {
        let sizes =
            self.output_line(&["cat-file", "--batch-all-objects", "--batch-check=%(objectsize)"])?;
        let content_bytes = sizes.lines().filter_map(|l| l.parse::<u64>().ok()).sum();
        let mut disk_bytes = 0;
        let mut folders = vec![self.dir.join("objects")];
        while let Some(folder) = folders.pop() {
            for path in list_dir(&folder)? {
                let meta = fs::symlink_metadata(&path).map_err(io(&path, "look at it"))?;
                if meta.is_dir() { folders.push(path) } else { disk_bytes += meta.len() }
            }
        }
        Ok(StorageSize { content_bytes, disk_bytes })
    }
}
