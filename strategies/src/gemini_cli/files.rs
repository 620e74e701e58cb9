//! Gemini CLI's memory files: the user's own file, and the files from the root of the project down
//! to the working directory (docs/sources/gemini-cli.md §7).

use std::path::Path;

use ctxbench_kit::memory::{Level, LoadRequest, LoadedFiles, MemoryFile, parse_jsonc, read};

use crate::descriptor::{Named, SettingsFile, Version};
use crate::own_settings::{UserSetting, ValueKind, extract};

const NAME: &str = "GEMINI.md";

/// Settings of a user's file that affect compaction.
const OWN: [UserSetting; 3] = [
    (&["model", "compressionThreshold"], "threshold", ValueKind::Share),
    (&["tools", "truncateToolOutputThreshold"], "cut_to", ValueKind::Number),
    (&["general", "maxAttempts"], "attempts", ValueKind::Number),
];

pub(crate) const SETTINGS: SettingsFile =
    SettingsFile { folder: ".gemini", names: &["settings.json"], read: own_settings };

fn own_settings(text: &str) -> Result<Named, String> {
    extract(&parse_jsonc(text)?, &OWN)
}

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
