//! pi sessions (`~/.pi/agent/sessions/<folder>/<time>_<id>.jsonl`).
//!
//! Rules, where the format leaves a choice:
//! - Newer files name lines and parents (`id`, `parentId`); lines that are not on the way from the first to the last message are left out.
//!   In older files each line follows the one before.
//! - `usage` is the provider's and whole; a reply of which nothing was billed (aborted, failed) and that says nothing is left out.
//! - `compaction` becomes a recorded compaction. Commands of the user that ran beside the conversation (`bashExecution`) join the next
//!   user message. Changes of model and thinking level are seen in the replies.

use std::collections::{HashMap, HashSet};

use ctxbench_core::session::{Entry, Header, RecordedUsage, SessionCall, SessionPart};
use serde_json::{Map, Value};

use super::build::{Builder, Reply};
use super::{Importer, Line, first_objects, objects, str_of};
use crate::error::{ImportError, Loaded};

/// The importer of pi sessions.
pub struct Pi;

impl Importer for Pi {
    fn name(&self) -> &'static str {
        "pi"
    }

    fn sniff(&self, text: &str) -> bool {
        let is_head = |o: &Map<String, Value>| str_of(o, "type") == Some("session") && o.contains_key("cwd") && o.contains_key("timestamp");
        let is_message = |o: &Map<String, Value>| {
            let role = o.get("message").and_then(|m| m.get("role")).and_then(Value::as_str);
            str_of(o, "type") == Some("message") && role.is_some()
        };
        first_objects(text).any(|o| is_head(&o)) || first_objects(text).all(|o| is_message(&o)) && first_objects(text).next().is_some()
    }

    fn import(&self, text: &str, file: &str) -> Result<Loaded, ImportError> {
        let mut warnings = Vec::new();
        let mut lines = objects(text, file, &mut warnings);
        let left = keep_branch(&mut lines);
        if left > 0 {
            warnings.push(format!("{file}: {left} messages belong to branches that the session did not end with; left out"));
        }
        let mut b = Builder::new(warnings);
        for line in &lines {
            add(&mut b, line);
        }
        b.finish(self.name(), file, Header::default())
    }
}

fn is_message(line: &Line) -> bool {
    str_of(&line.object, "type") == Some("message")
}

/// Keeps the way from the first to the last message; returns how many messages were left out.
fn keep_branch(lines: &mut Vec<Line>) -> usize {
    let by_id: HashMap<&str, usize> = lines.iter().enumerate().filter_map(|(i, l)| Some((str_of(&l.object, "id")?, i))).collect();
    let Some(mut at) = lines.iter().rposition(is_message).filter(|i| lines[*i].object.contains_key("parentId")) else { return 0 };
    let mut on_way = HashSet::new();
    while on_way.insert(lines[at].number) {
        match str_of(&lines[at].object, "parentId").and_then(|p| by_id.get(p)) {
            Some(p) => at = *p,
            None => break,
        }
    }
    let before = lines.len();
    lines.retain(|l| !is_message(l) || on_way.contains(&l.number));
    before - lines.len()
}

fn add(b: &mut Builder, line: &Line) {
    let o = &line.object;
    let stamp = str_of(o, "timestamp");
    match (str_of(o, "type").unwrap_or_default(), o.get("message").and_then(Value::as_object)) {
        ("compaction", _) => {
            let at = b.at(stamp);
            let summary = str_of(o, "summary").map(str::to_string);
            let pre_tokens = o.get("tokensBefore").and_then(Value::as_u64);
            b.entry(line.number, Entry::RecordedCompaction { pre_tokens, post_tokens: None, summary, at, extra: Default::default() });
        }
        ("message", Some(m)) => match str_of(m, "role").unwrap_or_default() {
            "user" => b.user(line.number, str_of(o, "id"), parts(m), stamp),
            "assistant" => reply(b, line.number, o, m, stamp),
            "toolResult" => {
                let failed = m.get("isError").and_then(Value::as_bool).filter(|e| *e);
                b.result(line.number, str_of(m, "toolCallId").unwrap_or_default(), parts(m), failed, stamp);
            }
            "bashExecution" => {
                let text = |key: &str| str_of(m, key).unwrap_or_default();
                b.hold(SessionPart::Text { text: format!("$ {}\n{}", text("command"), text("output")) });
            }
            _ => {}
        },
        _ => {}
    }
}

fn reply(b: &mut Builder, line: usize, o: &Map<String, Value>, m: &Map<String, Value>, stamp: Option<&str>) {
    let count = |key: &str| m.get("usage").and_then(|u| u.get(key)).and_then(Value::as_u64).unwrap_or_default();
    let usage =
        RecordedUsage { input: count("input"), output: count("output"), cache_read: count("cacheRead"), cache_write: count("cacheWrite") };
    let (parts, billed) = (parts(m), usage != RecordedUsage::default());
    if parts.is_empty() && !billed {
        return;
    }
    b.reply(Reply {
        line,
        id: str_of(o, "id").map(str::to_string),
        parts,
        usage: Some(usage).filter(|_| billed),
        model: str_of(m, "model").map(str::to_string),
        stamp: stamp.map(str::to_string),
        ..Reply::default()
    });
}

