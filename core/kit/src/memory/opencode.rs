//! OpenCode's search for instruction files (docs/sources/opencode-vs-claude-code.md §5): it reads
//! the first name found, in every folder up to the root.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Note, PathScope, is_file};

/// File names in order of preference. Only the first name found is read. The last one is
/// deprecated.
pub const OPENCODE_NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];

/// Folders and settings of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCodeFolders {
    /// OpenCode's settings folder.
    pub config: PathBuf,
    pub home: PathBuf,
    pub directory: PathBuf,
    /// Root of the work tree, where the search ends.
    pub worktree: PathBuf,
    /// More files from the settings: paths that start with `~/`, absolute paths, or patterns that
    /// apply in every folder up to the root.
    pub instructions: Vec<String>,
}

/// Finds instruction files in display order: from the working directory up to the root, then a
/// global one, then those from the settings.
pub fn search(folders: &OpenCodeFolders, notes: &mut Vec<Note>) -> Vec<PathBuf> {
    let up: Vec<&Path> =
        folders.directory.ancestors().take_while(|a| a.starts_with(&folders.worktree)).collect();
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
    let global = [folders.config.join("AGENTS.md"), folders.home.join(".claude/CLAUDE.md")];
    add(global.into_iter().find(|p| is_file(p, notes)).into_iter().collect());
    for instruction in &folders.instructions {
        let full = instruction
            .strip_prefix("~/")
            .map_or_else(|| PathBuf::from(instruction), |rest| folders.home.join(rest));
        if full.is_absolute() {
            // Only the last component may be a pattern.
            let pattern =
                full.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            add(full.parent().map_or_else(Vec::new, |dir| matching(dir, &pattern)));
        } else {
            up.iter().for_each(|dir| add(matching(dir, instruction)));
        }
    }
    out
}

/// Returns the files below `dir` that match `pattern`, sorted. Enters subfolders only if the
/// pattern contains `/` or `**` after its fixed prefix.
fn matching(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let (fixed, rest) = match pattern.find(['*', '?', '[', '{']) {
        None => {
            let path = dir.join(pattern);
            return if path.is_file() { vec![path] } else { Vec::new() };
        }
        Some(i) => pattern.split_at(pattern[..i].rfind('/').map_or(0, |s| s + 1)),
    };
    let Ok(scope) = PathScope::new([rest]) else { return Vec::new() };
    let base = dir.join(fixed);
    let deep = rest.contains('/') || rest.contains("**");
    let (mut out, mut open) = (Vec::new(), vec![base.clone()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            match entry.file_type() {
                // Links to folders are not followed: they may form a cycle.
                Ok(t) if t.is_dir() && deep => open.push(path),
                Ok(t)
                    if !t.is_dir() && path.strip_prefix(&base).is_ok_and(|p| scope.matches(p)) =>
                {
                    out.push(path)
                }
                _ => {}
            }
        }
    }
    out.sort();
    out
}
