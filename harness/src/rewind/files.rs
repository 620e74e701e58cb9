//! The files of a session, played in a folder of their own with the real checkpoints of either way.
//!
//! A session that says what is on disk (`disk_file`) has its edit calls carried out on real files,
//! and what its commands changed (`effects`) with them; at each rewind of files the checkpoints
//! restore, and the tree is held against the one at the prompt. Without a `disk_file` nothing is
//! known of the files, and nothing is measured. Only results that came count: a call that failed,
//! or whose result never came, changed nothing but its `effects`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::OnceLock;

use ctxbench_core::content::ToolCall;
use ctxbench_core::session::{Entry, Session, ToolEntry};
use ctxbench_kit::checkpoint::{
    CheckpointError, Content, Durability, EditCheckpoints, FileOutcome, Keep, Root, ShadowGit,
    Snapshots, Success, Tree, git_version,
};
use ctxbench_strategies::descriptor::CodeWay;

use super::apply;
use crate::shutdown::TempFolder;

/// What one restoration of files did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// Files that the way knew to have changed.
    pub tracked: u64,
    /// What came back.
    pub success: Success,
    /// Files that were refused or failed.
    pub refused: u64,
    /// What the way keeps by now, bytes before compression.
    pub stored_bytes: u64,
}

/// A way's restorations, by the number of the rewind in the session; rewinds of something else have
/// none.
type Plays = BTreeMap<usize, Played>;

/// The files of a session at its rewinds, one play per way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    edit_tools: Option<Plays>,
    shadow_git: Option<Plays>,
    /// What could not be measured, and why; a sentence for people.
    pub remarks: Vec<String>,
}

/// Whether there is a git program; asked once.
fn git() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| git_version().is_some())
}

impl Files {
    /// Plays the files of a session.
    pub fn played(session: &Session) -> Files {
        let mut out = Files::default();
        let known = session.entries.iter().any(|e| matches!(e, Entry::DiskFile { .. }));
        if !known || !super::asked(session).any(|(_, mode)| mode.restores_code()) {
            return out;
        }
        let mut note = |plays: Result<Plays, String>, way: &str| {
            plays
                .map_err(|why| {
                    out.remarks.push(format!("rewind of files by {way} is not measured: {why}"))
                })
                .ok()
        };
        out.edit_tools = note(
            play(session, |root, store| {
                EditCheckpoints::open_with(root, store, Keep::default(), Durability::Scratch)
            }),
            "edit tools",
        );
        out.shadow_git = match git() {
            true => note(play(session, ShadowGit::open), "shadow git"),
            false => note(Err("there is no git program on this machine".into()), "shadow git"),
        };
        out
    }

    /// What a way did at the `i`-th rewind of the session, from 0.
    pub fn restored(&self, way: CodeWay, i: usize) -> Option<&Played> {
        let plays = match way {
            CodeWay::EditTools => &self.edit_tools,
            CodeWay::ShadowGit => &self.shadow_git,
        };
        plays.as_ref()?.get(&i)
    }
}

