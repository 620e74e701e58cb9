//! Memory files on levels: what is shown now, and what comes with a file that it holds for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::import::{MOST_DEPTH, imports, looks_like_a_path, target, tidy};
use super::scope::front_matter;
use super::settings::{json_settings, listed};
use super::{
    Layout, Level, Loaded, Lost, MemoryFile, Note, Scope, Site, Visit, When, cut_index,
    folders_below, read,
};

/// The memory files of a session.
#[derive(Debug)]
pub struct Levels {
    layout: &'static Layout,
    site: Site,
    shown: Vec<MemoryFile>,
    /// Files for some paths that no path has brought in yet.
    waiting: Vec<MemoryFile>,
    /// Folders below the directory whose files have been looked for.
    visited: BTreeSet<PathBuf>,
    /// Files outside of the project that a person agreed to.
    approved: BTreeSet<PathBuf>,
    notes: Vec<Note>,
}

impl Levels {
    /// Reads all levels. `approve` is asked once for each import from outside of the project; keep
    /// [`Levels::approved`] for the next session.
    pub fn load(
        layout: &'static Layout,
        site: Site,
        approved: BTreeSet<PathBuf>,
        approve: &mut dyn FnMut(&Path) -> bool,
    ) -> Self {
        let mut out = Levels {
            layout,
            site,
            approved,
            shown: vec![],
            waiting: vec![],
            visited: BTreeSet::new(),
            notes: vec![],
        };
        out.read_levels(approve);
        out
    }

    /// What a session has after it touched some files, and what still waits.
    pub fn visit(layout: &'static Layout, visit: &Visit<'_>) -> Loaded {
        let approve = &mut |_: &Path| visit.approve;
        let mut all = Levels::load(layout, visit.site.clone(), BTreeSet::new(), approve);
        for path in visit.touched {
            all.touch(path, approve);
        }
        for folder in folders_below(&all.site.directory, &mut all.notes) {
            all.read_folder(&folder, When::Waits, approve);
        }
        let Levels { mut shown, waiting, notes, .. } = all;
        shown.extend(waiting);
        Loaded { files: shown, notes }
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
    /// [`Levels::shown`].
    pub fn touch(&mut self, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) -> usize {
        let before = self.shown.len();
        let full = tidy(&self.site.directory.join(path));
        let mut folders: Vec<&Path> =
            full.ancestors().skip(1).take_while(|a| *a != self.site.directory).collect();
        if !full.starts_with(&self.site.directory) {
            folders.clear();
        }
        let folders: Vec<PathBuf> = folders.into_iter().rev().map(PathBuf::from).collect();
        for folder in folders {
            self.read_folder(&folder, When::Touched, approve);
        }
        let Ok(inside) = full.strip_prefix(&self.site.root) else {
            return self.shown.len() - before;
        };
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|f| f.scope.as_ref().is_some_and(|s| s.holds(inside)));
        self.waiting = later;
        self.shown.extend(now.into_iter().map(|f| MemoryFile { when: When::Touched, ..f }));
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
        for level in self.layout.order {
            self.read_level(*level, approve);
        }
    }

    fn read_level(&mut self, level: Level, approve: &mut dyn FnMut(&Path) -> bool) {
        let Site { etc, home, root, directory } = self.site.clone();
        let layout = self.layout;
        let mut above: Vec<&Path> = directory.ancestors().collect();
        above.reverse();
        let mut found: Vec<PathBuf> = Vec::new();
        match level {
            Level::Managed => found.push(etc.join(layout.managed)),
            Level::User => {
                self.read(level, &home.join(layout.user), approve);
                for rule in self.rules(layout.user_rules.map(|r| home.join(r))) {
                    self.read(Level::Rules, &rule, approve);
                }
            }
            Level::Project => {
                let all = above.iter().flat_map(|f| layout.project.iter().map(|n| f.join(n)));
                let of_person = home.join(layout.user);
                found.extend(all.filter(|p| *p != of_person));
            }
            Level::Rules => found = self.rules(Some(root.join(layout.rules))),
            Level::Settings => found = self.listed(),
            Level::Local => found.extend(above.iter().map(|f| f.join(layout.local))),
            Level::Auto => {
                let project = home.join(layout.projects).join(self.site.project_name());
                found.push(project.join("memory/MEMORY.md"));
            }
        }
        for path in found {
            self.read(level, &path, approve);
        }
    }

