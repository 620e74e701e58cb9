//! Snapshots in a git directory of their own, around every step: the way of OpenCode
//! (docs/sources/opencode.md §7, docs/sources/opencode-vs-claude-code.md §4).
//!
//! Before the tools of a step run the whole tree is added and written (`add`, `write-tree`); after
//! them the files that differ are noted as the step's patch. Going back takes every patch since,
//! and for each file its content in the tree of the first of them. `.gitignore` holds, and new
//! files above 2 MiB are left out: two blind spots of this way. The project's own git directory is
//! never touched.
//!
//! Contents come out of `cat-file` and are written by [`Root`], so that a checkout cannot leave the
//! session's folder either.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::blobs::entries;
use super::{CheckpointError, Content, FileOutcome, Restored, Root, Snapshots, Stored, io};
use ctxbench_core::files::create_private_dir;
use ctxbench_core::session::Millis;

/// New files above this size are left out, bytes (docs/sources/opencode.md §7: 2 MiB).
const LARGEST_NEW: u64 = 2 * 1024 * 1024;

/// The version of the git program, if there is one.
pub fn git_version() -> Option<String> {
    let out = Command::new("git").arg("--version").output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8_lossy(&out.stdout).trim().to_string())
}

/// The files that a step changed, and the tree before it.
#[derive(Debug)]
struct Patch {
    tree: String,
    files: Vec<String>,
}

/// Shadow-git snapshots of one session.
#[derive(Debug)]
pub struct ShadowGit {
    root: Root,
    dir: PathBuf,
    /// Patches by checkpoint, in order.
    prompts: Vec<(u64, Vec<Patch>)>,
    /// The tree before the step under way.
    step: Option<String>,
}

/// A file in a tree.
#[derive(Clone, Debug)]
struct TreeEntry {
    mode: String,
    id: String,
}

impl ShadowGit {
    /// Makes or opens the git directory `dir` for the session in `root`.
    pub fn open(root: &Path, dir: &Path) -> Result<ShadowGit, CheckpointError> {
        create_private_dir(dir).map_err(io(dir, "make the folder"))?;
        let dir = dir.canonicalize().map_err(io(dir, "resolve it"))?;
        let git = ShadowGit { root: Root::open(root)?, dir, prompts: Vec::new(), step: None };
        git.run(&["init", "--quiet"], b"")?;
        // Contents go in and out byte by byte, whatever attributes the project gives them.
        git.write_info("attributes", b"* -text -filter -ident -working-tree-encoding\n")?;
        Ok(git)
    }

    fn write_info(&self, name: &str, text: &[u8]) -> Result<(), CheckpointError> {
        let info = self.dir.join("info");
        fs::create_dir_all(&info).map_err(io(&info, "make the folder"))?;
        fs::write(info.join(name), text).map_err(io(&info, "write into it"))
    }

