//! Claude Code's memory files (docs/sources/claude-code.md §1.5).

use ctxbench_kit::memory::{
    IndexLimit, Level, LoadRequest, LoadedFiles, MemoryLayout, load_levels,
};

use super::{ClaudeCode, ClaudeCodeVersion};
use crate::descriptor::{Product, Version};
use crate::own_settings::{SettingsFile, SettingsFormat, UserSetting, ValueKind};

/// Memory files that apply to their folder.
pub(super) const OF_FOLDERS: [&str; 2] = ["CLAUDE.md", "CLAUDE.local.md"];

/// Settings of a user's file: environment variables that it sets, and settings by name. The variables
/// win (docs/sources/claude-code.md §1.1). Variables in the `env` of settings.json are reported not
/// to reach the threshold (<https://github.com/anthropics/claude-code/issues/63186>), so the place of
/// a line is the shell.
pub(super) const SETTINGS: SettingsFile = SettingsFile {
    folder: ".claude",
    names: &["settings.json"],
    format: SettingsFormat::Jsonc,
    place: "the shell that starts claude, such as ~/.bashrc or ~/.zshrc",
    documented: "https://code.claude.com/docs/en/env-vars",
    settings: &[
        UserSetting::new(
            &["env", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"],
            "threshold_percent",
            ValueKind::Quoted,
        )
        .trying(&["50", "60", "70", "80"]),
        // 100,000 is the minimum that it accepts.
        UserSetting::new(
            &["env", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"],
            "auto_compact_window",
            ValueKind::Quoted,
        )
        .trying(&["100k", "150k", "400k"]),
        UserSetting::new(
            &["autoCompactWindow"],
            "auto_compact_window",
            ValueKind::NumberOr("auto"),
        ),
        UserSetting::new(&["env", "DISABLE_COMPACT"], "auto", ValueKind::Disabled),
        UserSetting::new(&["env", "DISABLE_AUTO_COMPACT"], "auto", ValueKind::Disabled)
            .trying(&["false"]),
        UserSetting::new(&["autoCompactEnabled"], "auto", ValueKind::Flag),
    ],
};

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

pub(super) fn load(version: Version, request: &LoadRequest<'_>) -> LoadedFiles {
    let layout = match ClaudeCode::version(version) {
        ClaudeCodeVersion::Described001 => &DESCRIBED,
        ClaudeCodeVersion::Program | ClaudeCodeVersion::Described002 => &RELEASED,
    };
    load_levels(layout, request)
}
