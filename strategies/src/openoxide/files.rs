//! OpenOxide's memory files (docs/sources/openoxide.md §1.7). The blueprint adopts the levels of
//! Claude Code. Imports, the search above the working directory and a user's rule files also work
//! as in Claude Code.

use ctxbench_kit::memory::{
    IndexLimit, Level, LoadRequest, LoadedFiles, MemoryLayout, load_levels,
};

/// Names of files that apply to their folder. The blueprint names MEMORY.md; the product's own file
/// name is accepted too. Benchmark sessions use the last name.
pub(super) const OF_FOLDERS: [&str; 3] = ["OPENOXIDE.md", "MEMORY.md", "CLAUDE.md"];

/// Names of the project's memory file, to which lasting facts are added. Benchmark sessions use the
/// last name.
pub(super) const OF_PROJECT: [&str; 3] = ["OPENOXIDE.md", ".openoxide/MEMORY.md", "CLAUDE.md"];

static LAYOUT: MemoryLayout = MemoryLayout {
    order: &[
        Level::Managed,
        Level::Project,
        Level::Rules,
        Level::User,
        Level::Settings,
        Level::Local,
        Level::Auto,
    ],
    managed: "openoxide/MEMORY.md",
    user: ".openoxide/MEMORY.md",
    user_rules: None,
    project: &[OF_PROJECT[0], OF_PROJECT[1]],
    rules: ".openoxide/rules",
    local: "OPENOXIDE.local.md",
    below: &[(Level::Project, OF_FOLDERS[0]), (Level::Project, OF_FOLDERS[1])],
    // docs/sources/opencode-vs-claude-code.md §5 describes such a list.
    settings: Some(".openoxide/settings.json"),
    projects: ".openoxide/projects",
    // AutoMemoryConfig.index_line_limit. The blueprint has no limit in bytes.
    index: IndexLimit { lines: 200, bytes: None },
};

pub(super) fn load(request: &LoadRequest<'_>) -> LoadedFiles {
    load_levels(&LAYOUT, request)
}
