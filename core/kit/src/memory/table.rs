//! Tables of the memory files that products read.

use serde::Deserialize;

use super::{IndexLimit, Level};

/// Memory files of a product.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryTable {
    /// Rows in loading order.
    pub rows: Vec<Row>,
    /// True if `@path` in a file loads the file at that path as well.
    pub imports: bool,
    /// Size limit of files at [`Level::Auto`].
    pub index: IndexLimit,
}

/// Files of a level, looked up by name in certain folders.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub level: Level,
    pub base: Base,
    /// Paths relative to a folder, or to the home folder with `~/`. They may be patterns, and
    /// `{project}` is the name of the project's folder ([`super::ProjectFolders::project_name`]).
    #[serde(default)]
    pub names: Vec<String>,
    /// JSON settings with more names ([`super::listed_files`]).
    #[serde(default)]
    pub listed_in: Option<String>,
    #[serde(default)]
    pub pick: Pick,
    /// True if the folder nearest to the working directory, or to a touched file, comes first.
    #[serde(default)]
    pub nearest_first: bool,
}

impl Row {
    /// Creates a row of all files with these names.
    pub fn new(level: Level, base: Base, names: &[&str]) -> Row {
        let names = names.iter().map(|n| n.to_string()).collect();
        Row { level, base, names, listed_in: None, pick: Pick::All, nearest_first: false }
    }
}

/// Folders in which the names of a row are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Base {
    /// System-wide settings.
    Etc,
    Home,
    Root,
    /// The working directory and each folder above it, without the user's own files.
    Above,
    /// The working directory and each folder above it up to the project root.
    Project,
    /// Each folder below the working directory, loaded once a file there is touched.
    Below,
}

/// Files of a row that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    #[default]
    All,
    /// In each folder, the first name that exists.
    First,
    /// The first name that exists in any of the folders, in each folder that has it.
    OneName,
}
