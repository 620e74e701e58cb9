//! Memory files: instructions and knowledge that live outside of the conversation and come into it
//! again after every compaction.
//!
//! Claude Code's six levels with imports, scoped rules and an index that is cut
//! (docs/sources/claude-code.md §1.4, §1.5; docs/sources/chat-history.md §5.1), OpenCode's search
//! (docs/sources/opencode-vs-claude-code.md §5), and the migration of durable facts at a compaction
//! (docs/sources/opencode-vs-claude-code.md §10.3). Reading never fails as a whole: what could not
//! be read is a [`Note`].

mod import;
mod index;
mod levels;
mod migrate;
mod note;
mod opencode;
mod scope;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub use index::{INDEX_BYTES, INDEX_LINES, Lost, cut_index};
pub use levels::{Claude, Places};
pub use migrate::{Durable, Merged, merge};
pub use note::Note;
pub use opencode::{OpenCode, search};
pub use scope::{Scope, front_matter};

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
    /// Of the project, by topic, some for certain paths only.
    Rules,
    /// Of a person, for this project.
    Local,
    /// What the agent noted itself.
    Auto,
}

/// A memory file as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryFile {
    /// Its level; that of the importing file for an import.
    pub level: Level,
    /// Where it was read.
    pub path: PathBuf,
    /// Its text, front matter left out, cut where it is an index.
    pub text: String,
    /// The paths for which it is shown; `None` = always.
    pub scope: Option<Scope>,
    /// The file that imports it.
    pub imported_by: Option<PathBuf>,
    /// What was cut from its end.
    pub lost: Option<Lost>,
}
