//! Subagents of a Claude Code session that stand in files of their own: `agent-ID.jsonl` beside the session's file, in later versions
//! in the folder `SESSION/subagents/` (facts/claude-code-and-apis.md §1.6).

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{flag, str_of};
use crate::jsonl::numbered;

/// A first line that is longer is nobody's; bytes.
const LONGEST_LINE: u64 = 4 << 20;

/// The files of the subagents of a session, by name. None for what is no session's main file.
pub(crate) fn beside(path: &Path, text: &str) -> Vec<PathBuf> {
    let said = |o: &Map<String, Value>| matches!(str_of(o, "type"), Some("user" | "assistant")) && !flag(o, "isSidechain");
    let objects = numbered(text).filter_map(|(_, l)| serde_json::from_str::<Map<String, Value>>(l).ok());
    let Some(session) = objects.into_iter().find(said).and_then(|o| str_of(&o, "sessionId").map(str::to_string)) else { return vec![] };
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found: Vec<PathBuf> = [folder.to_path_buf(), path.with_extension("").join("subagents")]
        .iter()
        .flat_map(|d| fs::read_dir(d).into_iter().flatten().filter_map(Result::ok))
        .map(|e| e.path())
        .filter(|p| p != path && is_agent_of(p, &session))
        .collect();
    found.sort();
    found
}

fn is_agent_of(path: &Path, session: &str) -> bool {
    let named = path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with("agent-") && n.ends_with(".jsonl"));
    named && first(path).is_some_and(|o| flag(&o, "isSidechain") && str_of(&o, "sessionId") == Some(session))
}

fn first(path: &Path) -> Option<Map<String, Value>> {
    let mut line = String::new();
    BufReader::new(File::open(path).ok()?.take(LONGEST_LINE)).read_line(&mut line).ok()?;
    serde_json::from_str(&line).ok()
}

/// One transcript of a session and its subagents: lines in the order of their times, those of each file in their own. A line without
/// a time stands with the one before it.
pub(crate) fn merged(main: &str, agents: &[String]) -> String {
    let mut lines: Vec<(String, &str)> = std::iter::once(main).chain(agents.iter().map(String::as_str)).flat_map(timed).collect();
    // Stable: what each file holds stays in its order, and of equal times the main file's line comes first.
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    lines.into_iter().flat_map(|(_, l)| [l, "\n"]).collect()
}

/// Lines with the newest time so far; such times sort as text.
fn timed(text: &str) -> Vec<(String, &str)> {
    let mut newest = String::new();
    numbered(text)
        .map(|(_, line)| {
            let time = serde_json::from_str::<Map<String, Value>>(line).ok().and_then(|o| str_of(&o, "timestamp").map(str::to_string));
            if let Some(time) = time.filter(|t| *t > newest) {
                newest = time;
            }
            (newest.clone(), line)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_by_their_times() {
        let at = |s: u32, n: &str| format!("{{\"n\":\"{n}\",\"timestamp\":\"2026-01-01T00:00:{s:02}.000Z\"}}");
        let main = [at(1, "ask"), "{\"n\":\"untimed\"}".into(), at(9, "result")].join("\n");
        let agent = [at(3, "x1"), at(2, "x2 by another clock"), at(9, "x3")].join("\n");
        let text = merged(&main, &[agent]);
        let order: Vec<&str> = text.lines().map(|l| l.split('"').nth(3).unwrap()).collect();
        assert_eq!(order, ["ask", "untimed", "x1", "x2 by another clock", "result", "x3"]);
    }
}
