//! Loads memory files by level, and more of them as the session touches matching files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ctxbench_util::files::{FileError, walk_into};

use super::disk::add_unreadable;
use super::import::{MAX_IMPORT_DEPTH, imports, looks_like_a_path, normalize, resolve_import};
use super::scope::front_matter;
use super::settings::{memory_files, read_settings};
use super::{
    Activation, CutOff, Level, LoadRequest, LoadedFiles, MemoryFile, MemoryLayout, Note, PathScope,
    cut_index, folders_below, read,
};

/// Loads the files of a session that touched `request.touched`, broadest level first, followed by
/// pending files.
pub fn load_levels(layout: &MemoryLayout, request: &LoadRequest<'_>) -> LoadedFiles {
    let mut all = Loader {
        layout,
        request,
        loaded: Vec::new(),
        pending: Vec::new(),
        visited: BTreeSet::new(),
        notes: Vec::new(),
    };
    layout.order.iter().for_each(|level| all.read_level(*level));
    request.touched.iter().for_each(|path| all.touch(path));
    for folder in folders_below(&request.folders.directory, &mut all.notes) {
        all.read_folder(&folder, Activation::Pending);
    }
    let mut files = all.loaded;
    files.extend(all.pending);
    LoadedFiles { files, notes: all.notes }
}

struct Loader<'a> {
    layout: &'a MemoryLayout,
    request: &'a LoadRequest<'a>,
    loaded: Vec<MemoryFile>,
    /// Files for certain paths, none of which was touched yet.
    pending: Vec<MemoryFile>,
    /// Folders below the working directory that were searched.
    visited: BTreeSet<PathBuf>,
    notes: Vec<Note>,
}

