//! Gemini CLI's session file (docs/sources/gemini-cli.md §6): append-only JSONL. Each message is a
//! line. A compression is a line that replaces the whole list of messages. A rewind is a line with
//! the ID of the first message to remove; all later messages are removed too.

use ctxbench_core::prelude::*;
use ctxbench_formats::gemini_cli::{Chat, block, part};
use ctxbench_formats::lines::ObjectLine;
use serde_json::{Map, Value, json};

use crate::persist::jsonl::{Cursor, LineFormat, LineSession, ShownMessage};
use crate::persist::{BEGIN, PersistFormat, SESSION, StoredMessage};

pub(crate) const FORMAT: PersistFormat = PersistFormat {
    name: "gemini-cli-jsonl",
    open: |dir, seed| LineSession::open(&LINES, dir, seed),
};

static LINES: LineFormat = LineFormat {
    path: ".gemini/tmp/project/chats/session-2023-11-14T22-13-00000000.jsonl",
    header: || {
        Some(json!({
            "sessionId": SESSION, "projectHash": "project", "startTime": BEGIN,
            "lastUpdated": BEGIN, "kind": "main",
        }))
    },
    id: |line| line["id"].as_str(),
    message: |at, said| vec![message(at, said)],
    view,
    shown: |lines| {
        let objects = lines.iter().filter_map(|line| line.as_object().cloned());
        let chat = Chat::from_lines(objects.map(|object| ObjectLine { number: 0, object }));
        (chat.messages.iter().filter_map(|m| parse_message(&m.object)).collect(), Vec::new())
    },
    log: |lines| {
        let objects = lines.iter().filter_map(Value::as_object);
        objects.filter_map(parse_message).map(|(said, _)| said).collect()
    },
};

fn message(at: &mut Cursor, said: &StoredMessage) -> Value {
    at.lines += 1;
    let id = format!("{:08x}-0000-4000-8000-{:012x}", at.lines, at.seed & 0xffff_ffff);
    let kind = if said.role == Role::Assistant { "gemini" } else { "user" };
    let content: Vec<Value> = said.parts.iter().filter_map(block).collect();
    json!({"id": id, "timestamp": BEGIN, "type": kind, "content": content})
}

fn view(at: &mut Cursor, view: &[StoredMessage]) -> Vec<Value> {
    let same = at.shared(view);
    if let Some((_, ids)) = at.shown.get(same).filter(|_| same == view.len()) {
        return vec![json!({"$rewindTo": ids[0]})];
    }
    let mut messages = Vec::new();
    for said in view {
        let mut line = message(at, said);
        // Unchanged messages keep their IDs.
        if let Some((_, ids)) = at.shown.iter().find(|(s, _)| s == said) {
            line["id"] = json!(ids[0]);
        }
        messages.push(line);
    }
    vec![json!({"$set": {"messages": messages, "lastUpdated": BEGIN}})]
}

fn parse_message(line: &Map<String, Value>) -> Option<ShownMessage> {
    let content = line.get("content")?.as_array()?.iter().filter_map(Value::as_object);
    let parts: Vec<Part> = content.filter_map(part).collect();
    let result = parts.iter().any(|p| matches!(p, Part::Result { .. }));
    let role = match line.get("type")?.as_str()? {
        "gemini" => Role::Assistant,
        "user" if result => Role::Tool,
        "user" => Role::User,
        _ => return None,
    };
    Some((StoredMessage { role, parts }, vec![line.get("id")?.as_str()?.to_string()]))
}