    /// The files that settings list, relative to the root; those of the project first.
    fn listed(&mut self) -> Vec<PathBuf> {
        let Some(name) = self.layout.settings else { return Vec::new() };
        let mut out = Vec::new();
        for by in [self.site.root.join(name), self.site.home.join(name)] {
            let Some(settings) = json_settings(&by, &mut self.notes) else { continue };
            for (file, required) in listed(&settings) {
                let path = target(&self.site.root.join("settings"), &self.site.home, file);
                if required && !path.exists() {
                    self.notes.push(Note::NotThere { by: by.clone(), listed: file.into() });
                }
                out.push(path);
            }
        }
        out
    }

    /// The rules below a folder, by name. Links are followed, a folder that is met again is not.
    fn rules(&mut self, dir: Option<PathBuf>) -> Vec<PathBuf> {
        let (mut out, mut open, mut met) = (Vec::new(), Vec::from_iter(dir), BTreeSet::new());
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

    /// The files of a folder below the directory, unless it was met before.
    fn read_folder(&mut self, dir: &Path, when: When, approve: &mut dyn FnMut(&Path) -> bool) {
        if !self.visited.insert(dir.into()) {
            return;
        }
        let inside = dir.strip_prefix(&self.site.root).unwrap_or(dir).to_string_lossy();
        let scope = Scope::of_folder(&inside);
        for (level, name) in self.layout.below {
            let path = dir.join(name);
            if self.has(&path) {
                continue;
            }
            let Some(text) = read(&path, &mut self.notes) else { continue };
            let file =
                MemoryFile { scope: scope.clone(), when, ..MemoryFile::new(*level, path, text) };
            self.with_imports(file, &mut Vec::new(), approve);
        }
    }

    fn has(&self, path: &Path) -> bool {
        self.shown.iter().chain(&self.waiting).any(|f| f.path == path)
    }

    /// Reads a file that may well not exist, and what it imports.
    fn read(&mut self, level: Level, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) {
        if self.has(path) {
            return;
        }
        let Some(text) = read(path, &mut self.notes) else { return };
        let mut file = MemoryFile::new(level, path, text);
        match level {
            Level::Rules => {
                let (body, patterns) = front_matter(&file.text);
                if !patterns.is_empty() {
                    match Scope::new(patterns) {
                        Ok(s) => (file.scope, file.when) = (Some(s), When::Waits),
                        Err((pattern, why)) => {
                            self.notes.push(Note::BadPattern { path: path.into(), pattern, why })
                        }
                    }
                }
                file.text = body.to_string();
            }
            Level::Auto => {
                let limit = self.layout.index;
                let (shown, rest) = cut_index(&file.text, limit);
                let lost = Lost::of(rest);
                self.notes.extend(lost.map(|lost| Note::IndexCut {
                    path: path.into(),
                    limit,
                    lost,
                }));
                (file.rest, file.text) = (rest.to_string(), shown.to_string());
            }
            _ => {}
        }
        self.with_imports(file, &mut Vec::new(), approve);
    }

    /// Shows a file, then what it imports. `on_the_way` are the files that lead here.
    fn with_imports(
        &mut self,
        file: MemoryFile,
        on_the_way: &mut Vec<PathBuf>,
        approve: &mut dyn FnMut(&Path) -> bool,
    ) {
        let by = file.path.clone();
        let (level, scope, when) = (file.level, file.scope.clone(), file.when);
        let wanted: Vec<String> = imports(&file.text).into_iter().map(String::from).collect();
        match when {
            When::Waits => self.waiting.push(file),
            When::Start | When::Touched => self.shown.push(file),
        }
        on_the_way.push(by.clone());
        for import in wanted {
            let path = target(&by, &self.site.home, &import);
            if on_the_way.contains(&path) {
                // The same file may be named in two ways.
                let note = Note::Cycle { by: by.clone(), path };
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            } else if self.has(&path) {
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
            } else if let Some(text) = read(&path, &mut self.notes) {
                let file = MemoryFile {
                    scope: scope.clone(),
                    imported_by: Some(by.clone()),
                    depth: on_the_way.len(),
                    when,
                    ..MemoryFile::new(level, path, text)
                };
                self.with_imports(file, on_the_way, approve);
            }
        }
        on_the_way.pop();
    }

    /// Links are followed before a path is judged: a file of the project may lead out of it.
    fn may_read(&mut self, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) -> bool {
        let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
        let (path, root) = (real(path), real(&self.site.root));
        path.starts_with(root)
            || self.approved.contains(&path)
            || (approve(&path) && self.approved.insert(path))
    }
}
