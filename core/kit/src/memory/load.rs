//! Loads the memory files of a table, and more of them as the session touches matching files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ctxbench_util::files::{FileError, walk_into};

use super::disk::add_unreadable;
use super::import::{MAX_IMPORT_DEPTH, imports, looks_like_a_path, normalize, resolve};
use super::scope::front_matter;
use super::{
    Activation, Base, CutOff, Level, LoadRequest, LoadedFiles, MemoryFile, Note, PathScope, Pick,
    Row, cut_index, folders_below, is_file, listed_files, read,
};

/// Loads the files of a session that touched `request.touched`, in the order of the rows, followed
/// by pending files. `notes` are those that come first.
pub fn load(request: &LoadRequest<'_>, notes: Vec<Note>) -> LoadedFiles {
    let (loaded, pending, visited) = (Vec::new(), Vec::new(), BTreeSet::new());
    let mut all = Loader { request, loaded, pending, visited, notes };
    request.table.rows.iter().for_each(|row| all.read_row(row));
    request.touched.iter().for_each(|path| all.touch(path));
    if all.below().next().is_some() {
        for folder in folders_below(&request.folders.directory) {
            all.read_folder(&folder, Activation::Pending);
        }
    }
    let mut files = all.loaded;
    files.extend(all.pending);
    LoadedFiles { files, notes: all.notes }
}

struct Loader<'a> {
    request: &'a LoadRequest<'a>,
    loaded: Vec<MemoryFile>,
    /// Files for certain paths, none of which was touched yet.
    pending: Vec<MemoryFile>,
    /// Folders below the working directory that were searched.
    visited: BTreeSet<PathBuf>,
    notes: Vec<Note>,
}

impl<'a> Loader<'a> {
    fn below(&self) -> impl Iterator<Item = &'a Row> + use<'a> {
        self.request.table.rows.iter().filter(|row| row.base == Base::Below)
    }

    fn resolve(&self, folder: &Path, name: &str) -> PathBuf {
        resolve(folder, &self.request.folders.home, name)
    }

    /// Returns the names of a row, with those that settings list.
    fn names(&mut self, row: &Row) -> Vec<String> {
        let folders = self.request.folders;
        let listed = row.listed_in.iter();
        let listed = listed.flat_map(|name| listed_files(name, folders, &mut self.notes));
        let listed: Vec<String> = listed.collect();
        let own = row.names.iter().map(|n| n.replace("{project}", &folders.project_name()));
        own.chain(listed).collect()
    }

