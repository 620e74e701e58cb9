//! OpenOxide's memory files (docs/sources/openoxide.md §1.7). The blueprint adopts the levels of
//! Claude Code. Imports, the search above the working directory and a user's rule files also work
//! as in Claude Code.

use ctxbench_kit::memory::{
    Base, IndexLimit, Level, LoadRequest, LoadedFiles, MemoryTable, Row, listed_files, load,
};

/// Names of files that apply to their folder. The blueprint names MEMORY.md; the product's own file
/// name is accepted too. Benchmark sessions use the last name.
pub(super) const OF_FOLDERS: [&str; 3] = ["OPENOXIDE.md", "MEMORY.md", "CLAUDE.md"];

/// Names of the project's memory file, to which lasting facts are added. Benchmark sessions use the
/// last name.
pub(super) const OF_PROJECT: [&str; 3] = ["OPENOXIDE.md", ".openoxide/MEMORY.md", "CLAUDE.md"];

pub(super) fn load_files(request: &LoadRequest<'_>) -> LoadedFiles {
    let mut notes = Vec::new();
    // docs/sources/opencode-vs-claude-code.md §5 describes such a list.
    let listed = listed_files(".openoxide/settings.json", request.folders, &mut notes);
    let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    let auto = format!(".openoxide/projects/{}/memory/MEMORY.md", request.folders.project_name());
    let auto = [auto.as_str()];
    let rows = [
        Row::new(Level::Managed, Base::Etc, &["openoxide/MEMORY.md"]),
        Row::new(Level::Project, Base::Above, &OF_PROJECT[..2]),
        Row::new(Level::Rules, Base::Root, &[".openoxide/rules/**/*.md"]),
        Row::new(Level::User, Base::Home, &[".openoxide/MEMORY.md"]),
        Row::new(Level::Settings, Base::Root, &listed),
        Row::new(Level::Local, Base::Above, &["OPENOXIDE.local.md"]),
        Row::new(Level::Auto, Base::Home, &auto),
        Row::new(Level::Project, Base::Below, &OF_FOLDERS[..2]),
    ];
    // AutoMemoryConfig.index_line_limit. The blueprint has no limit in bytes.
    let index = IndexLimit { lines: 200, bytes: None };
    load(&MemoryTable { rows: &rows, imports: true, index }, request, notes)
}
