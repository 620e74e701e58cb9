//! Replays a session's edits on real files in a temporary folder and restores them from checkpoints.
//!
//! Needs a session with `disk_file` entries; without them the files are unknown and nothing is
//! measured. Runs the edit calls and applies the `effects` of other commands. At each rewind of
//! files, restores the checkpoint and compares the tree with the one at the prompt. A call that
//! failed or has no result changes only its `effects`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::OnceLock;

use ctxbench_core::content::ToolCall;
use ctxbench_kit::checkpoint::{
    CheckpointError, EditCheckpoints, FileContent, FileOutcome, RestoreSuccess, Root, ShadowGit,
    Snapshots, Tree, git_version,
};
use ctxbench_session::{Entry, Session, ToolEntry};
use ctxbench_strategies::descriptor::SnapshotKind;

use super::apply;
use ctxbench_os::shutdown::TempFolder;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreMeasurement {
    /// Number of changed files that the checkpoints tracked.
    pub tracked: u64,
    pub success: RestoreSuccess,
    /// Number of files that were refused or failed.
    pub refused: u64,
    /// Bytes stored so far, before compression.
    pub stored_bytes: u64,
}

/// Restores by the zero-based index of the rewind in the session. Rewinds of only the conversation
/// have none.
type Restores = BTreeMap<usize, RestoreMeasurement>;

/// Restores of a session with both kinds of checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRewinds {
    edit_tools: Option<Restores>,
    shadow_git: Option<Restores>,
    /// Reasons why something was not measured, for the user.
    pub remarks: Vec<String>,
}

fn has_git() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| git_version().is_some())
}

impl FileRewinds {
    pub fn replay(session: &Session) -> FileRewinds {
        let mut out = FileRewinds::default();
        let known = session.entries.iter().any(|e| matches!(e, Entry::DiskFile { .. }));
        if !known || !super::rewinds(session).any(|(_, mode)| mode.restores_code()) {
            return out;
        }
        let mut note = |restores: Result<Restores, String>, way: &str| {
            restores
                .map_err(|reason| {
                    out.remarks.push(format!("file rewind by {way} was not measured: {reason}"))
                })
                .ok()
        };
        out.edit_tools = note(replay(session, EditCheckpoints::open_scratch), "edit tools");
        out.shadow_git = match has_git() {
            true => note(replay(session, ShadowGit::open), "shadow git"),
            false => note(Err("git is not installed".into()), "shadow git"),
        };
        out
    }

    /// Returns the restore at the `i`-th rewind of the session, from 0.
    pub fn restored(&self, way: SnapshotKind, i: usize) -> Option<&RestoreMeasurement> {
        let restores = match way {
            SnapshotKind::EditTools => &self.edit_tools,
            SnapshotKind::ShadowGit => &self.shadow_git,
        };
        restores.as_ref()?.get(&i)
    }
}

/// Replays a session with one kind of checkpoints.
fn replay<S: Snapshots>(
    session: &Session,
    open: impl FnOnce(&Path, &Path) -> Result<S, CheckpointError>,
) -> Result<Restores, String> {
    let temp =
        TempFolder::new().map_err(|e| format!("could not create a temporary folder ({e})"))?;
    let root = temp.path().join("files");
    std::fs::create_dir(&root).map_err(|e| format!("could not create a temporary folder ({e})"))?;
    let disk = Root::open(&root).map_err(|e| e.to_string())?;
    for e in &session.entries {
        if let Entry::DiskFile { path, text, .. } = e {
            set(&disk, path, Some(text))?;
        }
    }
    let snapshots = open(&root, &temp.path().join("store")).map_err(|e| e.to_string())?;
    let mut p = FileReplay {
        disk,
        snapshots,
        prompts: Vec::new(),
        calls: HashMap::new(),
        in_step: false,
        clock: 0,
        rewound: false,
    };
    let mut out = Restores::new();
    let mut rewinds = 0;
    let mut order: HashMap<String, usize> = HashMap::new();
    for (at, e) in session.entries.iter().enumerate() {
        p.clock = at as u64;
        match e {
            Entry::User(u) => {
                order.insert(u.id.clone(), at);
                // A subagent's prompt comes from the model and starts no checkpoint.
                if u.agent.is_none() {
                    p.prompt(&u.id, at)?;
                }
            }
            Entry::Assistant(a) => {
                order.insert(a.id.clone(), at);
                let calls = a.all_calls();
                order.extend(calls.iter().map(|c| (c.id.to_string(), at)));
                p.step(calls)?;
            }
            Entry::Tool(t) => p.result(t)?,
            Entry::Rewind { to, mode, .. } => {
                if mode.restores_code() {
                    let to = order.get(to.as_str()).copied().unwrap_or(at);
                    out.insert(rewinds, p.rewind(to)?);
                }
                rewinds += 1;
            }
            _ => {}
        }
    }
    Ok(out)
}

