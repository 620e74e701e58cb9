//! Bounded reads of memory files; a file that cannot be read produces a note.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::Note;

/// Reason given for a folder or pipe with the name of a memory file.
const NOT_A_FILE: &str = "not a regular file";
/// Size limit of a memory file in bytes: more tokens than any window has.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum number of folders searched for pending memory files.
const MAX_FOLDERS: usize = 20_000;
/// Folders of dependencies and build output. Hidden folders are skipped as well.
const SKIPPED: [&str; 2] = ["node_modules", "target"];

/// Returns true if `path` exists and is a regular file. Adds a note for a folder or pipe of that
/// name, which products skip.
pub(super) fn is_file(path: &Path, notes: &mut Vec<Note>) -> bool {
    let found = fs::metadata(path);
    if found.as_ref().is_ok_and(|m| !m.is_file()) {
        add_unreadable(path, NOT_A_FILE, notes);
    }
    found.is_ok_and(|m| m.is_file())
}

/// Reads a file as text without its byte-order mark, replacing invalid UTF-8.
///
/// Returns `None` for a missing or unreadable file. Adds a note for replaced bytes and for
/// unreadable files.
pub fn read(path: &Path, notes: &mut Vec<Note>) -> Option<String> {
    // Check before opening: opening a pipe blocks until another process writes to it.
    let found = fs::metadata(path);
    if let Some(size) = found.as_ref().ok().filter(|m| m.is_file()).map(|m| m.len())
        && size > MAX_FILE_BYTES
    {
        let limit = format!("more than the limit of {MAX_FILE_BYTES}");
        Note::add(notes, path, format!("has {size} bytes, {limit}; it is not loaded"));
        return None;
    }
    let bytes = found.and_then(|m| match m.is_file() {
        true => fs::read(path),
        false => Err(io::Error::other(NOT_A_FILE)),
    });
    match bytes {
        Ok(bytes) => {
            let text = String::from_utf8(bytes).unwrap_or_else(|e| {
                Note::add(notes, path, "not UTF-8; invalid bytes are replaced by \u{FFFD}");
                String::from_utf8_lossy(e.as_bytes()).into_owned()
            });
            Some(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
        }
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(e) => {
            add_unreadable(path, e, notes);
            None
        }
    }
}

/// Adds a note about a file that cannot be read.
pub(super) fn add_unreadable(path: &Path, reason: impl std::fmt::Display, notes: &mut Vec<Note>) {
    Note::add(notes, path, format!("could not read it ({reason})"));
}

/// Returns all folders below `dir`, sorted. Skips hidden folders, dependencies, build output and
/// links.
pub(super) fn folders_below(dir: &Path) -> Vec<PathBuf> {
    let is_searched = |name: &str| !name.starts_with('.') && !SKIPPED.contains(&name);
    let walk = WalkDir::new(dir).min_depth(1).sort_by_file_name().into_iter();
    let folders = walk
        .filter_entry(|e| e.file_type().is_dir() && e.file_name().to_str().is_none_or(is_searched));
    let mut out: Vec<PathBuf> =
        folders.filter_map(Result::ok).map(|e| e.into_path()).take(MAX_FOLDERS).collect();
    out.sort();
    out
}
