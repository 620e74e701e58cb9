//! The files that an agent worked on last, which some products show again after a compaction.

use std::collections::HashSet;
use std::sync::Arc;

use super::tools::{is_edit, is_read};
use crate::content::{Part, ToolCall};
use crate::history::History;

/// A file that the agent read or edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecentFile {
    /// Path as the agent wrote it.
    pub path: String,
    /// The newest contents that a tool returned; `None` if the agent only wrote the file.
    pub text: Option<Arc<str>>,
}

/// Returns up to `max` files of the newest calls, newest first, each once. The contents are those of
/// the newest read, since a replay has no disk.
pub fn recent_files(history: &History, max: usize) -> Vec<RecentFile> {
    let mut out: Vec<RecentFile> = Vec::new();
    if max == 0 {
        return out;
    }
    let mut seen = HashSet::new();
    for m in history.messages().iter().rev() {
        for p in m.parts.iter().rev() {
            let Part::Call(ToolCall { name, arguments, .. }) = p else { continue };
            let Some(path) = file_path(name, arguments) else { continue };
            if seen.insert(path.clone()) {
                let text = newest_read(history, &path);
                out.push(RecentFile { path, text });
                if out.len() == max {
                    return out;
                }
            }
        }
    }
    out
}

/// Returns the path that a call reads or edits, if it is a file tool.
pub fn file_path(tool: &str, arguments: &str) -> Option<String> {
    if is_read(tool) || is_edit(tool) { path_of(arguments) } else { None }
}

fn path_of(arguments: &str) -> Option<String> {
    text_argument(arguments, &["file_path", "filePath", "path"])
}

/// Returns the text of the first of `names` among the arguments of a call.
pub fn text_argument(arguments: &str, names: &[&str]) -> Option<String> {
    let v: serde_json::Value = serde_json::from_str(arguments).ok()?;
    names.iter().find_map(|k| v.get(k)?.as_str().map(str::to_string))
}

fn newest_read(history: &History, path: &str) -> Option<Arc<str>> {
    history.messages().iter().rev().flat_map(|m| m.parts.iter().rev()).find_map(|p| match p {
        Part::Call(ToolCall { id, name, arguments }) => {
            let same = is_read(name) && path_of(arguments).as_deref() == Some(path);
            same.then(|| history.result(id).cloned()).flatten()
        }
        _ => None,
    })
}
