//! Loads memory files by level, and more of them as the session touches matching files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::import::{MAX_IMPORT_DEPTH, imports, looks_like_a_path, normalize, resolve_import};
use super::scope::front_matter;
use super::settings::{memory_files, read_json_settings};
use super::{
    Activation, CutOff, Level, LoadRequest, LoadedFiles, MemoryFile, MemoryLayout, Note, PathScope,
    ProjectFolders, cut_index, folders_below, read,
};

/// Memory files of a session.
#[derive(Debug)]
pub struct Levels {
    layout: &'static MemoryLayout,
    folders: ProjectFolders,
    loaded: Vec<MemoryFile>,
    /// Files for certain paths, none of which was touched yet.
    pending: Vec<MemoryFile>,
    /// Folders below the working directory that were searched.
    visited: BTreeSet<PathBuf>,
    /// Approved files outside the project.
    approved: BTreeSet<PathBuf>,
    notes: Vec<Note>,
}

impl Levels {
    /// Loads all levels. Calls `approve` once for each import from outside the project. Pass
    /// [`Levels::approved`] to the next session.
    pub fn load(
        layout: &'static MemoryLayout,
        folders: ProjectFolders,
        approved: BTreeSet<PathBuf>,
        approve: &mut dyn FnMut(&Path) -> bool,
    ) -> Self {
        let mut out = Levels {
            layout,
            folders,
            approved,
            loaded: vec![],
            pending: vec![],
            visited: BTreeSet::new(),
            notes: vec![],
        };
        out.read_levels(approve);
        out
    }

    /// Loads the files of a session that touched `request.touched`, followed by pending files.
    pub fn load_for(layout: &'static MemoryLayout, request: &LoadRequest<'_>) -> LoadedFiles {
        let approve = &mut |_: &Path| request.approve;
        let mut all = Levels::load(layout, request.folders.clone(), BTreeSet::new(), approve);
        for path in request.touched {
            all.touch(path, approve);
        }
        for folder in folders_below(&all.folders.directory, &mut all.notes) {
            all.read_folder(&folder, Activation::Pending, approve);
        }
        let Levels { loaded: mut files, pending, notes, .. } = all;
        files.extend(pending);
        LoadedFiles { files, notes }
    }

    /// Returns the loaded files, broadest level first.
    pub fn files(&self) -> &[MemoryFile] {
        &self.loaded
    }

    /// Returns problems and omissions.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the approved imports from outside the project.
    pub fn approved(&self) -> &BTreeSet<PathBuf> {
        &self.approved
    }

