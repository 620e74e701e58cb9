//! Subagents of a Claude Code session in separate files: `agent-ID.jsonl` in the folder of the
//! session's file, in later versions in the folder `SESSION/subagents/`, those of workflows in folders
//! below it (docs/sources/claude-code.md §1.6).

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::super::source::NumberedLine;
use crate::formats::prelude::*;

/// Maximum length of a first line that is read, bytes.
const LONGEST_LINE: u64 = 4 << 20;

/// Returns the files of a session's subagents, sorted by name. Returns none if the input is not the
/// main file of a session.
pub(super) fn subagent_files(input: &Source<'_>) -> Vec<PathBuf> {
    let Some(path) = input.folder() else { return vec![] };
    let said = |o: &Map<String, Value>| {
        matches!(str_of(o, "type"), Some("user" | "assistant")) && !flag(o, "isSidechain")
    };
    let object = |line: NumberedLine| escapes::from_str::<Map<String, Value>>(&line.ok()?.1).ok();
    let mut objects = input.lines().into_iter().flatten().filter_map(object);
    let Some(session) =
        objects.find(said).and_then(|o| str_of(&o, "sessionId").map(str::to_string))
    else {
        return vec![];
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    // A link may have a different name.
    let own = path.with_file_name(Source::at(&path).stem());
    let beside = input.files_in(folder, false).into_iter();
    let below = input.files_in(&own.join("subagents"), true);
    let is_part = |p: &PathBuf| *p != *path && is_agent_of(input, p, &session);
    let mut found: Vec<PathBuf> = beside.chain(below).filter(is_part).collect();
    found.sort();
    found
}

fn is_agent_of(input: &Source<'_>, path: &Path, session: &str) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let is_of =
        |o: Map<String, Value>| flag(&o, "isSidechain") && str_of(&o, "sessionId") == Some(session);
    name.starts_with("agent-")
        && unpacked(name).ends_with(".jsonl")
        && first(input, path).is_some_and(is_of)
}

fn first(input: &Source<'_>, path: &Path) -> Option<Map<String, Value>> {
    let mut line = String::new();
    input.open_companion(path).ok()?.open().ok()?.take(LONGEST_LINE).read_line(&mut line).ok()?;
    escapes::from_str(&line).ok()
}
