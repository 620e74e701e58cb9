//! Support for the tests of the formats: imports, and sessions as lines of text.

use std::path::PathBuf;

use ctxbench_core::content::Part;
use ctxbench_session::{Entry, RecordedUsage, Session};
use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use super::{Source, detect};
use crate::Loaded;

/// Returns the path of a recording below `tests/data/recordings`.
pub(crate) fn recorded(path: &str) -> PathBuf {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/recordings");
    folder.join(path)
}

/// Builds the database that an SQL file below `tests/data/recordings` describes, in a new folder.
pub(crate) fn database(path: &str) -> (TempDir, PathBuf) {
    let sql = std::fs::read_to_string(recorded(path)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let name = path.rsplit('/').next().unwrap().replace(".sql", ".db");
    let file = folder.path().join(name);
    Connection::open(&file).unwrap().execute_batch(&sql).unwrap();
    (folder, file)
}

/// Checks that a text contains each part.
#[track_caller]
pub(crate) fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

/// Imports the sessions of a source that must be recognised as this format.
pub(crate) fn import(format: &str, source: &Source<'_>) -> Vec<Loaded> {
    let found = detect(source).expect("recognised");
    assert_eq!(found.name, format);
    found.import_all(source).unwrap()
}

/// Describes each entry of a session by its agent, kind and contents.
pub(crate) fn describe(session: &Session) -> Vec<String> {
    let part = |p: Part| match p {
        Part::Text(t) => t.to_string(),
        Part::Reasoning { text, encrypted } => format!("({text}{})", encrypted.unwrap_or_default()),
        Part::Call(c) => format!("{}[{}]{}", c.name, c.id, c.arguments),
        Part::Image(m) => format!("<{} {}>", m.media_type, m.url.len()),
        other => format!("{other:?}"),
    };
    let said = |e: &Entry| e.content().into_iter().map(part).collect::<Vec<_>>().join(" + ");
    let line = |e: &Entry| match e {
        Entry::System { text, .. } => format!("system: {text}"),
        Entry::Memory { path, text, .. } => format!("memory {path}: {text}"),
        Entry::Tools { definitions, .. } => format!("tools: {}", Value::from(definitions.clone())),
        Entry::User(_) => format!("user: {}", said(e)),
        Entry::Assistant(_) => format!("model: {}", said(e)),
        Entry::Tool(t) => {
            let failed = if t.is_error == Some(true) { "!" } else { "" };
            format!("result{failed}[{}]: {}", t.call_id, said(e))
        }
        Entry::RecordedCompaction(c) => {
            format!("compaction: {:?} {:?} {:?}", c.pre_tokens, c.post_tokens, c.summary)
        }
        Entry::RecordedCall(c) => format!("call: {}", c.usage.input),
        Entry::Clear => "clear".to_string(),
        other => format!("{other:?}"),
    };
    let agent = |e: &Entry| match e {
        Entry::RecordedCall(c) => c.agent.clone(),
        other => other.agent().map(str::to_string),
    };
    let entries = session.entries.iter();
    entries.map(|e| agent(e).map_or(line(e), |agent| format!("{agent}/{}", line(e)))).collect()
}

/// Returns the counters of each reply: input, read, write, output.
pub(crate) fn counted(session: &Session) -> Vec<Option<[u64; 4]>> {
    let replies = session.entries.iter().filter_map(Entry::as_reply);
    let usage = |u: &RecordedUsage| {
        [u.input, u.cache_read, u.cache_write.saturating_add(u.cache_write_1h), u.output]
    };
    replies.map(|reply| reply.usage.as_ref().map(usage)).collect()
}

/// Returns the times of the messages and results that have one, in ms.
pub(crate) fn times(session: &Session) -> Vec<u64> {
    let at = |e: &Entry| match e {
        Entry::User(u) => u.at,
        Entry::Assistant(a) => a.at,
        Entry::Tool(t) => t.at,
        Entry::RecordedCompaction(c) => c.at,
        _ => None,
    };
    session.entries.iter().filter_map(at).collect()
}
