//! OpenCode's memory files: one file name in each parent folder, a global file, the files listed in
//! the settings, and those of subfolders when a file there is read (docs/sources/opencode.md §11).

use std::path::{Path, PathBuf};

use ctxbench_kit::memory::{
    Activation, Level, LoadRequest, LoadedFiles, MemoryFile, Note, OPENCODE_NAMES, PathScope,
    folders_below, is_file, parse_jsonc, read, read_settings, search,
};

const NAMES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

pub(super) fn load(request: &LoadRequest<'_>) -> LoadedFiles {
    let mut out = LoadedFiles::default();
    let folders = request.folders;
    let config = folders.home.join(".config/opencode");
    let instructions = instructions(request, &config, &mut out.notes);
    for (level, path) in search(folders, &config, &instructions, &mut out.notes) {
        let text = read(&path, &mut out.notes);
        out.files.extend(text.map(|text| MemoryFile::new(level, path, text)));
    }
    // Files of the nearest folder come first, in the order in which they are attached to the read
    // result.
    for touched in request.touched {
        let touched = folders.directory.join(touched);
        for folder in touched.ancestors().skip(1).take_while(|a| *a != folders.directory) {
            if folder.starts_with(&folders.directory) {
                for_folder(request, folder, Activation::Touched, &mut out);
            }
        }
    }
    for folder in folders_below(&folders.directory, &mut out.notes) {
        for_folder(request, &folder, Activation::Pending, &mut out);
    }
    out
}

/// Adds the first existing file of a folder, unless it is already shown.
fn for_folder(request: &LoadRequest<'_>, folder: &Path, when: Activation, out: &mut LoadedFiles) {
    let mut paths = OPENCODE_NAMES.iter().map(|n| folder.join(n));
    let Some(path) = paths.find(|p| is_file(p, &mut out.notes)) else { return };
    if out.files.iter().any(|f| f.path == path) {
        return;
    }
    let inside = folder.strip_prefix(&request.folders.root).unwrap_or(folder).to_string_lossy();
    let scope = PathScope::for_folder(&inside);
    let text = read(&path, &mut out.notes);
    out.files.extend(text.map(|text| MemoryFile {
        scope,
        when,
        ..MemoryFile::new(Level::Project, path, text)
    }));
}

/// Files listed in the settings, the user's before the project's. URLs are not fetched.
fn instructions(request: &LoadRequest<'_>, config: &Path, notes: &mut Vec<Note>) -> Vec<String> {
    let mut folders: Vec<&Path> = request.folders.up_to_root().collect();
    folders.push(config);
    let mut out = Vec::new();
    let files = folders.iter().rev().flat_map(|f| NAMES.map(|n| f.join(n)));
    for by in files.collect::<Vec<PathBuf>>() {
        let Some(settings) = read_settings(&by, parse_jsonc, notes) else { continue };
        for one in settings["instructions"].as_array().into_iter().flatten() {
            match one.as_str() {
                Some(url) if url.starts_with("https://") || url.starts_with("http://") => {
                    let fetched = "the product fetches it at the start, ctxbench does not";
                    Note::add(notes, &by, format!("lists {url}; {fetched}"));
                }
                Some(pattern) => out.push(pattern.to_string()),
                None => {}
            }
        }
    }
    out
}
