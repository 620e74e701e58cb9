//! Claude Code's levels, in their order.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::import::{MOST_DEPTH, imports, looks_like_a_path, target, tidy};
use super::scope::front_matter;
use super::{Level, MemoryFile, Note, Scope, cut_index};

/// The folders that are searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Folder of the organisation's file.
    pub managed: PathBuf,
    /// Home folder.
    pub home: PathBuf,
    /// Root of the project: imports from outside need an approval.
    pub root: PathBuf,
    /// Working directory, in the project.
    pub directory: PathBuf,
    /// Folder of the automatic memory.
    pub auto: PathBuf,
}

impl Places {
    /// The usual places on Linux (docs/sources/chat-history.md §5.1). The root is the nearest
    /// folder with `.git`, else the directory itself; the automatic memory is the root's, its name
    /// with `-` for whatever is neither letter nor digit.
    pub fn usual(home: &Path, directory: &Path) -> Self {
        let root = directory
            .ancestors()
            .find(|a| a.join(".git").exists())
            .unwrap_or(directory)
            .to_path_buf();
        let name: String = root
            .to_string_lossy()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .collect();
        Places {
            managed: "/etc/claude-code".into(),
            home: home.into(),
            auto: home.join(".claude/projects").join(name).join("memory"),
            root,
            directory: directory.into(),
        }
    }
}

/// The memory files of a session: what is shown now, and what comes with a file that they hold for.
#[derive(Debug)]
pub struct Claude {
    places: Places,
    shown: Vec<MemoryFile>,
    /// Rules for some paths that no path has brought in yet.
    waiting: Vec<MemoryFile>,
    /// Folders below the directory whose files have been looked for.
    visited: BTreeSet<PathBuf>,
    /// Files outside of the project that a person agreed to.
    approved: BTreeSet<PathBuf>,
    notes: Vec<Note>,
}

impl Claude {
    /// Reads all levels. `approve` is asked once for each import from outside of the project; keep
    /// [`Claude::approved`] for the next session.
    pub fn load(
        places: Places,
        approved: BTreeSet<PathBuf>,
        approve: &mut dyn FnMut(&Path) -> bool,
    ) -> Self {
        let mut out = Claude {
            places,
            approved,
            shown: vec![],
            waiting: vec![],
            visited: BTreeSet::new(),
            notes: vec![],
        };
        out.read_levels(approve);
        out
    }

    /// What is shown, the broadest first.
    pub fn shown(&self) -> &[MemoryFile] {
        &self.shown
    }

    /// What was left out, and why.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The imports from outside of the project that were agreed to.
    pub fn approved(&self) -> &BTreeSet<PathBuf> {
        &self.approved
    }

