//! File names of a product's memory files.

use super::{IndexLimit, Level};

/// Memory file names of a product with levels.
#[derive(Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Levels in loading order.
    pub order: &'static [Level],
    /// The organisation's file, relative to the system settings.
    pub managed: &'static str,
    /// The user's file, relative to the home folder.
    pub user: &'static str,
    /// The user's rules folder, relative to the home folder.
    pub user_rules: Option<&'static str>,
    /// Project files, in the working directory and each folder above it.
    pub project: &'static [&'static str],
    /// Rules folder, relative to the project root.
    pub rules: &'static str,
    /// The user's file for a project, in the working directory and each folder above it.
    pub local: &'static str,
    /// Files in folders below the working directory, loaded once a file there is touched.
    pub below: &'static [(Level, &'static str)],
    /// JSON settings that list more files in `memory.files`, relative to the project root and to
    /// the home folder.
    pub settings: Option<&'static str>,
    /// Folder with `PROJECT/memory/MEMORY.md`, the automatic memory's index, relative to the home
    /// folder.
    pub projects: &'static str,
    /// Size limit of that index.
    pub index: IndexLimit,
}
