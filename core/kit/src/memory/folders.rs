//! Folders to search, and the request to load memory files from them.

use std::path::{Path, PathBuf};

use ctxbench_util::files;

use super::MemoryTable;

/// Folders that contain memory files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectFolders {
    /// System-wide settings, usually `/etc`.
    pub etc: PathBuf,
    pub home: PathBuf,
    pub root: PathBuf,
    /// Working directory, inside `root`.
    pub directory: PathBuf,
}

impl ProjectFolders {
    /// Uses the nearest folder with `.git` as the root, or `directory` if there is none.
    pub fn new(etc: &Path, home: &Path, directory: &Path) -> Self {
        let root = files::repository_root(directory).unwrap_or(directory);
        ProjectFolders {
            etc: etc.into(),
            home: home.into(),
            root: root.into(),
            directory: directory.into(),
        }
    }

    /// Returns the folders from the working directory up to the project root.
    pub fn up_to_root(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take_while(|a| a.starts_with(&self.root))
    }

    /// Returns the root path as a folder name, with `-` for every character that is not an ASCII
    /// letter or digit (docs/sources/chat-history.md §5.1).
    pub fn project_name(&self) -> String {
        let name = self.root.to_string_lossy();
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    }

    /// Formats a path relative to the working directory or as `~/…`.
    pub fn short_path(&self, path: &Path) -> String {
        let mut prefixes = self.prefixes();
        let found =
            prefixes.find_map(|(folder, short)| Some((path.strip_prefix(folder).ok()?, short)));
        found.map_or_else(|| path.display().to_string(), |(p, s)| format!("{s}{}", p.display()))
    }

    /// Shortens every path in a message, as [`ProjectFolders::short_path`] does.
    pub fn shorten_paths(&self, message: &str) -> String {
        self.prefixes().fold(message.to_string(), |out, (folder, short)| {
            // Skip the root of the file system: it begins every path.
            match folder.parent() {
                Some(_) => out.replace(&format!("{}/", folder.display()), &short),
                None => out,
            }
        })
    }

    /// Returns folders, nearest first, with the short prefix of each.
    fn prefixes(&self) -> impl Iterator<Item = (&Path, String)> {
        let up = self.up_to_root().enumerate().map(|(i, folder)| (folder, "../".repeat(i)));
        up.chain([(self.home.as_path(), "~/".to_string())])
    }
}

/// A request to load a product's memory files.
#[derive(Clone, Debug)]
pub struct LoadRequest<'a> {
    /// The files that the product reads.
    pub table: MemoryTable,
    pub folders: &'a ProjectFolders,
    /// Files that the agent has read or edited, relative to the working directory.
    pub touched: &'a [PathBuf],
}
