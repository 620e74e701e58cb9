//! Claude Code's memory files (docs/sources/claude-code.md §1.5).

use ctxbench_kit::memory::{
    Base, IndexLimit, Level, LoadRequest, LoadedFiles, MemoryTable, Row, listed_files, load,
};

/// Memory files that apply to their folder.
pub(super) const OF_FOLDERS: [&str; 2] = ["CLAUDE.md", "CLAUDE.local.md"];

/// Part of `MEMORY.md` that is shown: 200 lines or 25 KB (docs/sources/claude-code.md §1.5, grade
/// A), taken as 25 × 1,024 bytes.
pub(super) const INDEX: IndexLimit = IndexLimit { lines: 200, bytes: Some(25 * 1024) };

/// Loads the files of the program, or those that described-001 has. The description lets settings
/// list further files (docs/sources/opencode-vs-claude-code.md §5); the program's documentation does
/// not mention any.
pub(super) fn load_files(described: bool, request: &LoadRequest<'_>) -> LoadedFiles {
    let (mut notes, mut listed) = (Vec::new(), Vec::new());
    if described {
        listed = listed_files(".claude/settings.json", request.folders, &mut notes);
    }
    let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
    let auto = format!(".claude/projects/{}/memory/MEMORY.md", request.folders.project_name());
    let auto = [auto.as_str()];
    let rows = [
        Row::new(Level::Managed, Base::Etc, &["claude-code/CLAUDE.md"]),
        Row::new(Level::User, Base::Home, &[".claude/CLAUDE.md"]),
        Row::new(Level::Rules, Base::Home, &[".claude/rules/**/*.md"]),
        Row::new(Level::Project, Base::Above, &["CLAUDE.md", ".claude/CLAUDE.md"]),
        Row::new(Level::Rules, Base::Root, &[".claude/rules/**/*.md"]),
        Row::new(Level::Settings, Base::Root, &listed),
        Row::new(Level::Local, Base::Above, &["CLAUDE.local.md"]),
        Row::new(Level::Auto, Base::Home, &auto),
        Row::new(Level::Project, Base::Below, &[OF_FOLDERS[0]]),
        Row::new(Level::Local, Base::Below, &[OF_FOLDERS[1]]),
    ];
    load(&MemoryTable { rows: &rows, imports: true, index: INDEX }, request, notes)
}
