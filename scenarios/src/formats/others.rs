//! Files of programs that are recognised and not read.

use serde_json::{Map, Value};

use super::Head;
use super::lines::str_of;
use crate::error::{InputError, LineFault};

/// Files of a program, which are refused by its name.
struct OtherFormat {
    /// What the file is, as the beginning of a sentence.
    title: &'static str,
    /// What is read instead.
    instead: &'static str,
    is_line: fn(&Map<String, Value>) -> bool,
}

static OTHERS: &[OtherFormat] = &[
    OtherFormat {
        title: "a stream of Gemini CLI (`--output-format stream-json`), which lacks the counters \
                of its requests",
        instead: "the chat in ~/.gemini/tmp/PROJECT/chats",
        is_line: |o| is(o, "init") && has(o, &["session_id", "model", "timestamp"]),
    },
    OtherFormat {
        title: "a stream of Claude Code (`--output-format stream-json`), which is not read",
        instead: "the transcript in ~/.claude/projects",
        is_line: |o| is(o, "system") && has(o, &["subtype", "session_id", "tools", "mcp_servers"]),
    },
    OtherFormat {
        title: "a stream of Codex (`codex exec --json`), which lacks the context of its requests",
        instead: "the rollout in ~/.codex/sessions",
        is_line: |o| is(o, "thread.started") && has(o, &["thread_id"]),
    },
    OtherFormat {
        title: "events of GitHub Copilot CLI, which are not read",
        instead: "a recording of its requests by `ctxbench record`",
        is_line: |o| is(o, "session.start") && has(o, &["data"]),
    },
];

fn is(o: &Map<String, Value>, kind: &str) -> bool {
    str_of(o, "type") == Some(kind)
}

fn has(o: &Map<String, Value>, names: &[&str]) -> bool {
    names.iter().all(|name| o.contains_key(*name))
}

/// Refuses a file of a program that is known and not read.
pub(crate) fn refuse(head: &Head) -> Result<(), InputError> {
    let first = head.objects().next();
    let Some(other) = OTHERS.iter().find(|other| first.is_some_and(other.is_line)) else {
        return Ok(());
    };
    let fix = "`ctxbench import --help` lists the formats";
    Err(LineFault::new(1, other.title, other.instead, fix).at(&head.name))
}

#[cfg(test)]
mod tests {
    #[test]
    fn streams_are_refused_by_the_name_of_their_program() {
        for (line, program) in [
            (r#"{"type":"init","timestamp":"t","session_id":"g1","model":"m"}"#, "Gemini CLI"),
            (
                r#"{"type":"system","subtype":"init","session_id":"s","tools":[],"mcp_servers":[]}"#,
                "Claude Code",
            ),
            (r#"{"type":"thread.started","thread_id":"x"}"#, "Codex"),
            (r#"{"type":"session.start","data":{}}"#, "GitHub Copilot CLI"),
        ] {
            let e = crate::parse(line.as_bytes(), "t.jsonl").unwrap_err().to_string();
            assert!(e.starts_with("t.jsonl:1: ") && e.contains(program), "{e}");
        }
        let e = crate::parse(b"{\"type\":\"note\"}", "t.jsonl").unwrap_err().to_string();
        assert!(e.starts_with("t.jsonl:1: not a format that ctxbench reads"), "{e}");
    }
}
