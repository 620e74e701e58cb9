//! Recordings of programs that are known and not read, and streams of programs whose sessions are.
//! Their files look like those of other formats, so they are refused by name.

use serde_json::{Map, Value};

use super::lines::{object_in, object_of, str_of};
use super::source::{DATABASE, Head};

/// A program, and what only its files have at their beginning.
type Mark = (&'static str, fn(&Map<String, Value>) -> bool);

const PROGRAMS: &[Mark] = &[
    (
        "Claude Code, Qwen Code, Amp, Cursor or Droid (the stream-json output, which is not the whole \
      session; of Claude Code and Qwen Code, read the transcripts instead)",
        |o| {
            str_of(o, "session_id").is_some()
                && !o.contains_key("sessionId")
                && matches!(str_of(o, "type"), Some("system" | "user" | "assistant" | "result"))
        },
    ),
    ("Codex CLI (the output of `codex exec --json`; read its rollouts instead)", |o| {
        str_of(o, "type") == Some("thread.started") || object_in(o, "msg").contains_key("type")
    }),
    (
        "OpenCode (the output of `opencode run --format json`, or events of its server; export the \
      session with `opencode export` instead)",
        |o| {
            let is_event = str_of(o, "type").is_some_and(|kind| kind.contains('.'));
            is_event && object_of(o, "properties").is_some()
                || str_of(o, "sessionID").is_some()
                    && (object_of(o, "part").is_some() || object_of(o, "error").is_some())
        },
    ),
    ("pi (the output of `pi --mode json`; read its sessions instead)", |o| {
        matches!(str_of(o, "type"), Some("agent_start" | "turn_start" | "message_end"))
    }),
    ("Goose (its stream-json output; read its database instead)", |o| {
        str_of(o, "type") == Some("message") && object_in(o, "message").contains_key("created")
    }),
    ("Continue", |o| o.contains_key("workspaceDirectory") && o.contains_key("history")),
    ("Amazon Q or Kiro", |o| o.contains_key("conversation_id") && o.contains_key("transcript")),
    ("Kimi CLI (`context.jsonl`; read its `wire.jsonl` instead)", |o| {
        matches!(str_of(o, "role"), Some("_checkpoint" | "_system_prompt" | "_usage"))
    }),
    ("Zed (a text thread)", |o| str_of(o, "zed") == Some("context")),
    ("ChatGPT (its export)", |o| object_of(o, "mapping").is_some()),
];

/// A program, and a name in the schema that only its database has.
const DATABASES: &[(&str, &str)] =
    &[("GitHub Copilot CLI (its counters; read `events.jsonl` instead)", "assistant_usage_events")];

/// Returns the program that wrote a file, if it is one of those that are not read.
pub fn program(head: &Head) -> Option<&'static str> {
    if head.text.starts_with(DATABASE) {
        // Texts in a database that is read may contain any name.
        let is_read = super::ALL.iter().any(|format| (format.sniff)(head));
        let found = DATABASES.iter().find(|(_, name)| !is_read && head.text.contains(name));
        return found.map(|(program, _)| *program);
    }
    let value = match head.value() {
        Value::Array(list) => list.first()?,
        other => other,
    };
    let all = || head.objects().chain(value.as_object());
    PROGRAMS.iter().find(|(_, is)| all().any(is)).map(|(name, _)| *name)
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
            (
                r#"{"type":"system","subtype":"init","session_id":"s"}"#,
                "Claude Code, Qwen Code, Amp",
            ),
            (r#"[{"mapping":{},"title":"x"}]"#, "ChatGPT"),
            // Streams that would look like the sessions of another program, or of their own.
            (r#"{"type":"step_start","sessionID":"s","part":{"type":"step-start"}}"#, "OpenCode"),
            (
                "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":\"_checkpoint\",\"id\":0}",
                "Kimi CLI",
            ),
            (r#"{"type":"message","message":{"role":"user","created":1,"content":[]}}"#, "Goose"),
            (
                "{\"type\":\"session\",\"cwd\":\"/\",\"timestamp\":\"x\"}\n{\"type\":\"agent_start\"}",
                "pi",
            ),
            (r#"{"role":"_system_prompt","content":"x"}"#, "Kimi CLI"),
            (r#"[{"type":"system","subtype":"x","session_id":"s"}]"#, "Claude Code, Qwen Code"),
        ] {
            let found = program_of(text).unwrap_or_default();
            assert!(found.starts_with(name), "{found} for {text}");
        }
        assert_eq!(program_of(r#"{"type":"session","id":"T-1"}"#), None);
    }
}
