//! Memory files on disk: read within bounds, and what cannot be read is told.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Note;

/// What is said of a folder, or a pipe, that is called like a memory file.
const NO_FILE: &str = "it is no file";
/// Largest memory file that is read, bytes: more tokens than any window holds.
pub const FILE_BYTES: u64 = 8 << 20;
/// Most folders that are searched for memory files that wait.
const FOLDERS: usize = 20_000;
/// Folders of other people's and generated files. Files that begin with a point are left out, too.
const FOREIGN: [&str; 2] = ["node_modules", "target"];

/// Whether a file is there. A folder or a pipe of its name is noted: a product passes over it.
pub fn is_file(path: &Path, notes: &mut Vec<Note>) -> bool {
    let other = fs::metadata(path).is_ok_and(|m| !m.is_file());
    let note = Note::Unreadable { path: path.into(), why: NO_FILE.into() };
    if other && !notes.contains(&note) {
        notes.push(note);
    }
    !other && path.exists()
}

/// A file's text, without the mark of its encoding; bytes that are no text are replaced, which is
/// noted. `None` = there is none, or it cannot be read, which is noted, too.
pub fn read(path: &Path, notes: &mut Vec<Note>) -> Option<String> {
    let text = read_as_it_is(path, notes)?;
    Some(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

fn read_as_it_is(path: &Path, notes: &mut Vec<Note>) -> Option<String> {
    let unreadable = |why: String| Some(Note::Unreadable { path: path.into(), why });
    // Before it is opened: opening a pipe waits for somebody to write into it.
    let problem = match fs::metadata(path) {
        Err(e) if is_absent(&e) => return None,
        Err(e) => unreadable(e.to_string()),
        Ok(m) if !m.is_file() => unreadable(NO_FILE.into()),
        Ok(m) if m.len() > FILE_BYTES => Some(Note::TooLarge { path: path.into(), bytes: m.len() }),
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

/// The folders below one, by name. Hidden ones, those of dependencies and of build output, and
/// links are left out.
pub fn folders_below(dir: &Path, notes: &mut Vec<Note>) -> Vec<PathBuf> {
    let (mut out, mut open) = (Vec::new(), vec![dir.to_path_buf()]);
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok) {
            let name = entry.file_name();
            let foreign = name.to_str().is_some_and(|n| n.starts_with('.') || FOREIGN.contains(&n));
            if !foreign && entry.file_type().is_ok_and(|t| t.is_dir()) {
                out.push(entry.path());
                open.push(entry.path());
            }
        }
        if out.len() > FOLDERS {
            notes.push(Note::TooMany { path: dir, most: FOLDERS });
            break;
        }
    }
    out.sort();
    out
}
