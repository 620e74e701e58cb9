//! Codex's memory files: AGENTS.md from the root of the project down to the working directory
//! (docs/sources/codex.md §9).

use ctxbench_kit::memory::{
    Base, Level, LoadRequest, LoadedFiles, MemoryTable, Note, Pick, Row, load,
    read_settings,
};
use serde::Deserialize;

/// The settings that concern memory files.
#[derive(Deserialize)]
#[serde(default)]
struct FileSettings {
    /// Maximum bytes of all files of a project.
    project_doc_max_bytes: i64,
    project_doc_fallback_filenames: Vec<String>,
}

impl Default for FileSettings {
    fn default() -> Self {
        let project_doc_max_bytes = 32 * 1024;
        FileSettings { project_doc_max_bytes, project_doc_fallback_filenames: Vec::new() }
    }
}

pub(super) fn load_files(request: &LoadRequest<'_>) -> LoadedFiles {
    let mut notes = Vec::new();
    let parse = |text: &str| -> Result<FileSettings, String> {
        toml::from_str(text).map_err(|e| format!("invalid TOML: {}", e.message()))
    };
    let config = request.folders.home.join(".codex/config.toml");
    let settings = read_settings(&config, parse, &mut notes).unwrap_or_default();
    let more = settings.project_doc_fallback_filenames.iter().map(String::as_str);
    let names = ["AGENTS.override.md", "AGENTS.md"].into_iter();
    let names: Vec<&str> = names.chain(more.filter(|n| !n.is_empty())).collect();
    let user = [".codex/AGENTS.override.md", ".codex/AGENTS.md"];
    let first = |level, base, names| Row { pick: Pick::First, ..Row::new(level, base, names) };
    let rows = [
        first(Level::User, Base::Home, &user[..]),
        first(Level::Project, Base::Project, &names),
    ];
    let mut out = load(&MemoryTable { rows: &rows, ..MemoryTable::default() }, request, notes);
    out.files.retain(|f| !f.text.trim().is_empty());
    // The user's own file does not count towards the limit.
    let max = usize::try_from(settings.project_doc_max_bytes).unwrap_or(0);
    let mut left = max;
    for f in out.files.iter_mut().filter(|f| f.level == Level::Project) {
        f.rest = f.text.split_off(f.text.floor_char_boundary(left));
        left -= f.text.len();
        if let Some(lost) = f.cut_off() {
            let text = format!(
                "the last {lost} are not loaded, because all files of a project may have {max} \
                 bytes in total; shorten them or raise project_doc_max_bytes"
            );
            Note::add(&mut out.notes, &f.path, text);
        }
    }
    out
}
