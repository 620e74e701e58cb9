//! Files that a product's settings list.

use std::path::Path;

use serde_json::Value;

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
