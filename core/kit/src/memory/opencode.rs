//! OpenCode's search for instruction files (docs/sources/opencode-vs-claude-code.md §5): it reads
//! the first name found, in every folder up to the root.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::{Level, Note, PathScope, ProjectFolders, is_file};

/// File names in order of preference. Only the first name found is read. The last one is
/// deprecated.
pub const OPENCODE_NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];

/// Finds instruction files in display order: from the working directory up to the root, then a
/// global one, then those from the settings.
///
/// `config` is OpenCode's settings folder. `instructions` are the files that the settings list:
/// paths that start with `~/`, absolute paths, or patterns that apply in every folder up to the
/// root.
pub fn search(
    folders: &ProjectFolders,
    config: &Path,
    instructions: &[String],
    notes: &mut Vec<Note>,
) -> Vec<(Level, PathBuf)> {
    let up: Vec<&Path> = folders.up_to_root().collect();
    let mut out: Vec<(Level, PathBuf)> = Vec::new();
    let mut add = |level, found: Vec<PathBuf>| {
        for path in found {
            if !out.iter().any(|(_, p)| *p == path) {
                out.push((level, path));
            }
        }
    };
    for name in OPENCODE_NAMES {
        let found: Vec<_> = up.iter().map(|d| d.join(name)).filter(|p| is_file(p, notes)).collect();
        if !found.is_empty() {
            add(Level::Project, found);
            break;
        }
    }
    let global = [config.join("AGENTS.md"), folders.home.join(".claude/CLAUDE.md")];
    add(Level::User, Vec::from_iter(global.into_iter().find(|p| is_file(p, notes))));
    for instruction in instructions {
        let full = instruction
            .strip_prefix("~/")
            .map_or_else(|| PathBuf::from(instruction), |rest| folders.home.join(rest));
        if full.is_absolute() {
            // Only the last component may be a pattern.
            let pattern = full.file_name().unwrap_or_default().to_string_lossy();
            let folder = full.parent().unwrap_or(&full);
            add(Level::Settings, matching(folder, &pattern));
        } else {
            up.iter().for_each(|dir| add(Level::Settings, matching(dir, instruction)));
        }
    }
    out
}

/// Returns the files below `dir` that match `pattern`, sorted. Enters subfolders only if the
/// pattern contains `/` or `**` after its fixed prefix.
fn matching(dir: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some(first) = pattern.find(['*', '?', '[', '{']) else {
        let path = dir.join(pattern);
        return if path.is_file() { vec![path] } else { Vec::new() };
    };
    let (fixed, rest) = pattern.split_at(pattern[..first].rfind('/').map_or(0, |s| s + 1));
    let Ok(scope) = PathScope::new([rest]) else { return Vec::new() };
    let base = dir.join(fixed);
    let depth = if rest.contains('/') || rest.contains("**") { usize::MAX } else { 1 };
    let found = WalkDir::new(&base).min_depth(1).max_depth(depth).into_iter();
    let mut out: Vec<PathBuf> = found
        .filter_map(Result::ok)
        .filter(|e| !e.file_type().is_dir())
        .map(|e| e.into_path())
        .filter(|p| p.strip_prefix(&base).is_ok_and(|p| scope.matches(p)))
        .collect();
    out.sort();
    out
}
