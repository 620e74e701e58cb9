//! Gemini CLI's memory files: the user's own file, and the files from the root of the project down
//! to the working directory (docs/sources/gemini-cli.md §7).

use std::path::Path;

use ctxbench_kit::memory::{Level, LoadRequest, LoadedFiles, MemoryFile, read};

const NAME: &str = "GEMINI.md";

pub(super) fn load(request: &LoadRequest<'_>) -> LoadedFiles {
    let mut out = LoadedFiles::default();
    let mut add = |level, path: &Path| {
        if let Some(text) = read(path, &mut out.notes) {
            out.files.push(MemoryFile::new(level, path, text));
        }
    };
    add(Level::User, &request.folders.home.join(".gemini").join(NAME));
    let mut folders: Vec<&Path> = request.folders.up_to_root().collect();
    folders.reverse();
    for folder in folders {
        add(Level::Project, &folder.join(NAME));
    }
    out
}
