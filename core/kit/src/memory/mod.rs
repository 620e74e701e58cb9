//! Memory files: instructions and knowledge that live outside of the conversation and come into it
//! again after every compaction.
//!
//! Levels with imports, scoped rules and an index that is cut, with the names of a [`Layout`]
//! (docs/sources/claude-code.md §1.4, §1.5; docs/sources/chat-history.md §5.1), OpenCode's search
//! (docs/sources/opencode-vs-claude-code.md §5), and the migration of durable facts at a compaction
//! (docs/sources/opencode-vs-claude-code.md §10.3). Reading never fails as a whole: what could not
//! be read is a [`Note`].

mod disk;
mod import;
mod index;
mod layout;
mod levels;
mod migrate;
mod note;
mod opencode;
mod scope;
mod settings;
mod site;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use disk::{FILE_BYTES, folders_below, is_file, read};
pub use index::{IndexLimit, Lost, cut_index};
pub use layout::Layout;
pub use levels::Levels;
pub use migrate::{Durable, Merged, merge};
pub use note::Note;
pub use opencode::{OPENCODE_NAMES, OpenCode, search};
pub use scope::{Scope, front_matter};
pub use settings::{json_settings, jsonc, jsonc_settings};
pub use site::{Site, Visit};

/// Where a memory file stands, the broadest first: what comes later is more specific and takes
/// precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Of the organisation.
    Managed,
    /// Of a person, for all projects.
    User,
    /// Of the project and the folders above and below it.
    Project,
    /// By topic, some for certain paths only.
    Rules,
    /// Listed in settings.
    Settings,
    /// Of a person, for this project.
    Local,
    /// What the agent noted itself.
    Auto,
}

impl Level {
    /// One word.
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

/// Since when a memory file is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The start of a session, and again after a compaction.
    Start,
    /// A file that it holds for was touched; a compaction takes it away.
    Touched,
    /// No file that it holds for was touched yet.
    Waits,
}

/// A memory file as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// Its level; that of the importing file for an import.
    pub level: Level,
    /// Where it was read.
    pub path: PathBuf,
    /// Its text, front matter left out, cut where it is too long.
    pub text: String,
    /// What was cut from its end.
    pub rest: String,
    /// The paths for which it is shown, from the root of the project; `None` = always.
    pub scope: Option<Scope>,
    /// The file that imports it.
    pub imported_by: Option<PathBuf>,
    /// Imports between it and a file that nobody imports.
    pub depth: usize,
    /// Since when it is shown.
    pub when: When,
}

impl MemoryFile {
    /// A file that is shown from the start, as a whole.
    pub fn new(level: Level, path: impl Into<PathBuf>, text: impl Into<String>) -> Self {
        MemoryFile {
            level,
            path: path.into(),
            text: text.into(),
            rest: String::new(),
            scope: None,
            imported_by: None,
            depth: 0,
            when: When::Start,
        }
    }

    /// What was cut from its end.
    pub fn lost(&self) -> Option<Lost> {
        Lost::of(&self.rest)
    }
}

/// What a product reads from a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// In the order in which they are shown, then those that wait.
    pub files: Vec<MemoryFile>,
    /// What was left out, and why.
    pub notes: Vec<Note>,
}
