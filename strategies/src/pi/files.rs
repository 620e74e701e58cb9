//! pi's memory files: one per folder from the root of the file system down to the working
//! directory, and the user's own file (docs/sources/pi.md §9).

use std::path::Path;

use ctxbench_kit::memory::{Level, LoadRequest, LoadedFiles, MemoryFile, is_file, read};

use crate::descriptor::Version;
use crate::own_settings::{SettingsFile, SettingsFormat, UserSetting, ValueKind};

/// Names in order of preference. Of each folder only the first existing file is read.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// Settings of a user's file (docs/sources/pi.md §1, §2).
pub(super) const SETTINGS: SettingsFile = SettingsFile {
    folder: ".pi",
    names: &["settings.json"],
    format: SettingsFormat::Jsonc,
    place: "~/.pi/agent/settings.json, or .pi/settings.json of the project",
    documented: "https://github.com/earendil-works/pi/blob/main/packages/coding-agent/docs/settings.md",
    settings: &[
        UserSetting::new(&["compaction", "reserveTokens"], "reserve", ValueKind::Number)
            .trying(&["40k", "80k"]),
        UserSetting::new(&["compaction", "keepRecentTokens"], "keep_recent", ValueKind::Number)
            .trying(&["10k", "40k"]),
        UserSetting::new(&["compaction", "enabled"], "auto", ValueKind::Flag).trying(&["false"]),
        UserSetting::new(&["retry", "maxRetries"], "retries", ValueKind::Number),
    ],
};

pub(super) fn load(_: Version, request: &LoadRequest<'_>) -> LoadedFiles {
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
