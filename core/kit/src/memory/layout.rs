//! The names under which a product keeps its memory files.

use super::{IndexLimit, Level};

/// A product with memory files on levels.
#[derive(Debug, PartialEq, Eq)]
pub struct Layout {
    /// The levels in the order in which they are read.
    pub order: &'static [Level],
    /// The organisation's file, from the machine's settings.
    pub managed: &'static str,
    /// The person's file, from home.
    pub user: &'static str,
    /// The person's rules, from home.
    pub user_rules: Option<&'static str>,
    /// Files of the project, in the directory and every folder above it.
    pub project: &'static [&'static str],
    /// Folder of rules, from the root of the project.
    pub rules: &'static str,
    /// The person's file for a project, in the directory and every folder above it.
    pub local: &'static str,
    /// Files of a folder below the directory, shown once something there is touched.
    pub below: &'static [(Level, &'static str)],
    /// JSON files whose `memory.files` lists further ones, from the root of the project and from
    /// home.
    pub settings: Option<&'static str>,
    /// Folder from home that holds `PROJECT/memory/MEMORY.md`, the index of the automatic memory.
    pub projects: &'static str,
    /// How much of that index is shown.
    pub index: IndexLimit,
}