/// Plays a session with one way.
fn play<S: Snapshots>(
    session: &Session,
    open: impl FnOnce(&Path, &Path) -> Result<S, CheckpointError>,
) -> Result<Plays, String> {
    let temp = TempFolder::new().map_err(|e| format!("no folder could be made for it ({e})"))?;
    let root = temp.path().join("files");
    std::fs::create_dir(&root).map_err(|e| format!("no folder could be made for it ({e})"))?;
    let disk = Disk { root: Root::open(&root).map_err(|e| e.to_string())? };
    for e in &session.entries {
        if let Entry::DiskFile { path, text, .. } = e {
            disk.set(path, Some(text))?;
        }
    }
    let way = open(&root, &temp.path().join("store")).map_err(|e| e.to_string())?;
    let mut p = Player {
        disk,
        way,
        points: Vec::new(),
        calls: HashMap::new(),
        in_step: false,
        clock: 0,
        rewound: false,
    };
    let mut out = Plays::new();
    let mut rewinds = 0;
    let mut order: HashMap<String, usize> = HashMap::new();
    for (at, e) in session.entries.iter().enumerate() {
        p.clock = at as u64;
        match e {
            Entry::User(u) => {
                order.insert(u.id.clone(), at);
                // A subagent's prompt is the model's and makes no checkpoint.
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

struct Disk {
    root: Root,
}

impl Disk {
    fn set(&self, path: &str, text: Option<&str>) -> Result<(), String> {
        let safe = self.root.resolve(path).map_err(|e| e.to_string())?;
        let done = match text {
            // Permissions are given, so that no machine's mask enters a figure.
            Some(t) => {
                let mode = self.root.read(&safe).ok().flatten().map_or(0o644, |c| c.mode);
                self.root.write(&safe, &Content { bytes: t.as_bytes().to_vec(), mode })
            }
            None => self.root.remove(&safe),
        };
        done.map_err(|e| e.to_string())
    }

    fn text(&self, path: &str) -> Option<String> {
        let safe = self.root.resolve(path).ok()?;
        self.root.read(&safe).ok().flatten().and_then(|c| String::from_utf8(c.bytes).ok())
    }
}

struct Player<S> {
    disk: Disk,
    way: S,
    /// Prompts: their place in the session, checkpoint and tree.
    points: Vec<(usize, u64, Tree)>,
    calls: HashMap<String, ToolCall>,
    in_step: bool,
    clock: u64,
    rewound: bool,
}

impl<S: Snapshots> Player<S> {
    fn tree(&self) -> Result<Tree, String> {
        Tree::read(self.disk.root.dir()).map_err(|e| e.to_string())
    }

    fn end_step(&mut self) -> Result<(), String> {
        match std::mem::take(&mut self.in_step) {
            true => self.way.step_ends().map_err(|e| e.to_string()),
            false => Ok(()),
        }
    }

    fn prompt(&mut self, id: &str, at: usize) -> Result<(), String> {
        self.end_step()?;
        let number = self.way.begin(id, self.clock).map_err(|e| e.to_string())?;
        let tree = self.tree()?;
        self.points.push((at, number, tree));
        Ok(())
    }

    fn step(&mut self, calls: Vec<ToolCall>) -> Result<(), String> {
        self.end_step()?;
        if calls.is_empty() {
            return Ok(());
        }
        if self.points.is_empty() {
            self.prompt("", 0)?;
        }
        self.way.step_begins().map_err(|e| e.to_string())?;
        self.in_step = true;
        self.calls.extend(calls.into_iter().map(|c| (c.id.to_string(), c)));
        Ok(())
    }

    fn result(&mut self, t: &ToolEntry) -> Result<(), String> {
        if let Some(call) = self.calls.remove(&t.call_id).filter(|_| t.is_error != Some(true)) {
            self.edit(&call)?;
        }
        for e in &t.effects {
            self.disk.set(&e.path, e.text.as_deref())?;
        }
        Ok(())
    }

    fn edit(&mut self, call: &ToolCall) -> Result<(), String> {
        let said = |why: String| format!("call {}: {why}", call.id);
        for edit in apply::edits(&call.name, &call.arguments).map_err(said)? {
            // A file elsewhere is none of the session's.
            let Some(path) = edit.inside().and_then(Path::to_str).map(str::to_string) else {
                continue;
            };
            let after = match edit.after(self.disk.text(&path).as_deref()) {
                Ok(after) => after,
                // The recorded agent went on from files that came back whole; with a blind spot
                // they did not.
                Err(_) if self.rewound => continue,
                Err(why) => return Err(said(why)),
            };
            self.way.before_edit(&path).map_err(|e| e.to_string())?;
            self.disk.set(&path, after.as_deref())?;
        }
        Ok(())
    }

    /// Files go back to the first prompt at or behind a place; where there is none nothing has
    /// happened since.
    fn rewind(&mut self, to: usize) -> Result<Played, String> {
        self.end_step()?;
        self.rewound = true;
        let before = self.tree()?;
        let (number, then) = match self.points.iter().find(|(at, ..)| *at >= to) {
            Some((_, number, tree)) => (*number, tree.clone()),
            None => (self.way.begin("", self.clock).map_err(|e| e.to_string())?, before.clone()),
        };
        let tracked = self.way.tracked(number).map_err(|e| e.to_string())?.len() as u64;
        let done = self.way.restore(number, self.clock).map_err(|e| e.to_string())?;
        let after = self.tree()?;
        Ok(Played {
            tracked,
            success: Tree::success(&then, &before, &after),
            refused: done.count(|o| matches!(o, FileOutcome::Refused(_) | FileOutcome::Failed(_))),
            stored_bytes: self.way.stored().map_err(|e| e.to_string())?.content_bytes,
        })
    }
}