impl Loader<'_> {
    /// Handles a file that the agent reads or edits: loads memory files in the folders that lead to
    /// it and rules that match it.
    fn touch(&mut self, path: &Path) {
        let folders = self.request.folders;
        let full = normalize(&folders.directory.join(path));
        if full.starts_with(&folders.directory) {
            let above = full.ancestors().skip(1).take_while(|a| *a != folders.directory);
            let above: Vec<&Path> = above.collect();
            above.iter().rev().for_each(|f| self.read_folder(f, Activation::Touched));
        }
        let Ok(inside) = full.strip_prefix(&folders.root) else { return };
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|f| f.scope.as_ref().is_some_and(|s| s.matches(inside)));
        self.pending = later;
        self.loaded.extend(now.into_iter().map(|f| MemoryFile { when: Activation::Touched, ..f }));
    }

    fn read_level(&mut self, level: Level) {
        let (folders, layout) = (self.request.folders, self.layout);
        let mut above: Vec<&Path> = folders.directory.ancestors().collect();
        above.reverse();
        let user = folders.home.join(layout.user);
        let found: Vec<PathBuf> = match level {
            Level::Managed => vec![folders.etc.join(layout.managed)],
            Level::User => {
                self.read(level, &user);
                let rules = layout.user_rules.map(|rules| self.rules(&folders.home.join(rules)));
                rules.into_iter().flatten().for_each(|rule| self.read(Level::Rules, &rule));
                return;
            }
            Level::Project => {
                let all = above.iter().flat_map(|f| layout.project.iter().map(|n| f.join(n)));
                all.filter(|p| *p != user).collect()
            }
            Level::Rules => self.rules(&folders.root.join(layout.rules)),
            Level::Settings => self.listed(),
            Level::Local => above.iter().map(|f| f.join(layout.local)).collect(),
            Level::Auto => {
                let project = folders.home.join(layout.projects).join(folders.project_name());
                vec![project.join("memory/MEMORY.md")]
            }
        };
        found.iter().for_each(|path| self.read(level, path));
    }

    /// Returns the files listed in settings, relative to the root. The project's settings come
    /// first.
    fn listed(&mut self) -> Vec<PathBuf> {
        let Some(name) = self.layout.settings else { return Vec::new() };
        let folders = self.request.folders;
        let mut out = Vec::new();
        for by in [folders.root.join(name), folders.home.join(name)] {
            let parse =
                |text: &str| serde_json::from_str(text).map_err(|e| format!("invalid JSON: {e}"));
            let Some(settings) = read_settings(&by, parse, &mut self.notes) else { continue };
            for (file, required) in memory_files(&settings) {
                let path = resolve_import(&folders.root.join("settings"), &folders.home, file);
                if required && !path.exists() {
                    let problem = "which does not exist; correct the path or remove it";
                    Note::add(&mut self.notes, &by, format!("lists {file}, {problem}"));
                }
                out.push(path);
            }
        }
        out
    }

    /// Returns the rules below a folder, sorted. Follows links, but visits each folder once.
    fn rules(&mut self, dir: &Path) -> Vec<PathBuf> {
        if !dir.is_dir() {
            return Vec::new();
        }
        let mut rules = walk_into(
            dir,
            |_| true,
            |unread| {
                if let FileError::Io { path, source, .. } = unread {
                    add_unreadable(&path, source, &mut self.notes);
                }
            },
        );
        rules.retain(|path| path.extension().is_some_and(|e| e == "md"));
        rules
    }

    /// Loads the files of a folder below the working directory, once.
    fn read_folder(&mut self, dir: &Path, when: Activation) {
        if !self.visited.insert(dir.into()) {
            return;
        }
        let inside = dir.strip_prefix(&self.request.folders.root).unwrap_or(dir).to_string_lossy();
        let scope = PathScope::for_folder(&inside);
        for (level, name) in self.layout.below {
            let path = dir.join(name);
            if self.contains(&path) {
                continue;
            }
            let Some(text) = read(&path, &mut self.notes) else { continue };
            let file =
                MemoryFile { scope: scope.clone(), when, ..MemoryFile::new(*level, path, text) };
            self.add_with_imports(file, &mut Vec::new());
        }
    }

    fn contains(&self, path: &Path) -> bool {
        self.loaded.iter().chain(&self.pending).any(|f| f.path == path)
    }

    /// Loads a file, if it exists, and its imports.
    fn read(&mut self, level: Level, path: &Path) {
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
                            let text = format!(
                                "`{pattern}` is not a valid path pattern ({reason}); the rule \
                                 applies to all files"
                            );
                            Note::add(&mut self.notes, path, text);
                        }
                    }
                }
                file.text = body.to_string();
            }
            Level::Auto => {
                let limit = self.layout.index;
                let (kept, rest) = cut_index(&file.text, limit);
                if let Some(lost) = CutOff::measure(rest) {
                    let text = format!(
                        "only the first {limit} are loaded, the last {lost} are not; move details \
                         to other files"
                    );
                    Note::add(&mut self.notes, path, text);
                }
                (file.rest, file.text) = (rest.to_string(), kept.to_string());
            }
            _ => {}
        }
        self.add_with_imports(file, &mut Vec::new());
    }

    /// Adds a file and its imports. `importers` are the files that lead here.
    fn add_with_imports(&mut self, file: MemoryFile, importers: &mut Vec<PathBuf>) {
        let by = file.path.clone();
        let (level, scope, when) = (file.level, file.scope.clone(), file.when);
        let found: Vec<String> = imports(&file.text).into_iter().map(String::from).collect();
        match when {
            Activation::Pending => self.pending.push(file),
            Activation::Start | Activation::Touched => self.loaded.push(file),
        }
        importers.push(by.clone());
        for import in found {
            let path = resolve_import(&by, &self.request.folders.home, &import);
            let (shown, depth) = (path.display(), importers.len());
            let problem = if importers.contains(&path) {
                format!("imports {shown}, which imports it in turn; it is loaded once")
            } else if self.contains(&path) {
                // Already loaded by another path.
                continue;
            } else if !path.is_file() {
                if !looks_like_a_path(&import) {
                    continue;
                }
                let problem = "which does not exist; correct the path or remove the line";
                format!("imports @{import}, {problem}")
            } else if depth > MAX_IMPORT_DEPTH {
                format!(
                    "imports {shown} at depth {depth}, but the maximum depth is \
                     {MAX_IMPORT_DEPTH}; import it from a file nearer to the top"
                )
            } else if !self.is_allowed(&path) {
                format!("imports {shown} from outside the project, which was not approved")
            } else {
                if let Some(text) = read(&path, &mut self.notes) {
                    let file = MemoryFile {
                        scope: scope.clone(),
                        imported_by: Some(by.clone()),
                        depth,
                        when,
                        ..MemoryFile::new(level, path, text)
                    };
                    self.add_with_imports(file, importers);
                }
                continue;
            };
            Note::add(&mut self.notes, &by, problem);
        }
        importers.pop();
    }

    /// Returns true if an import is inside the project or approved. Resolves links first, because a
    /// link in the project can point outside it.
    fn is_allowed(&self, path: &Path) -> bool {
        let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
        self.request.approve || real(path).starts_with(real(&self.request.folders.root))
    }
}
