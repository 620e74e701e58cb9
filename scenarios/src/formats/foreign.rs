//! Recordings of programs that are known and not read. Their files look like those of other formats,
//! so they are refused by name.

use serde_json::{Map, Value};

use super::lines::{object_of, str_of};
use super::source::Head;

/// A program, and what only its files have at their beginning.
type Mark = (&'static str, fn(&Map<String, Value>) -> bool);

const PROGRAMS: &[Mark] = &[
    ("Amp", |o| {
        str_of(o, "id").is_some_and(|id| id.starts_with("T-")) && o.contains_key("messages")
    }),
    ("Gemini CLI (its stream-json output; read its chats instead)", |o| {
        str_of(o, "type") == Some("init") && o.contains_key("session_id")
    }),
    ("Claude Code or Cursor (their stream-json output; read the transcripts instead)", |o| {
        str_of(o, "type") == Some("system")
            && str_of(o, "subtype") == Some("init")
            && o.contains_key("session_id")
    }),
    ("Codex CLI (the output of `codex exec --json`; read its rollouts instead)", |o| {
        str_of(o, "type") == Some("thread.started")
    }),
    ("GitHub Copilot CLI", |o| {
        str_of(o, "type").is_some_and(|t| t.starts_with("session.")) && o.contains_key("data")
    }),
    ("GitHub Copilot Chat", |o| o.contains_key("requesterUsername") && o.contains_key("requests")),
    ("Goose", |o| o.contains_key("working_dir") && o.contains_key("message_count")),
    ("Continue", |o| o.contains_key("workspaceDirectory") && o.contains_key("history")),
    ("Factory Droid", |o| str_of(o, "type") == Some("session_start")),
    ("Amazon Q or Kiro", |o| o.contains_key("conversation_id") && o.contains_key("transcript")),
    ("Kimi CLI", |o| str_of(o, "role") == Some("_checkpoint")),
    ("Zed", |o| o.contains_key("initial_project_snapshot")),
    ("ChatGPT (its export)", |o| object_of(o, "mapping").is_some()),
];

/// Returns the program that wrote a file, if it is one of those that are not read.
pub fn program(head: &Head) -> Option<&'static str> {
    let first = head.objects().next().or_else(|| match head.value() {
        Value::Array(list) => list.first()?.as_object(),
        other => other.as_object(),
    })?;
    PROGRAMS.iter().find(|(_, is)| is(first)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Source;

    #[test]
    fn files_of_known_programs_are_named() {
        let program_of =
            |text: &str| program(&Source::of_bytes(text.as_bytes(), "x.jsonl").head().unwrap());
        for (text, name) in [
            (r#"{"v":3,"id":"T-1a","messages":[{"role":"user","content":[]}]}"#, "Amp"),
            (r#"{"type":"init","session_id":"g","model":"gemini-3"}"#, "Gemini CLI"),
            (r#"{"type":"system","subtype":"init","session_id":"s"}"#, "Claude Code or Cursor"),
            (r#"[{"mapping":{},"title":"x"}]"#, "ChatGPT"),
        ] {
            let found = program_of(text).unwrap_or_default();
            assert!(found.starts_with(name), "{found} for {text}");
        }
        assert_eq!(program_of(r#"{"type":"session","id":"T-1"}"#), None);
    }
}
