//! Files that a product's settings list.

use std::path::Path;

use serde_json::Value;

use jsonc_parser::{ParseOptions, parse_to_serde_value};

use super::{Note, read};

/// Settings in JSON; `None` = there are none, or they cannot be understood, which is noted.
pub fn json_settings(path: &Path, notes: &mut Vec<Note>) -> Option<Value> {
    let text = read(path, notes)?;
    match serde_json::from_str(&text) {
        Ok(settings) => Some(settings),
        Err(e) => {
            notes.push(Note::BadSettings { path: path.into(), why: format!("no JSON: {e}") });
            None
        }
    }
}

/// JSON with comments and commas behind the last member, and nothing else beyond JSON. The error
/// names line and column.
pub fn jsonc(text: &str) -> Result<Value, String> {
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
    parse_to_serde_value(text, &options).map_err(|e| format!("no JSON with comments: {e}"))
}

/// Settings in JSON with comments; otherwise as [`json_settings`].
pub fn jsonc_settings(path: &Path, notes: &mut Vec<Note>) -> Option<Value> {
    let text = read(path, notes)?;
    match jsonc(&text) {
        Ok(settings) => Some(settings),
        Err(why) => {
            notes.push(Note::BadSettings { path: path.into(), why });
            None
        }
    }
}

/// What `memory.files` of settings lists: a path, and whether the file must be there
/// (docs/sources/opencode-vs-claude-code.md §5). A bare path need not be.
pub(super) fn listed(settings: &Value) -> Vec<(&str, bool)> {
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
