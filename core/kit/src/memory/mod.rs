//! Memory files: instructions and facts stored outside the conversation and loaded again after
//! each compaction.
//!
//! - [`load()`] loads the files of a product's [`MemoryTable`], with imports, scoped rules and a
//!   truncated index (docs/sources/claude-code.md §1.4, §1.5; docs/sources/chat-history.md §5.1).
//! - [`merge`] moves durable facts from a compaction into a memory file
//!   (docs/sources/opencode-vs-claude-code.md §10.3).
//!
//! Loading never fails. A file that cannot be read produces a [`Note`].

mod disk;
mod folders;
mod import;
mod load;
mod migrate;
mod scope;
mod settings;
mod table;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use thiserror::Error;

pub use disk::read;
use disk::{folders_below, is_file};
pub use folders::{LoadRequest, ProjectFolders};
pub use load::load;
pub use migrate::{DurableFacts, merge};
pub use scope::{PathScope, front_matter};
pub use settings::{listed_files, parse_jsonc, read_settings};
pub use table::{Base, MemoryTable, Pick, Row};

/// The level of a memory file, from the broadest to the most specific. Later levels take
/// precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Set by the organisation.
    Managed,
    /// The user's file for all projects.
    User,
    /// A file in the project, or in a folder above or below it.
    Project,
    /// Rules by topic; some apply to certain paths only.
    Rules,
    /// Listed in a settings file.
    Settings,
    /// The user's file for this project.
    Local,
    /// Notes that the agent wrote.
    Auto,
}

impl Level {
    /// Returns the name used in output.
    pub fn name(self) -> &'static str {
        match self {
            Level::Managed => "managed",
            Level::User => "user",
            Level::Project => "project",
            Level::Rules => "rules",
            Level::Settings => "settings",
            Level::Local => "local",
            Level::Auto => "auto",
        }
    }
}

/// The event that adds a memory file to the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Loaded at the start of a session and after each compaction.
    Start,
    /// Loaded because a matching file was touched. Removed by the next compaction.
    Touched,
    /// The file is not loaded yet, because no matching file was touched.
    Pending,
}

/// A memory file as the model sees it.
#[derive(Clone, Debug)]
pub struct MemoryFile {
    /// The file's level. An import has the level of its importer.
    pub level: Level,
    pub path: PathBuf,
    /// Text without front matter, truncated to the limit.
    pub text: String,
    /// Text beyond the limit.
    pub rest: String,
    /// Paths that the file applies to, relative to the project root; `None` = all.
    pub scope: Option<PathScope>,
    pub imported_by: Option<PathBuf>,
    /// Number of imports that lead to this file; 0 = not imported.
    pub depth: usize,
    pub when: Activation,
}

impl MemoryFile {
    /// Creates a file that is loaded in full from the start.
    pub fn new(level: Level, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        MemoryFile {
            level,
            path: path.into(),
            text: text.into(),
            rest: String::new(),
            scope: None,
            imported_by: None,
            depth: 0,
            when: Activation::Start,
        }
    }

    /// Returns the size of the text beyond the limit, if any.
    pub fn cut_off(&self) -> Option<CutOff> {
        CutOff::measure(&self.rest)
    }
}

/// Memory files that a product loads for a project.
#[derive(Clone, Debug, Default)]
pub struct LoadedFiles {
    /// Loaded files in display order, followed by pending ones.
    pub files: Vec<MemoryFile>,
    /// Problems and omissions, for the user.
    pub notes: Vec<Note>,
}

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

/// Maximum size of an index in the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct IndexLimit {
    pub lines: usize,
    /// Maximum bytes; `None` = unlimited.
    pub bytes: Option<usize>,
}

impl fmt::Display for IndexLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines", self.lines)?;
        self.bytes.map_or(Ok(()), |n| write!(f, " and {n} bytes"))
    }
}

/// Size of the text beyond the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// Number of lines, including a last line without a newline.
    pub lines: usize,
    pub bytes: usize,
}

impl fmt::Display for CutOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.lines == 1 { "" } else { "s" };
        write!(f, "{} line{s} ({} bytes)", self.lines, self.bytes)
    }
}

impl CutOff {
    /// Measures the text beyond the limit; `None` if it is empty.
    pub fn measure(rest: &str) -> Option<CutOff> {
        (!rest.is_empty()).then(|| CutOff { lines: rest.lines().count(), bytes: rest.len() })
    }
}

/// Splits `text` after the last whole line within both limits. Splits a first line that is too
/// long between characters.
pub fn cut_index(text: &str, limit: IndexLimit) -> (&str, &str) {
    let max_bytes = limit.bytes.unwrap_or(usize::MAX);
    let mut end = 0;
    for line in text.split_inclusive('\n').take(limit.lines) {
        if end + line.len() > max_bytes {
            break;
        }
        end += line.len();
    }
    if end == 0 && limit.lines > 0 {
        end = text.floor_char_boundary(max_bytes);
    }
    text.split_at(end)
}
