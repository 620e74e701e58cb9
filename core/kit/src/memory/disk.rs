//! Bounded reads of memory files; a file that cannot be read produces a note.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Note;

/// Reason given for a folder or pipe with the name of a memory file.
const NOT_A_FILE: &str = "not a regular file";
/// Size limit of a memory file in bytes: more tokens than any window has.
pub const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum number of folders searched for pending memory files.
const MAX_FOLDERS: usize = 20_000;
/// Folders of dependencies and build output. Hidden folders are skipped as well.
const SKIPPED: [&str; 2] = ["node_modules", "target"];

/// Returns true if `path` exists and is a regular file. Adds a note for a folder or pipe of that
/// name, which products skip.
pub fn is_file(path: &Path, notes: &mut Vec<Note>) -> bool {
    let other = fs::metadata(path).is_ok_and(|m| !m.is_file());
    let note = Note::Unreadable { path: path.into(), reason: NOT_A_FILE.into() };
    if other && !notes.contains(&note) {
        notes.push(note);
    }
    !other && path.exists()
}

/// Reads a file as text without its byte-order mark, replacing invalid UTF-8.
///
/// Returns `None` for a missing or unreadable file. Adds a note for replaced bytes and for
/// unreadable files.
pub fn read(path: &Path, notes: &mut Vec<Note>) -> Option<String> {
    let text = read_raw(path, notes)?;
    Some(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

fn read_raw(path: &Path, notes: &mut Vec<Note>) -> Option<String> {
    let unreadable = |reason: String| Some(Note::Unreadable { path: path.into(), reason });
    // Check before opening: opening a pipe blocks until another process writes to it.
    let problem = match fs::metadata(path) {
        Err(e) if is_absent(&e) => return None,
        Err(e) => unreadable(e.to_string()),
        Ok(m) if !m.is_file() => unreadable(NOT_A_FILE.into()),
        Ok(m) if m.len() > MAX_FILE_BYTES => {
            Some(Note::TooLarge { path: path.into(), bytes: m.len() })
        }
        Ok(_) => None,
    };
    if let Some(problem) = problem {
        notes.push(problem);
        return None;
    }
    match fs::read(path) {
        Ok(bytes) => Some(String::from_utf8(bytes).unwrap_or_else(|e| {
            notes.push(Note::NotUtf8 { path: path.into() });
            String::from_utf8_lossy(e.as_bytes()).into_owned()
        })),
        Err(e) if is_absent(&e) => None,
        Err(e) => {
            notes.extend(unreadable(e.to_string()));
            None
        }
    }
}

fn is_absent(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Returns all folders below `dir`, sorted. Skips hidden folders, dependencies, build output and
/// links.
pub fn folders_below(dir: &Path, notes: &mut Vec<Note>) -> Vec<PathBuf> {
    let (mut out, mut open) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok) {
            let name = entry.file_name();
            let skipped = name.to_str().is_some_and(|n| n.starts_with('.') || SKIPPED.contains(&n));
            if !skipped && entry.file_type().is_ok_and(|t| t.is_dir()) {
                out.push(entry.path());
                open.push(entry.path());
            }
        }
        if out.len() > MAX_FOLDERS {
            notes.push(Note::TooMany { path: dir, max: MAX_FOLDERS });
            break;
        }
    }
    out.sort();
    out
}