    /// The agent reads or edits a file: the memory files of the folders on the way to it and the
    /// rules that hold for it come in. Returns how many are new; they stand at the end of
    /// [`Claude::shown`].
    pub fn touch(&mut self, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) -> usize {
        let before = self.shown.len();
        let full = tidy(&self.places.directory.join(path));
        let folders: Vec<PathBuf> = full
            .ancestors()
            .skip(1)
            .take_while(|a| *a != self.places.directory)
            .map(PathBuf::from)
            .collect();
        if full.starts_with(&self.places.directory) {
            for folder in folders.into_iter().rev() {
                if self.visited.insert(folder.clone()) {
                    self.read(Level::Project, &folder.join("CLAUDE.md"), approve);
                    self.read(Level::Local, &folder.join("CLAUDE.local.md"), approve);
                }
            }
        }
        let Ok(inside) = full.strip_prefix(&self.places.root) else {
            return self.shown.len() - before;
        };
        let (now, later) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|f| f.scope.as_ref().is_some_and(|s| s.holds(inside)));
        self.waiting = later;
        self.shown.extend::<Vec<_>>(now);
        self.shown.len() - before
    }

    /// After a compaction everything is read from disk again, and what came with a path is gone
    /// until the next such path (docs/sources/claude-code.md §1.4).
    pub fn compacted(&mut self, approve: &mut dyn FnMut(&Path) -> bool) {
        self.shown.clear();
        self.waiting.clear();
        self.visited.clear();
        self.notes.clear();
        self.read_levels(approve);
    }

    fn read_levels(&mut self, approve: &mut dyn FnMut(&Path) -> bool) {
        let Places { managed, home, root, directory, auto } = self.places.clone();
        self.read(Level::Managed, &managed.join("CLAUDE.md"), approve);
        self.read(Level::User, &home.join(".claude/CLAUDE.md"), approve);
        let mut above: Vec<&Path> = directory.ancestors().collect();
        above.reverse();
        for folder in &above {
            self.read(Level::Project, &folder.join("CLAUDE.md"), approve);
            if *folder != home {
                self.read(Level::Project, &folder.join(".claude/CLAUDE.md"), approve);
            }
        }
        for rule in self.rules(&root.join(".claude/rules")) {
            self.read(Level::Rules, &rule, approve);
        }
        for folder in &above {
            self.read(Level::Local, &folder.join("CLAUDE.local.md"), approve);
        }
        self.read(Level::Auto, &auto.join("MEMORY.md"), approve);
    }

    /// The rules below a folder, by name. Links are followed, a folder that is met again is not.
    fn rules(&mut self, dir: &Path) -> Vec<PathBuf> {
        let (mut out, mut open, mut met) = (Vec::new(), vec![dir.to_path_buf()], BTreeSet::new());
        while let Some(dir) = open.pop() {
            let Ok(real) = dir.canonicalize() else { continue };
            if !met.insert(real) {
                continue;
            }
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(e) => {
                    self.notes.push(Note::Unreadable { path: dir, why: e.to_string() });
                    continue;
                }
            };
            for path in entries.filter_map(Result::ok).map(|e| e.path()) {
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|e| e == "md") {
                    out.push(path);
                }
            }
        }
        out.sort();
        out
    }

    /// Reads a file that may well not exist, and what it imports.
    fn read(&mut self, level: Level, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) {
        if self.shown.iter().chain(&self.waiting).any(|f| f.path == path) {
            return;
        }
        let Some(text) = self.text(path) else { return };
        let (mut shown, mut scope, mut lost) = (text.as_str(), None, None);
        match level {
            Level::Rules => {
                let (body, patterns) = front_matter(shown);
                shown = body;
                if !patterns.is_empty() {
                    match Scope::new(patterns) {
                        Ok(s) => scope = Some(s),
                        Err((pattern, why)) => {
                            self.notes.push(Note::BadPattern { path: path.into(), pattern, why })
                        }
                    }
                }
            }
            Level::Auto => {
                (shown, lost) = cut_index(shown);
                self.notes.extend(lost.map(|lost| Note::IndexCut { path: path.into(), lost }));
            }
            _ => {}
        }
        let file = MemoryFile {
            level,
            path: path.into(),
            text: shown.into(),
            scope,
            imported_by: None,
            lost,
        };
        self.with_imports(file, &mut Vec::new(), approve);
    }

    /// Shows a file, then what it imports. `on_the_way` are the files that lead here.
    fn with_imports(
        &mut self,
        file: MemoryFile,
        on_the_way: &mut Vec<PathBuf>,
        approve: &mut dyn FnMut(&Path) -> bool,
    ) {
        let (by, level, scope) = (file.path.clone(), file.level, file.scope.clone());
        let wanted: Vec<String> = imports(&file.text).into_iter().map(String::from).collect();
        if scope.is_some() {
            self.waiting.push(file)
        } else {
            self.shown.push(file)
        }
        on_the_way.push(by.clone());
        for import in wanted {
            let path = target(&by, &self.places.home, &import);
            if on_the_way.contains(&path) {
                self.notes.push(Note::Cycle { by: by.clone(), path });
            } else if self.shown.iter().chain(&self.waiting).any(|f| f.path == path) {
                // Shown already, by another way.
            } else if !path.is_file() {
                if looks_like_a_path(&import) {
                    self.notes.push(Note::Missing { by: by.clone(), import });
                }
            } else if on_the_way.len() > MOST_DEPTH {
                self.notes.push(Note::TooDeep {
                    by: by.clone(),
                    path,
                    depth: on_the_way.len(),
                    most: MOST_DEPTH,
                });
            } else if !self.may_read(&path, approve) {
                self.notes.push(Note::NotApproved { by: by.clone(), path });
            } else if let Some(text) = self.text(&path) {
                let file = MemoryFile {
                    level,
                    path,
                    text,
                    scope: scope.clone(),
                    imported_by: Some(by.clone()),
                    lost: None,
                };
                self.with_imports(file, on_the_way, approve);
            }
        }
        on_the_way.pop();
    }

    /// Links are followed before a path is judged: a file of the project may lead out of it.
    fn may_read(&mut self, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) -> bool {
        let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
        let (path, root) = (real(path), real(&self.places.root));
        path.starts_with(root)
            || self.approved.contains(&path)
            || (approve(&path) && self.approved.insert(path))
    }

    /// A file's text; bytes that are no text are replaced. `None` = there is none, or it cannot be
    /// read, which is noted.
    fn text(&mut self, path: &Path) -> Option<String> {
        match fs::read(path) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
            Err(e) => {
                self.notes.push(Note::Unreadable { path: path.into(), why: e.to_string() });
                None
            }
        }
    }
}
