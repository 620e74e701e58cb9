//! Problems with memory files, for the user.

use std::path::PathBuf;

use thiserror::Error;

/// A problem with a memory file, or a file that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}: {text}", path.display())]
pub struct Note {
    /// The file, or the file that names it.
    pub path: PathBuf,
    /// The problem and its remedy.
    pub text: String,
}

impl Note {
    /// Adds a note unless it is already there.
    pub fn add(notes: &mut Vec<Note>, path: impl Into<PathBuf>, text: impl Into<String>) {
        let note = Note { path: path.into(), text: text.into() };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}
