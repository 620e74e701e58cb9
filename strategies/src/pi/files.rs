//! pi's memory files: one per folder from the root of the file system down to the working
//! directory, and the user's own file (docs/sources/pi.md §9).

use std::path::Path;

use ctxbench_kit::memory::{Level, LoadRequest, LoadedFiles, MemoryFile, is_file, read};

/// Names in order of preference. Of each folder only the first existing file is read.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

pub(super) fn load(request: &LoadRequest<'_>) -> LoadedFiles {
    let mut out = LoadedFiles::default();
    let own = request.folders.home.join(".pi/agent");
    of_folder(&own, Level::User, &mut out);
    let mut folders: Vec<&Path> = request.folders.directory.ancestors().collect();
    folders.reverse();
    for folder in folders.into_iter().filter(|f| *f != own) {
        of_folder(folder, Level::Project, &mut out);
    }
    out
}

fn of_folder(folder: &Path, level: Level, out: &mut LoadedFiles) {
    let mut paths = NAMES.iter().map(|n| folder.join(n));
    let Some(path) = paths.find(|p| is_file(p, &mut out.notes)) else { return };
    if let Some(text) = read(&path, &mut out.notes) {
        out.files.push(MemoryFile::new(level, path, text));
    }
}
