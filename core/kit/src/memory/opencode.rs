//! OpenCode's search for instruction files (docs/sources/opencode-vs-claude-code.md §5): one name
//! wins, and wherever it stands on the way up it is read.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Note, Scope, is_file};

/// Names that are looked for, the first one found is the only one read; the last is deprecated.
pub const OPENCODE_NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];

/// The folders that are searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCode {
    /// OpenCode's folder of settings.
    pub config: PathBuf,
    /// Home folder.
    pub home: PathBuf,
    /// Working directory.
    pub directory: PathBuf,
    /// The search ends here: the root of the work tree.
    pub worktree: PathBuf,
    /// Further files by the settings: paths from `~/`, full ones, or patterns that are tried in
    /// every folder on the way up.
    pub instructions: Vec<String>,
}

/// The files in the order in which they are shown: those on the way up, nearest first, then a
/// global one, then those of the settings.
pub fn search(places: &OpenCode, notes: &mut Vec<Note>) -> Vec<PathBuf> {
    let up: Vec<&Path> =
        places.directory.ancestors().take_while(|a| a.starts_with(&places.worktree)).collect();
    let mut out: Vec<PathBuf> = Vec::new();
    let mut add = |found: Vec<PathBuf>| {
        found.into_iter().for_each(|p| {
            if !out.contains(&p) {
                out.push(p)
            }
        })
    };
    for name in OPENCODE_NAMES {
        let found: Vec<_> = up.iter().map(|d| d.join(name)).filter(|p| is_file(p, notes)).collect();
        if !found.is_empty() {
            add(found);
            break;
        }
    }
    let global = [places.config.join("AGENTS.md"), places.home.join(".claude/CLAUDE.md")];
    add(global.into_iter().find(|p| is_file(p, notes)).into_iter().collect());
    for instruction in &places.instructions {
        let full = instruction
            .strip_prefix("~/")
            .map_or_else(|| PathBuf::from(instruction), |rest| places.home.join(rest));
        if full.is_absolute() {
            // A pattern in the last part only.
            let pattern =
                full.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            add(full.parent().map_or_else(Vec::new, |dir| matching(dir, &pattern)));
        } else {
            up.iter().for_each(|dir| add(matching(dir, instruction)));
        }
    }
    out
}

/// The files below a folder that a pattern fits, by name. Folders without a wildcard on the way are
/// entered only if they are named.
fn matching(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let (fixed, rest) = match pattern.find(['*', '?', '[', '{']) {
        None => {
            let path = dir.join(pattern);
            return if path.is_file() { vec![path] } else { Vec::new() };
        }
        Some(i) => pattern.split_at(pattern[..i].rfind('/').map_or(0, |s| s + 1)),
    };
    let Ok(scope) = Scope::new([rest]) else { return Vec::new() };
    let base = dir.join(fixed);
    let deep = rest.contains('/') || rest.contains("**");
    let (mut out, mut open) = (Vec::new(), vec![base.clone()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            match entry.file_type() {
                // Links to folders are not followed: they can lead back.
                Ok(t) if t.is_dir() && deep => open.push(path),
                Ok(t) if !t.is_dir() && path.strip_prefix(&base).is_ok_and(|p| scope.holds(p)) => {
                    out.push(path)
                }
                _ => {}
            }
        }
    }
    out.sort();
    out
}