    /// Runs git on our directory, blind for what the user, the machine or the project configures.
    fn run(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, CheckpointError> {
        let failed = |said: String| CheckpointError::Git { command: args.join(" "), said };
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
            .map_err(|e| failed(format!("it could not be started: {e}; is git installed?")))?;
        let mut stdin = child.stdin.take().expect("asked for a pipe");
        let out = std::thread::scope(|scope| {
            // On a thread of its own: git may answer before it has read everything.
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

    fn line(&self, args: &[&str]) -> Result<String, CheckpointError> {
        Ok(String::from_utf8_lossy(&self.run(args, b"")?).trim().to_string())
    }

    /// Adds everything but large new files.
    fn add(&self) -> Result<(), CheckpointError> {
        self.write_info("exclude", b"")?;
        let new = self.run(&["ls-files", "--others", "--exclude-standard", "-z"], b"")?;
        let large = names(&new).filter(|n| {
            fs::symlink_metadata(self.root.dir().join(n)).is_ok_and(|m| m.len() > LARGEST_NEW)
        });
        let exclude: String = large.map(|n| format!("/{}\n", literal(&n))).collect();
        self.write_info("exclude", exclude.as_bytes())?;
        self.run(&["add", "--all", "--", "."], b"").map(drop)
    }

    /// Adds everything and writes the tree.
    fn track(&self) -> Result<String, CheckpointError> {
        self.add()?;
        self.line(&["write-tree"])
    }

    /// The files of a tree.
    fn tree(&self, tree: &str) -> Result<BTreeMap<String, TreeEntry>, CheckpointError> {
        let list = self.run(&["ls-tree", "-r", "-z", tree], b"")?;
        let entry = |line: String| {
            let (head, path) = line.split_once('\t')?;
            let mut words = head.split(' ');
            Some((
                path.to_string(),
                TreeEntry { mode: words.next()?.to_string(), id: words.nth(1)?.to_string() },
            ))
        };
        Ok(names(&list).filter_map(entry).collect())
    }

    /// Contents of many objects at once, in order.
    fn contents(&self, ids: &[&str]) -> Result<Vec<Vec<u8>>, CheckpointError> {
        let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let said = self.run(&["cat-file", "--batch"], asked.as_bytes())?;
        let broken = || CheckpointError::Git {
            command: "cat-file --batch".into(),
            said: "an object is missing or its answer broke off".into(),
        };
        let mut rest = &said[..];
        let mut out = Vec::new();
        for _ in ids {
            let end = rest.iter().position(|b| *b == b'\n').ok_or_else(broken)?;
            let size = std::str::from_utf8(&rest[..end])
                .ok()
                .and_then(|l| l.rsplit(' ').next()?.parse::<usize>().ok())
                .ok_or_else(broken)?;
            let content = rest.get(end + 1..end + 1 + size).ok_or_else(broken)?;
            out.push(content.to_vec());
            rest = rest.get(end + 2 + size..).ok_or_else(broken)?;
        }
        Ok(out)
    }

    /// For each file that changed since, the tree to take it from: that of the first patch which
    /// holds it.
    fn wanted(&self, to: u64) -> Result<BTreeMap<String, String>, CheckpointError> {
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

    fn put(&self, path: &str, entry: Option<&(String, Vec<u8>)>) -> FileOutcome {
        let write = || {
            let path = self.root.resolve(path)?;
            let now = self.root.read(&path)?;
            let want = entry.map(|(mode, bytes)| {
                // Git keeps no more of the permissions than whether a file can be run.
                let exec = mode == "100755";
                let same = now.as_ref().map(|n| n.mode).filter(|m| (m & 0o100 != 0) == exec);
                Content {
                    bytes: bytes.clone(),
                    mode: same.unwrap_or(if exec { 0o755 } else { 0o644 }),
                }
            });
            match &want {
                _ if now == want => return Ok(FileOutcome::Unchanged),
                None => self.root.remove(&path)?,
                Some(content) => self.root.write(&path, content)?,
            }
            Ok(FileOutcome::Restored)
        };
        match write() {
            Ok(done) => done,
            Err(e @ super::PathError { .. }) if e.is_refusal() => {
                FileOutcome::Refused(e.to_string())
            }
            Err(e) => FileOutcome::Failed(e.to_string()),
        }
    }
}

/// What stands between zero bytes; names that are not UTF-8 are left out.
fn names(list: &[u8]) -> impl Iterator<Item = String> + '_ {
    list.split(|b| *b == 0)
        .filter(|n| !n.is_empty())
        .filter_map(|n| String::from_utf8(n.to_vec()).ok())
}

/// A name as a pattern that matches nothing else.
fn literal(name: &str) -> String {
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

    /// The tree before the step holds the file.
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
        let wanted = self.wanted(to)?;
        // What is there now is saved whole.
        let tree = self.track()?;
        let undo = self.begin("", now_ms)?;
        if let Some((_, patches)) = self.prompts.last_mut() {
            patches.push(Patch { tree, files: wanted.keys().cloned().collect() });
        }
        let mut trees: BTreeMap<String, BTreeMap<String, TreeEntry>> = BTreeMap::new();
        for tree in wanted.values() {
            if !trees.contains_key(tree) {
                trees.insert(tree.clone(), self.tree(tree)?);
            }
        }
        let found: Vec<Option<&TreeEntry>> =
            wanted.iter().map(|(path, tree)| trees[tree].get(path)).collect();
        let is_file = |e: &&TreeEntry| e.mode.starts_with("100");
        let ids: Vec<&str> =
            found.iter().flatten().copied().filter(is_file).map(|e| &*e.id).collect();
        let mut contents = self.contents(&ids)?.into_iter();
        let mut files = Vec::new();
        for (path, entry) in wanted.keys().zip(&found) {
            let done = match entry {
                Some(e) if is_file(e) => {
                    self.put(path, contents.next().map(|c| (e.mode.clone(), c)).as_ref())
                }
                Some(_) => FileOutcome::Refused(format!(
                    "{path}: it was a link or a repository of its own, which is not restored"
                )),
                None => self.put(path, None),
            };
            files.push((path.clone(), done));
        }
        Ok(Restored { undo, files })
    }

    fn tracked(&self, to: u64) -> Result<Vec<String>, CheckpointError> {
        Ok(self.wanted(to)?.into_keys().collect())
    }

    fn stored(&self) -> Result<Stored, CheckpointError> {
        let sizes =
            self.line(&["cat-file", "--batch-all-objects", "--batch-check=%(objectsize)"])?;
        let content_bytes = sizes.lines().filter_map(|l| l.parse::<u64>().ok()).sum();
        let mut disk_bytes = 0;
        let mut folders = vec![self.dir.join("objects")];
        while let Some(folder) = folders.pop() {
            for path in entries(&folder)? {
                let meta = fs::symlink_metadata(&path).map_err(io(&path, "look at it"))?;
                if meta.is_dir() { folders.push(path) } else { disk_bytes += meta.len() }
            }
        }
        Ok(Stored { content_bytes, disk_bytes })
    }
}