    /// Handles a file that the agent reads or edits: loads memory files in the folders that lead to
    /// it and rules that match it.
    fn touch(&mut self, path: &Path) {
        let folders = self.request.folders;
        let full = normalize(&folders.directory.join(path));
        if full.starts_with(&folders.directory) {
            let above = full.ancestors().skip(1).take_while(|a| *a != folders.directory);
            let mut above: Vec<&Path> = above.collect();
            if !self.below().any(|row| row.nearest_first) {
                above.reverse();
            }
            above.iter().for_each(|f| self.read_folder(f, Activation::Touched));
        }
        let Ok(inside) = full.strip_prefix(&folders.root) else { return };
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|f| f.scope.as_ref().is_some_and(|s| s.matches(inside)));
        self.pending = later;
        self.loaded.extend(now.into_iter().map(|f| MemoryFile { when: Activation::Touched, ..f }));
    }

    fn read_row(&mut self, row: &Row) {
        let folders = self.request.folders;
        let mut searched: Vec<&Path> = match row.base {
            Base::Etc => vec![&folders.etc],
            Base::Home => vec![&folders.home],
            Base::Root => vec![&folders.root],
            Base::Above => folders.directory.ancestors().collect(),
            Base::Project => folders.up_to_root().collect(),
            Base::Below => return,
        };
        if !row.nearest_first {
            searched.reverse();
        }
        let mut found = self.pick(row, &searched);
        if row.base == Base::Above {
            let own = self.request.table.rows.iter().filter(|row| row.base == Base::Home);
            let own = own.flat_map(|row| &row.names);
            let own: Vec<PathBuf> = own.map(|n| self.resolve(&folders.home, n)).collect();
            found.retain(|path| !own.contains(path));
        }
        found.into_iter().for_each(|path| self.read(row.level, path));
    }

    /// Returns the files of a row in these folders.
    fn pick(&mut self, row: &Row, folders: &[&Path]) -> Vec<PathBuf> {
        let names = self.names(row);
        let mut exists = |folder: &Path, name: &String| {
            let path = resolve(folder, &self.request.folders.home, name);
            is_file(&path, &mut self.notes).then_some(path)
        };
        match row.pick {
            Pick::First => {
                let first = |f: &&Path| names.iter().find_map(|name| exists(f, name));
                folders.iter().filter_map(first).collect()
            }
            Pick::OneName => {
                let mut with = names
                    .iter()
                    .map(|name| folders.iter().filter_map(|f| exists(f, name)).collect::<Vec<_>>());
                with.find(|found| !found.is_empty()).unwrap_or_default()
            }
            Pick::All => {
                let all = folders.iter().flat_map(|f| names.iter().map(move |n| (*f, n)));
                all.flat_map(|(folder, name)| self.matching(folder, name)).collect()
            }
        }
    }

    /// Returns the file with a name, which may not exist, or the files that match it as a pattern,
    /// sorted. Enters subfolders only if the pattern contains `/` or `**` after its fixed prefix.
    fn matching(&mut self, folder: &Path, name: &str) -> Vec<PathBuf> {
        let Some(first) = name.find(['*', '?', '[', '{']) else {
            return vec![self.resolve(folder, name)];
        };
        let (fixed, pattern) = name.split_at(name[..first].rfind('/').map_or(0, |s| s + 1));
        let base = self.resolve(folder, fixed);
        let Some(scope) = PathScope::new([pattern]).ok().filter(|_| base.is_dir()) else {
            return Vec::new();
        };
        let deep = pattern.contains('/') || pattern.contains("**");
        let mut found = walk_into(
            &base,
            |_| deep,
            |unread| {
                if let FileError::Io { path, source, .. } = unread {
                    add_unreadable(&path, source, &mut self.notes);
                }
            },
        );
        found.retain(|path| path.strip_prefix(&base).is_ok_and(|p| scope.matches(p)));
        found
    }

    /// Loads the files of a folder below the working directory, once.
    fn read_folder(&mut self, dir: &Path, when: Activation) {
        if !self.visited.insert(dir.into()) {
            return;
        }
        let inside = dir.strip_prefix(&self.request.folders.root).unwrap_or(dir).to_string_lossy();
        let scope = PathScope::for_folder(&inside);
        for row in self.below() {
            for path in self.pick(row, &[dir]) {
                if self.contains(&path) {
                    continue;
                }
                let Some(text) = read(&path, &mut self.notes) else { continue };
                let file = MemoryFile::new(row.level, path, text);
                self.add(MemoryFile { scope: scope.clone(), when, ..file });
            }
        }
    }

    /// Returns whether a file is in the project. Resolves links first, because a link in the project
    /// can point outside it.
    fn is_of_project(&self, path: &Path) -> bool {
        let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
        real(path).starts_with(real(&self.request.folders.root))
    }

    fn contains(&self, path: &Path) -> bool {
        self.loaded.iter().chain(&self.pending).any(|f| f.path == path)
    }

    /// Loads a file, if it exists, and its imports.
    fn read(&mut self, level: Level, path: PathBuf) {
        if self.contains(&path) {
            return;
        }
        let Some(text) = read(&path, &mut self.notes) else { return };
        let mut file = MemoryFile::new(level, path.clone(), text);
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
                let limit = self.request.table.index;
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
        self.add(file);
    }

    /// Adds a file and its imports, each file once.
    fn add(&mut self, file: MemoryFile) {
        let importer = MemoryFile { text: String::new(), rest: String::new(), ..file.clone() };
        let found = if self.request.table.imports { imports(&file.text) } else { Vec::new() };
        let found: Vec<String> = found.into_iter().map(String::from).collect();
        match file.when {
            Activation::Pending => self.pending.push(file),
            Activation::Start | Activation::Touched => self.loaded.push(file),
        }
        let by = &importer.path;
        for import in found {
            let path = self.resolve(by.parent().unwrap_or(by), &import);
            if self.contains(&path) || (!path.is_file() && !looks_like_a_path(&import)) {
                continue;
            }
            let problem = if !path.is_file() {
                "does not exist; correct the path or remove the line".into()
            } else if importer.depth == MAX_IMPORT_DEPTH {
                format!("is more than {MAX_IMPORT_DEPTH} imports deep; import it nearer to the top")
            } else if self.is_of_project(by) && !self.is_of_project(&path) {
                "is outside the project; products ask you before they load it, so it is left out"
                    .into()
            } else {
                if let Some(text) = read(&path, &mut self.notes) {
                    let (imported_by, depth) = (Some(by.clone()), importer.depth + 1);
                    self.add(MemoryFile { path, text, imported_by, depth, ..importer.clone() });
                }
                continue;
            };
            Note::add(&mut self.notes, by, format!("imports @{import}, which {problem}"));
        }
    }
}
