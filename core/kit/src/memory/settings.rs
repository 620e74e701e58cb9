//! Settings files in JSON and JSONC.

use std::path::Path;

use serde_json::Value;

use jsonc_parser::{ParseOptions, parse_to_serde_value};

use super::import::resolve;
use super::{Note, ProjectFolders, read};

/// Reads and parses settings. Returns `None` if the file is missing or invalid; adds a note if it is
/// invalid.
pub fn read_settings<T>(
    path: &Path,
    parse: impl Fn(&str) -> Result<T, String>,
    notes: &mut Vec<Note>,
) -> Option<T> {
    let settings = parse(&read(path, notes)?);
    settings.map_err(|reason| Note::add(notes, path, format!("ignored ({reason})"))).ok()
}

/// Parses JSON with comments and trailing commas, without other extensions. The error contains line
/// and column.
pub fn parse_jsonc(text: &str) -> Result<Value, String> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    parse_to_serde_value(text, &options).map_err(|e| format!("invalid JSON: {e}"))
}

/// Returns the paths in `memory.files` of JSON settings, which lie at `name` in the project root and
/// in the home folder (docs/sources/opencode-vs-claude-code.md §5). Adds a note for a missing file
/// that the settings require; a bare path is optional.
pub fn listed_files(name: &str, folders: &ProjectFolders, notes: &mut Vec<Note>) -> Vec<String> {
    let mut out = Vec::new();
    for by in [folders.root.join(name), folders.home.join(name)] {
        let Some(settings) = read_settings(&by, parse_jsonc, notes) else { continue };
        for listed in settings["memory"]["files"].as_array().into_iter().flatten() {
            let Some(path) = listed.as_str().or(listed["path"].as_str()) else { continue };
            let exists = resolve(&folders.root, &folders.home, path).exists();
            if listed["required"] == true && !exists {
                let problem = "which does not exist; correct the path or remove it";
                Note::add(notes, &by, format!("lists {path}, {problem}"));
            }
            out.push(path.to_string());
        }
    }
    out
}
