//! Subagents of a Claude Code session in separate files: `agent-ID.jsonl` in the folder of the
//! session's file, in later versions in the folder `SESSION/subagents/`, those of workflows in folders
//! below it (docs/sources/claude-code.md §1.6).

use std::path::{Path, PathBuf};

use ctxbench_formats::lines::LineReader;

use super::super::source::NumberedLine;
use crate::formats::prelude::*;

/// Returns the files of a session's subagents, sorted by name. Returns none if the input is not the
/// main file of a session.
pub(super) fn subagent_files(input: &Source<'_>) -> Vec<PathBuf> {
    let Some(path) = input.folder() else { return vec![] };
    // A link may have a different name.
    let own = path.with_file_name(Source::at(&path).stem());
    let below = input.files_in(&own.join("subagents"), true);
    let beside = input.owned_in(path.parent().unwrap_or(Path::new("")), session_of_agent);
    // The file of a subagent would be read to its end without finding a line of the session.
    if below.is_empty() && (beside.is_empty() || session_of_agent(input, &path).is_some()) {
        return vec![];
    }
    let said = |o: &Map<String, Value>| {
        matches!(str_of(o, "type"), Some("user" | "assistant")) && !flag(o, "isSidechain")
    };
    let mut objects = input.lines().into_iter().flatten().flat_map(objects_on);
    let Some(session) =
        objects.find(said).and_then(|o| str_of(&o, "sessionId").map(str::to_string))
    else {
        return vec![];
    };
    // Those in its own folder may name another session.
    let is_agent = |p: &PathBuf| session_of_agent(input, p).is_some();
    let beside = beside.get(&session).into_iter().flatten().cloned();
    let mut found: Vec<PathBuf> = beside.chain(below.into_iter().filter(is_agent)).collect();
    found.retain(|p| *p != *path);
    found.sort();
    found
}

/// Returns the session of a subagent's file.
fn session_of_agent(input: &Source<'_>, path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_named = name.starts_with("agent-") && unpacked(name).ends_with(".jsonl");
    let object = is_named.then(|| first(input, path))??;
    flag(&object, "isSidechain").then(|| string(&object, "sessionId"))?
}

/// Returns the first object in a file, on one of its first lines.
fn first(input: &Source<'_>, path: &Path) -> Option<Map<String, Value>> {
    let source = input.open_companion(path).ok()?;
    source.lines().ok()?.take(3).flat_map(objects_on).next()
}

fn objects_on(line: NumberedLine) -> Vec<Map<String, Value>> {
    line.map(|(_, text)| LineReader::default().objects(&text).0).unwrap_or_default()
}
