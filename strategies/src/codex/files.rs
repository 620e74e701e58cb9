//! Codex's memory files: AGENTS.md from the root of the project down to the working directory
//! (docs/sources/codex.md §9).

use std::path::Path;

use ctxbench_kit::memory::{
    CutOff, Level, LoadRequest, LoadedFiles, MemoryFile, Note, is_file, read, read_settings,
};
use toml::{Table, Value};

/// Names in order of preference. Of each folder only the first existing file is read.
const NAMES: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];
/// Name and default of the setting that limits the bytes of all files of a project
/// (docs/sources/codex.md §9).
const MAX_BYTES: (&str, usize) = ("project_doc_max_bytes", 32 * 1024);
const FALLBACKS: &str = "project_doc_fallback_filenames";

pub(super) fn load(request: &LoadRequest<'_>) -> LoadedFiles {
    let mut out = LoadedFiles::default();
    let home = request.folders.home.join(".codex");
    let parse = |text: &str| -> Result<Table, String> {
        text.parse().map_err(|e: toml::de::Error| format!("invalid TOML: {}", e.message()))
    };
    let settings = read_settings(&home.join("config.toml"), parse, &mut out.notes);
    let settings = settings.unwrap_or_default();
    // The user's own file does not count towards the limit.
    for name in NAMES {
        let path = home.join(name);
        if let Some(text) = read(&path, &mut out.notes).filter(|t| !t.trim().is_empty()) {
            out.files.push(MemoryFile::new(Level::User, path, text));
            break;
        }
    }
    let max = settings.get(MAX_BYTES.0).and_then(Value::as_integer);
    let max = max.map_or(MAX_BYTES.1, |n| usize::try_from(n).unwrap_or(0));
    let more = settings.get(FALLBACKS).and_then(Value::as_array);
    let more = more.into_iter().flatten().filter_map(Value::as_str).filter(|n| !n.is_empty());
    let names: Vec<&str> = NAMES.into_iter().chain(more).collect();
    let mut left = max;
    let mut folders: Vec<&Path> = request.folders.up_to_root().collect();
    folders.reverse();
    for folder in folders {
        let mut paths = names.iter().map(|n| folder.join(n));
        let Some(path) = paths.find(|p| is_file(p, &mut out.notes)) else { continue };
        let Some(text) = read(&path, &mut out.notes).filter(|t| !t.trim().is_empty()) else {
            continue;
        };
        let (shown, rest) = text.split_at(text.floor_char_boundary(left));
        left -= shown.len();
        if let Some(lost) = CutOff::measure(rest) {
            let text = format!(
                "the last {lost} are not loaded, because all files of a project may have {max} \
                 bytes in total; shorten them or raise {}",
                MAX_BYTES.0
            );
            Note::add(&mut out.notes, &path, text);
        }
        let file = MemoryFile::new(Level::Project, path, shown);
        out.files.push(MemoryFile { rest: rest.into(), ..file });
    }
    out
}
