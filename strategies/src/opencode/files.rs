//! OpenCode's memory files: one file name in each parent folder, a global file, the files listed in
//! the settings, and those of subfolders when a file there is read (docs/sources/opencode.md §11).

use std::path::Path;

use ctxbench_kit::memory::{
    Base, Level, LoadRequest, LoadedFiles, MemoryTable, Note, Pick, Row, load, parse_jsonc,
    read_settings,
};

/// File names in order of preference. The last one is deprecated.
const NAMES: [&str; 3] = ["AGENTS.md", "CLAUDE.md", "CONTEXT.md"];
const ROWS: [Row<'_>; 3] = [
    Row {
        pick: Pick::OneName,
        nearest_first: true,
        ..Row::new(Level::Project, Base::Project, &NAMES)
    },
    Row {
        pick: Pick::First,
        ..Row::new(
            Level::User,
            Base::Home,
            &[".config/opencode/AGENTS.md", ".claude/CLAUDE.md"],
        )
    },
    Row { pick: Pick::First, nearest_first: true, ..Row::new(Level::Project, Base::Below, &NAMES) },
];

pub(super) fn load_files(request: &LoadRequest<'_>) -> LoadedFiles {
    let mut notes = Vec::new();
    let listed = instructions(request, &mut notes);
    let listed: Vec<[&str; 1]> = listed.iter().map(|name| [name.as_str()]).collect();
    let row = |names| Row { nearest_first: true, ..Row::new(Level::Settings, Base::Project, names) };
    let rows: Vec<Row<'_>> = ROWS.into_iter().chain(listed.iter().map(|n| row(&n[..]))).collect();
    load(&MemoryTable { rows: &rows, ..MemoryTable::default() }, request, notes)
}

/// Files listed in the settings, the user's before the project's: paths, or patterns that apply in
/// every folder up to the root. URLs are not fetched.
fn instructions(request: &LoadRequest<'_>, notes: &mut Vec<Note>) -> Vec<String> {
    let config = request.folders.home.join(".config/opencode");
    let mut folders: Vec<&Path> = request.folders.up_to_root().chain([config.as_path()]).collect();
    folders.reverse();
    let mut out = Vec::new();
    for by in folders.iter().flat_map(|f| ["opencode.json", "opencode.jsonc"].map(|n| f.join(n))) {
        let Some(settings) = read_settings(&by, parse_jsonc, notes) else { continue };
        let listed = settings["instructions"].as_array().into_iter().flatten();
        for one in listed.filter_map(|one| one.as_str()) {
            if one.starts_with("https://") || one.starts_with("http://") {
                let fetched = "the product fetches it at the start, ctxbench does not";
                Note::add(notes, &by, format!("lists {one}; {fetched}"));
            } else {
                out.push(one.to_string());
            }
        }
    }
    out
}
