//! Settings files in JSON and JSONC.

use std::path::Path;

use serde_json::Value;

use jsonc_parser::{ParseOptions, parse_to_serde_value};

use super::{Note, read};

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

/// Returns the paths in `memory.files` and whether each file is required
/// (docs/sources/opencode-vs-claude-code.md §5). A bare path is optional.
pub(super) fn memory_files(settings: &Value) -> Vec<(&str, bool)> {
    let files = settings["memory"]["files"].as_array();
    files
        .into_iter()
        .flatten()
        .filter_map(|v| match v.as_str() {
            Some(path) => Some((path, false)),
            None => Some((v["path"].as_str()?, v["required"].as_bool().unwrap_or(false))),
        })
        .collect()
}
