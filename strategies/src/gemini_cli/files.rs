//! Gemini CLI's memory files: the user's own file, and the files from the root of the project down
//! to the working directory (docs/sources/gemini-cli.md §7).

use std::path::Path;

use ctxbench_kit::memory::{Level, LoadRequest, LoadedFiles, MemoryFile, read};

use crate::descriptor::Version;
use crate::own_settings::{SettingsFile, SettingsFormat, UserSetting, ValueKind};

const NAME: &str = "GEMINI.md";

/// Settings of a user's file (docs/sources/gemini-cli.md §1, §2).
pub(super) const SETTINGS: SettingsFile = SettingsFile {
    folder: ".gemini",
    names: &["settings.json"],
    format: SettingsFormat::Jsonc,
    place: "~/.gemini/settings.json, or .gemini/settings.json of the project",
    documented: "https://github.com/google-gemini/gemini-cli/blob/main/docs/reference/configuration.md",
    settings: &[
        UserSetting::new(&["model", "compressionThreshold"], "threshold", ValueKind::Share)
            .trying(&["0.2", "0.8"]),
        UserSetting {
            values: &["10k", "80k"],
            caveat: "Outputs of tools are cut to this size when they arrive, too; here they stand as \
                the session has them.",
            ..UserSetting::new(
                &["tools", "truncateToolOutputThreshold"],
                "cut_to",
                ValueKind::Number,
            )
        },
        UserSetting::new(&["general", "maxAttempts"], "attempts", ValueKind::Number),
    ],
};

pub(super) fn load(_: Version, request: &LoadRequest<'_>) -> LoadedFiles {
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