/// Writes or removes a file. New ones have fixed permissions, so that figures do not depend on the
/// umask.
fn set(root: &Root, path: &str, text: Option<&str>) -> Result<(), String> {
    let result = match text {
        Some(t) => {
            let mode = root.read(path).ok().flatten().map_or(0o644, |c| c.mode);
            root.write(path, &FileContent { bytes: t.as_bytes().to_vec(), mode })
        }
        None => root.remove(path),
    };
    result.map_err(|e| e.to_string())
}

struct FileReplay<S> {
    disk: Root,
    snapshots: S,
    /// Index of each prompt in the session, its checkpoint and its tree.
    prompts: Vec<(usize, u64, Tree)>,
    calls: HashMap<String, ToolCall>,
    in_step: bool,
    clock: u64,
    rewound: bool,
}

impl<S: Snapshots> FileReplay<S> {
    fn tree(&self) -> Result<Tree, String> {
        Tree::read(self.disk.dir()).map_err(|e| e.to_string())
    }

    fn end_step(&mut self) -> Result<(), String> {
        match std::mem::take(&mut self.in_step) {
            true => self.snapshots.step_ends().map_err(|e| e.to_string()),
            false => Ok(()),
        }
    }

    fn prompt(&mut self, id: &str, at: usize) -> Result<(), String> {
        self.end_step()?;
        let number = self.snapshots.begin(id, self.clock).map_err(|e| e.to_string())?;
        let tree = self.tree()?;
        self.prompts.push((at, number, tree));
        Ok(())
    }

    fn step(&mut self, calls: Vec<ToolCall>) -> Result<(), String> {
        self.end_step()?;
        if calls.is_empty() {
            return Ok(());
        }
        if self.prompts.is_empty() {
            self.prompt("", 0)?;
        }
        self.snapshots.step_begins().map_err(|e| e.to_string())?;
        self.in_step = true;
        self.calls.extend(calls.into_iter().map(|c| (c.id.to_string(), c)));
        Ok(())
    }

    fn result(&mut self, t: &ToolEntry) -> Result<(), String> {
        if let Some(call) = self.calls.remove(&t.call_id).filter(|_| t.is_error != Some(true)) {
            self.edit(&call)?;
        }
        for e in &t.effects {
            set(&self.disk, &e.path, e.text.as_deref())?;
        }
        Ok(())
    }

    fn edit(&mut self, call: &ToolCall) -> Result<(), String> {
        let with_call = |reason: String| format!("call {}: {reason}", call.id);
        for edit in apply::edits(&call.name, &call.arguments).map_err(with_call)? {
            // Skip files outside the session's folder.
            let Some(path) = edit.inside().and_then(Path::to_str).map(str::to_string) else {
                continue;
            };
            let now = self.disk.read(&path).ok().flatten();
            let now = now.and_then(|c| String::from_utf8(c.bytes).ok());
            let after = match edit.apply(now.as_deref()) {
                Ok(after) => after,
                // After an incomplete restore, later edits of the recording may not apply.
                Err(_) if self.rewound => continue,
                Err(reason) => return Err(with_call(reason)),
            };
            self.snapshots.before_edit(&path).map_err(|e| e.to_string())?;
            set(&self.disk, &path, after.as_deref())?;
        }
        Ok(())
    }

    /// Restores files to the first prompt at or after an index. Without such a prompt, nothing has
    /// changed since.
    fn rewind(&mut self, to: usize) -> Result<RestoreMeasurement, String> {
        self.end_step()?;
        self.rewound = true;
        let before = self.tree()?;
        let (number, then) = match self.prompts.iter().find(|(at, ..)| *at >= to) {
            Some((_, number, tree)) => (*number, tree.clone()),
            None => {
                (self.snapshots.begin("", self.clock).map_err(|e| e.to_string())?, before.clone())
            }
        };
        let tracked = self.snapshots.tracked(number).map_err(|e| e.to_string())?.len() as u64;
        let restored = self.snapshots.restore(number, self.clock).map_err(|e| e.to_string())?;
        let after = self.tree()?;
        Ok(RestoreMeasurement {
            tracked,
            success: Tree::success(&then, &before, &after),
            refused: restored
                .count(|o| matches!(o, FileOutcome::Refused(_) | FileOutcome::Failed(_))),
            stored_bytes: self.snapshots.stored_bytes().map_err(|e| e.to_string())?,
        })
    }
}