    /// Handles a file that the agent reads or edits: loads memory files in the folders that lead to
    /// it and rules that match it. Returns the number of new files, which are at the end of
    /// [`Levels::files`].
    pub fn touch(&mut self, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) -> usize {
        let before = self.loaded.len();
        let full = normalize(&self.folders.directory.join(path));
        let mut folders: Vec<&Path> =
            full.ancestors().skip(1).take_while(|a| *a != self.folders.directory).collect();
        if !full.starts_with(&self.folders.directory) {
            folders.clear();
        }
        let folders: Vec<PathBuf> = folders.into_iter().rev().map(PathBuf::from).collect();
        for folder in folders {
            self.read_folder(&folder, Activation::Touched, approve);
        }
        let Ok(inside) = full.strip_prefix(&self.folders.root) else {
            return self.loaded.len() - before;
        };
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|f| f.scope.as_ref().is_some_and(|s| s.matches(inside)));
        self.pending = later;
        self.loaded.extend(now.into_iter().map(|f| MemoryFile { when: Activation::Touched, ..f }));
        self.loaded.len() - before
    }

    /// Reloads all files from disk after a compaction. Drops files loaded for a path until a
    /// matching path is touched again (docs/sources/claude-code.md §1.4).
    pub fn reload(&mut self, approve: &mut dyn FnMut(&Path) -> bool) {
        self.loaded.clear();
        self.pending.clear();
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
        let ProjectFolders { etc, home, root, directory } = self.folders.clone();
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
                let user_file = home.join(layout.user);
                found.extend(all.filter(|p| *p != user_file));
            }
            Level::Rules => found = self.rules(Some(root.join(layout.rules))),
            Level::Settings => found = self.listed(),
            Level::Local => found.extend(above.iter().map(|f| f.join(layout.local))),
            Level::Auto => {
                let project = home.join(layout.projects).join(self.folders.project_name());
                found.push(project.join("memory/MEMORY.md"));
            }
        }
        for path in found {
            self.read(level, &path, approve);
        }
    }

    /// Returns the files listed in settings, relative to the root. The project's settings come
    /// first.
    fn listed(&mut self) -> Vec<PathBuf> {
        let Some(name) = self.layout.settings else { return Vec::new() };
        let mut out = Vec::new();
        for by in [self.folders.root.join(name), self.folders.home.join(name)] {
            let Some(settings) = read_json_settings(&by, &mut self.notes) else { continue };
            for (file, required) in memory_files(&settings) {
                let path =
                    resolve_import(&self.folders.root.join("settings"), &self.folders.home, file);
                if required && !path.exists() {
                    self.notes.push(Note::NotThere { by: by.clone(), listed: file.into() });
                }
                out.push(path);
            }
        }
        out
    }

    /// Returns the rules below a folder, sorted. Follows links, but visits each folder once.
    fn rules(&mut self, dir: Option<PathBuf>) -> Vec<PathBuf> {
        let (mut out, mut open, mut visited) = (Vec::new(), Vec::from_iter(dir), BTreeSet::new());
        while let Some(dir) = open.pop() {
            let Ok(real) = dir.canonicalize() else { continue };
            if !visited.insert(real) {
                continue;
            }
            let entries = match fs::read_dir(&dir) {
                Ok(entries) => entries,
                Err(e) => {
                    self.notes.push(Note::Unreadable { path: dir, reason: e.to_string() });
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

    /// Loads the files of a folder below the working directory, once.
    fn read_folder(
        &mut self,
        dir: &Path,
        when: Activation,
        approve: &mut dyn FnMut(&Path) -> bool,
    ) {
        if !self.visited.insert(dir.into()) {
            return;
        }
        let inside = dir.strip_prefix(&self.folders.root).unwrap_or(dir).to_string_lossy();
        let scope = PathScope::for_folder(&inside);
        for (level, name) in self.layout.below {
            let path = dir.join(name);
            if self.contains(&path) {
                continue;
            }
            let Some(text) = read(&path, &mut self.notes) else { continue };
            let file =
                MemoryFile { scope: scope.clone(), when, ..MemoryFile::new(*level, path, text) };
            self.add_with_imports(file, &mut Vec::new(), approve);
        }
    }

    fn contains(&self, path: &Path) -> bool {
        self.loaded.iter().chain(&self.pending).any(|f| f.path == path)
    }

    /// Loads a file, if it exists, and its imports.
    fn read(&mut self, level: Level, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) {
        if self.contains(path) {
            return;
        }
        let Some(text) = read(path, &mut self.notes) else { return };
        let mut file = MemoryFile::new(level, path, text);
        match level {
            Level::Rules => {
                let (body, patterns) = front_matter(&file.text);
                if !patterns.is_empty() {
                    match PathScope::new(patterns) {
                        Ok(s) => (file.scope, file.when) = (Some(s), Activation::Pending),
                        Err((pattern, reason)) => {
                            self.notes.push(Note::BadPattern { path: path.into(), pattern, reason })
                        }
                    }
                }
                file.text = body.to_string();
            }
            Level::Auto => {
                let limit = self.layout.index;
                let (kept, rest) = cut_index(&file.text, limit);
                let cut_off = CutOff::measure(rest);
                self.notes.extend(cut_off.map(|cut_off| Note::IndexCut {
                    path: path.into(),
                    limit,
                    cut_off,
                }));
                (file.rest, file.text) = (rest.to_string(), kept.to_string());
            }
            _ => {}
        }
        self.add_with_imports(file, &mut Vec::new(), approve);
    }

    /// Adds a file and its imports. `importers` are the files that lead here.
    fn add_with_imports(
        &mut self,
        file: MemoryFile,
        importers: &mut Vec<PathBuf>,
        approve: &mut dyn FnMut(&Path) -> bool,
    ) {
        let by = file.path.clone();
        let (level, scope, when) = (file.level, file.scope.clone(), file.when);
        let found: Vec<String> = imports(&file.text).into_iter().map(String::from).collect();
        match when {
            Activation::Pending => self.pending.push(file),
            Activation::Start | Activation::Touched => self.loaded.push(file),
        }
        importers.push(by.clone());
        for import in found {
            let path = resolve_import(&by, &self.folders.home, &import);
            if importers.contains(&path) {
                // Two spellings of a path can import the same file.
                let note = Note::Cycle { by: by.clone(), path };
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            } else if self.contains(&path) {
                // Already loaded by another path.
            } else if !path.is_file() {
                if looks_like_a_path(&import) {
                    self.notes.push(Note::Missing { by: by.clone(), import });
                }
            } else if importers.len() > MAX_IMPORT_DEPTH {
                self.notes.push(Note::TooDeep {
                    by: by.clone(),
                    path,
                    depth: importers.len(),
                    max: MAX_IMPORT_DEPTH,
                });
            } else if !self.is_allowed(&path, approve) {
                self.notes.push(Note::NotApproved { by: by.clone(), path });
            } else if let Some(text) = read(&path, &mut self.notes) {
                let file = MemoryFile {
                    scope: scope.clone(),
                    imported_by: Some(by.clone()),
                    depth: importers.len(),
                    when,
                    ..MemoryFile::new(level, path, text)
                };
                self.add_with_imports(file, importers, approve);
            }
        }
        importers.pop();
    }

    /// Returns true if an import is inside the project or approved. Resolves links first, because a
    /// link in the project can point outside it.
    fn is_allowed(&mut self, path: &Path, approve: &mut dyn FnMut(&Path) -> bool) -> bool {
        let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
        let (path, root) = (real(path), real(&self.folders.root));
        path.starts_with(root)
            || self.approved.contains(&path)
            || (approve(&path) && self.approved.insert(path))
    }
}
