//! Where a session runs, and what it has touched.

use std::path::{Path, PathBuf};

/// The folders that memory files are looked for in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Settings of the whole machine, usually `/etc`.
    pub etc: PathBuf,
    /// Home folder.
    pub home: PathBuf,
    /// Root of the project: imports from outside need an approval.
    pub root: PathBuf,
    /// Working directory, in the project.
    pub directory: PathBuf,
}

impl Site {
    /// The root is the nearest folder with `.git`, else the directory itself.
    pub fn new(etc: &Path, home: &Path, directory: &Path) -> Self {
        let root = directory.ancestors().find(|a| a.join(".git").exists()).unwrap_or(directory);
        Site { etc: etc.into(), home: home.into(), root: root.into(), directory: directory.into() }
    }

    /// The folders from the directory up to the root of the project.
    pub fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.directory.ancestors().take_while(|a| a.starts_with(&self.root))
    }

    /// The root as a name of one folder: `-` for whatever is neither letter nor digit
    /// (docs/sources/chat-history.md §5.1).
    pub fn project_name(&self) -> String {
        let name = self.root.to_string_lossy();
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    }

    /// How a person would write a path: from the directory or the home folder.
    pub fn short(&self, path: &Path) -> String {
        let mut ways = self.ways();
        let found = ways.find_map(|(folder, short)| Some((path.strip_prefix(folder).ok()?, short)));
        found.map_or_else(|| path.display().to_string(), |(p, s)| format!("{s}{}", p.display()))
    }

    /// A sentence with its paths as a person would write them.
    pub fn shorten(&self, sentence: &str) -> String {
        self.ways().fold(sentence.to_string(), |out, (folder, short)| {
            // The root of the file system begins every path.
            match folder.parent() {
                Some(_) => out.replace(&format!("{}/", folder.display()), &short),
                None => out,
            }
        })
    }

    /// Folders, the nearest first, and how a path from there begins.
    fn ways(&self) -> impl Iterator<Item = (&Path, String)> {
        let up = self.upwards().enumerate().map(|(i, folder)| (folder, "../".repeat(i)));
        up.chain([(self.home.as_path(), "~/".to_string())])
    }
}

/// What a product's memory files are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Visit<'a> {
    /// Where.
    pub site: &'a Site,
    /// Files that the agent has read or edited, from the directory.
    pub touched: &'a [PathBuf],
    /// Whether imports from outside of the project are agreed to.
    pub approve: bool,
}