fn parts(m: &Map<String, Value>) -> Vec<SessionPart> {
    match m.get("content") {
        Some(Value::String(text)) => vec![SessionPart::Text { text: text.clone() }],
        Some(Value::Array(list)) => list.iter().filter_map(|p| part(p.as_object()?)).collect(),
        _ => Vec::new(),
    }
}

fn part(p: &Map<String, Value>) -> Option<SessionPart> {
    let text = |key: &str| str_of(p, key).unwrap_or_default().to_string();
    match str_of(p, "type").unwrap_or_default() {
        "text" => Some(SessionPart::Text { text: text("text") }),
        "thinking" => {
            let encrypted = str_of(p, "thinkingSignature").filter(|s| !s.is_empty()).map(str::to_string);
            Some(SessionPart::Reasoning { text: text("thinking"), encrypted })
        }
        "toolCall" => {
            let arguments = p.get("arguments").map_or_else(|| "{}".to_string(), Value::to_string);
            Some(SessionPart::Call(SessionCall { id: text("id"), name: text("name"), arguments }))
        }
        "image" => {
            let media_type = text("mimeType");
            let url = format!("data:{media_type};base64,{}", text("data"));
            Some(SessionPart::Image { media_type, url, name: None })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::detect;

    const OLD: &str = r#"{"type":"session","id":"s","timestamp":"2026-01-08T20:00:00.000Z","cwd":"/w","provider":"anthropic","modelId":"claude-sonnet-4-5","thinkingLevel":"off"}
{"type":"message","timestamp":"2026-01-08T20:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"list the files"}],"timestamp":1}}
{"type":"message","timestamp":"2026-01-08T20:00:03.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t1","name":"bash","arguments":{"command":"ls"}}],"model":"claude-sonnet-4-5","usage":{"input":3,"output":20,"cacheRead":0,"cacheWrite":1500},"stopReason":"toolUse","timestamp":2}}
{"type":"message","timestamp":"2026-01-08T20:00:04.000Z","message":{"role":"toolResult","toolCallId":"t1","toolName":"bash","content":[{"type":"text","text":"a.txt"}],"isError":false}}
{"type":"message","timestamp":"2026-01-08T20:00:05.000Z","message":{"role":"assistant","content":[],"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"stopReason":"aborted"}}
{"type":"compaction","timestamp":"2026-01-08T20:01:00.000Z","summary":"files were listed","firstKeptEntryIndex":3,"tokensBefore":1600}
{"type":"message","timestamp":"2026-01-08T20:02:01.000Z","message":{"role":"user","content":"thanks"}}"#;

    #[test]
    fn messages_results_usage_and_compactions() {
        assert_eq!(detect(OLD).unwrap().name(), "pi");
        let s = Pi.import(OLD, "s.jsonl").unwrap().session;
        assert_eq!(s.entries.len(), 5, "{:?}", s.entries);
        let Entry::Assistant(a) = &s.entries[1] else { panic!("{:?}", s.entries[1]) };
        assert_eq!(a.usage.map(|u| (u.input, u.output, u.cache_read, u.cache_write)), Some((3, 20, 0, 1_500)));
        assert_eq!(a.all_calls()[0].arguments, r#"{"command":"ls"}"#);
        let Entry::Tool(t) = &s.entries[2] else { panic!("{:?}", s.entries[2]) };
        assert_eq!((t.call_id.as_str(), t.output.as_deref(), t.at), ("t1", Some("a.txt"), Some(3_000)));
        assert!(
            matches!(&s.entries[3], Entry::RecordedCompaction { pre_tokens: Some(1_600), summary: Some(x), .. } if x == "files were listed")
        );
    }

    #[test]
    fn of_branches_the_last_counts() {
        let text = r#"{"type":"session","version":3,"id":"s","timestamp":"2026-01-08T20:00:00.000Z","cwd":"/w"}
{"type":"message","id":"1","parentId":null,"timestamp":"2026-01-08T20:00:01.000Z","message":{"role":"user","content":"one"}}
{"type":"message","id":"2","parentId":"1","timestamp":"2026-01-08T20:00:02.000Z","message":{"role":"assistant","content":[{"type":"text","text":"first try"}]}}
{"type":"message","id":"3","parentId":"1","timestamp":"2026-01-08T20:00:03.000Z","message":{"role":"assistant","content":[{"type":"text","text":"second try"}]}}"#;
        let loaded = Pi.import(text, "s.jsonl").unwrap();
        let said: Vec<_> = loaded
            .session
            .entries
            .iter()
            .filter_map(|e| match e {
                Entry::Assistant(a) => a.text.clone(),
                _ => None,
            })
            .collect();
        assert_eq!(said, ["second try"]);
        assert!(loaded.warnings[0].contains("1 messages belong to branches"), "{:?}", loaded.warnings);
    }
}
