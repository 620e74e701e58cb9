//! Claude Code's memory files (docs/sources/claude-code.md §1.5).

use ctxbench_kit::memory::{
    IndexLimit, Level, LoadRequest, LoadedFiles, MemoryLayout, load_levels,
};

/// Memory files that apply to their folder.
pub(super) const OF_FOLDERS: [&str; 2] = ["CLAUDE.md", "CLAUDE.local.md"];

const LAYOUT: MemoryLayout = MemoryLayout {
    order: &[
        Level::Managed,
        Level::User,
        Level::Project,
        Level::Rules,
        Level::Settings,
        Level::Local,
        Level::Auto,
    ],
    managed: "claude-code/CLAUDE.md",
    user: ".claude/CLAUDE.md",
    user_rules: Some(".claude/rules"),
    project: &["CLAUDE.md", ".claude/CLAUDE.md"],
    rules: ".claude/rules",
    local: "CLAUDE.local.md",
    below: &[(Level::Project, OF_FOLDERS[0]), (Level::Local, OF_FOLDERS[1])],
    settings: None,
    projects: ".claude/projects",
    index: INDEX,
};

/// Part of `MEMORY.md` that is shown: 200 lines or 25 KB (docs/sources/claude-code.md §1.5, grade
/// A), taken as 25 × 1,024 bytes.
pub(super) const INDEX: IndexLimit = IndexLimit { lines: 200, bytes: Some(25 * 1024) };

static RELEASED: MemoryLayout = LAYOUT;

/// The description lets settings list further files (docs/sources/opencode-vs-claude-code.md §5).
/// The program's documentation does not mention any.
static DESCRIBED: MemoryLayout = MemoryLayout { settings: Some(".claude/settings.json"), ..LAYOUT };

/// Loads the files of the program, or those that described-001 has.
pub(super) fn load(described: bool, request: &LoadRequest<'_>) -> LoadedFiles {
    load_levels(if described { &DESCRIBED } else { &RELEASED }, request)
}
