//! Tables of the memory files that products read.

use super::{IndexLimit, Level};

/// Memory files of a product.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryTable<'a> {
    /// Rows in loading order.
    pub rows: &'a [Row<'a>],
    /// True if `@path` in a file loads the file at that path as well.
    pub imports: bool,
    /// Size limit of files at [`Level::Auto`].
    pub index: IndexLimit,
}

/// Files of a level, looked up by name in certain folders.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub level: Level,
    pub base: Base,
    /// Paths relative to a folder, or to the home folder with `~/`. They may be patterns.
    pub names: &'a [&'a str],
    pub pick: Pick,
    /// True if the folder nearest to the working directory, or to a touched file, comes first.
    pub nearest_first: bool,
}

impl<'a> Row<'a> {
    /// Creates a row of all files with these names.
    pub const fn new(level: Level, base: Base, names: &'a [&'a str]) -> Row<'a> {
        Row { level, base, names, pick: Pick::All, nearest_first: false }
    }
}

/// Folders in which the names of a row are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// System-wide settings.
    Etc,
    Home,
    /// The project root.
    Root,
    /// The working directory and each folder above it, without the user's own files.
    Above,
    /// The working directory and each folder above it up to the project root.
    Project,
    /// Each folder below the working directory, loaded once a file there is touched.
    Below,
}

/// Files of a row that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    All,
    /// In each folder, the first name that exists.
    First,
    /// The first name that exists in any of the folders, in each folder that has it.
    OneName,
}
