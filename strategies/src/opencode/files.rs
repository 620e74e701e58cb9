//! OpenCode's memory files: one name in each parent folder, a global file, those of the settings,
//! and those of subfolders when a file there is read (docs/sources/opencode.md §11).

use std::path::{Path, PathBuf};

use ctxbench_kit::memory::{
    Level, Loaded, MemoryFile, Note, OPENCODE_NAMES, OpenCode, Scope, Visit, When, folders_below,
    is_file, jsonc, jsonc_settings, read, search,
};

use crate::descriptor::{Named, SettingsFile, Version};
use crate::own_settings::{UserSetting, ValueKind, extract};

const NAMES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

/// Comments and commas at the end are allowed under both names (docs/sources/opencode.md §12).
pub(crate) const SETTINGS: SettingsFile =
    SettingsFile { folder: ".opencode", names: &NAMES, read: own_settings };

/// Compaction settings in a user's file, with their value kinds. The model is written
/// PROVIDER/MODEL; the part before the last slash is dropped.
const OWN: [UserSetting; 6] = [
    (&["compaction", "auto"], "auto", ValueKind::Flag),
    (&["compaction", "prune"], "prune", ValueKind::Flag),
    (&["compaction", "reserved"], "reserved", ValueKind::Number),
    (&["compaction", "tail_turns"], "tail_turns", ValueKind::Number),
    (&["compaction", "preserve_recent_tokens"], "preserve_recent_tokens", ValueKind::Number),
    (&["agent", "compaction", "model"], "model", ValueKind::Model),
];

fn own_settings(text: &str) -> Result<Named, String> {
    extract(&jsonc(text)?, &OWN)
}

pub(super) fn load(_: Version, visit: &Visit<'_>) -> Loaded {
    let mut out = Loaded::default();
    let site = visit.site;
    let config = site.home.join(".config/opencode");
    let places = OpenCode {
        instructions: instructions(visit, &config, &mut out.notes),
        config: config.clone(),
        home: site.home.clone(),
        directory: site.directory.clone(),
        worktree: site.root.clone(),
    };
    let own_name = |p: &Path| {
        p.file_name().and_then(|n| n.to_str()).is_some_and(|n| OPENCODE_NAMES.contains(&n))
    };
    for path in search(&places, &mut out.notes) {
        let on_the_way = path.parent().is_some_and(|p| site.upwards().any(|u| u == p));
        let level = if on_the_way && own_name(&path) {
            Level::Project
        } else if path.starts_with(&config) || path == site.home.join(".claude/CLAUDE.md") {
            Level::User
        } else {
            Level::Settings
        };
        let text = read(&path, &mut out.notes);
        out.files.extend(text.map(|text| MemoryFile::new(level, path, text)));
    }
    // Those of the nearest folder first, as they are attached to what was read.
    for touched in visit.touched {
        let touched = site.directory.join(touched);
        for folder in touched.ancestors().skip(1).take_while(|a| *a != site.directory) {
            if folder.starts_with(&site.directory) {
                of_folder(visit, folder, When::Touched, &mut out);
            }
        }
    }
    for folder in folders_below(&site.directory, &mut out.notes) {
        of_folder(visit, &folder, When::Waits, &mut out);
    }
    out
}

/// The first of the names in a folder, unless it is shown already.
fn of_folder(visit: &Visit<'_>, folder: &Path, when: When, out: &mut Loaded) {
    let mut paths = OPENCODE_NAMES.iter().map(|n| folder.join(n));
    let Some(path) = paths.find(|p| is_file(p, &mut out.notes)) else { return };
    if out.files.iter().any(|f| f.path == path) {
        return;
    }
    let inside = folder.strip_prefix(&visit.site.root).unwrap_or(folder).to_string_lossy();
    let scope = Scope::of_folder(&inside);
    let text = read(&path, &mut out.notes);
    out.files.extend(text.map(|text| MemoryFile {
        scope,
        when,
        ..MemoryFile::new(Level::Project, path, text)
    }));
}

/// Files listed in the settings, the user's before the project's. URLs are not fetched.
fn instructions(visit: &Visit<'_>, config: &Path, notes: &mut Vec<Note>) -> Vec<String> {
    let mut folders: Vec<&Path> = visit.site.upwards().collect();
    folders.push(config);
    let mut out = Vec::new();
    let files = folders.iter().rev().flat_map(|f| NAMES.map(|n| f.join(n)));
    for by in files.collect::<Vec<PathBuf>>() {
        let Some(settings) = jsonc_settings(&by, notes) else { continue };
        for one in settings["instructions"].as_array().into_iter().flatten() {
            match one.as_str() {
                Some(url) if url.starts_with("https://") || url.starts_with("http://") => {
                    notes.push(Note::NotFetched { by: by.clone(), url: url.into() });
                }
                Some(pattern) => out.push(pattern.to_string()),
                None => {}
            }
        }
    }
    out
}
