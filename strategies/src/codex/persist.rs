//! Codex: one rollout per session (docs/sources/codex.md §4).
//!
//! A compaction is a line with the complete new history, so any context can be expressed. Reading
//! starts at the newest such line.

use ctxbench_core::prelude::*;
use ctxbench_formats::codex;
use serde_json::{Value, json};

use crate::persist::jsonl::{Cursor, LineFormat, LineSession};
use crate::persist::{BEGIN, PersistFormat, SESSION, StoredMessage, name_results};

pub(crate) const FORMAT: PersistFormat =
    PersistFormat { name: "codex-rollout", open: |dir, seed| LineSession::open(&LINES, dir, seed) };

static LINES: LineFormat = LineFormat {
    path: "sessions/2023/11/14/\
        rollout-2023-11-14T22-13-20-00000000-0000-4000-8000-000000000001.jsonl",
    header: || {
        let meta = json!({"id": SESSION, "cli_version": "0.169.0"});
        Some(line(&mut Cursor::default(), "session_meta", meta))
    },
    id: |_| None,
    message: |at, said| {
        items(said).into_iter().map(|item| line(at, "response_item", item)).collect()
    },
    view: |at, view| {
        let parts = view.iter().flat_map(|s| &s.parts);
        let summary = parts.clone().find(|p| matches!(p, Part::Summary(_)));
        let history: Vec<Value> = view.iter().flat_map(items).collect();
        let message = summary.map(|p| p.text()).unwrap_or_default();
        let new = json!({"message": message, "replacement_history": history});
        vec![line(at, "compacted", new)]
    },
    shown: |lines| {
        let history = |l: &Value| l["payload"]["replacement_history"].as_array().cloned();
        let newest = lines.iter().rposition(|l| l["type"] == "compacted" && history(l).is_some());
        let mut all = newest.and_then(|at| history(&lines[at])).unwrap_or_default();
        all.extend(response_items(&lines[newest.unwrap_or(0)..]).cloned());
        (to_messages(all.iter()).into_iter().map(|said| (said, Vec::new())).collect(), Vec::new())
    },
    log: |lines| to_messages(response_items(lines)),
};

fn line(at: &mut Cursor, kind: &str, payload: Value) -> Value {
    let ordinal = at.lines;
    at.lines += 1;
    json!({"timestamp": BEGIN, "ordinal": ordinal, "type": kind, "payload": payload})
}

fn response_items(lines: &[Value]) -> impl Iterator<Item = &Value> {
    lines.iter().filter(|l| l["type"] == "response_item").map(|l| &l["payload"])
}

/// Names of roles; any other is the user.
const ROLES: [(Role, &str); 4] = [
    (Role::Assistant, "assistant"),
    (Role::Developer, "developer"),
    (Role::System, "system"),
    (Role::Instructions, "system"),
];

/// Converts a message to items: texts and images together, each other part as a separate item.
fn items(said: &StoredMessage) -> Vec<Value> {
    let name = ROLES.iter().find(|(role, _)| *role == said.role);
    let role = name.map_or("user", |(_, name)| name);
    let mut out: Vec<Value> = Vec::new();
    for part in &said.parts {
        let Some(content) = codex::content(role, part) else {
            out.extend(codex::item(part));
            continue;
        };
        match out.last_mut().and_then(|last| last.get_mut("content")?.as_array_mut()) {
            Some(list) => list.push(content),
            None => out.push(codex::message(role, vec![content])),
        }
    }
    out
}

/// Converts items to messages: consecutive items of the assistant are one message. An output does
/// not name its tool; the call does.
fn to_messages<'a>(items: impl Iterator<Item = &'a Value>) -> Vec<StoredMessage> {
    let mut out: Vec<StoredMessage> = Vec::new();
    for item in items.filter_map(Value::as_object) {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default();
        let (role, parts) = match text("type") {
            "message" => {
                let role = ROLES.iter().find(|(_, name)| *name == text("role"));
                let content = item.get("content").and_then(Value::as_array).into_iter().flatten();
                let content = content.filter_map(Value::as_object);
                let parts = content.filter_map(codex::content_part).collect();
                (role.map_or(Role::User, |(role, _)| *role), parts)
            }
            "function_call_output" => {
                let (id, output) = (text("call_id").into(), text("output").into());
                let (name, is_error) = ("".into(), false);
                (Role::Tool, vec![Part::Result { id, name, output, is_error }])
            }
            _ => match codex::part(item) {
                Some(part) => (Role::Assistant, vec![part]),
                None => continue,
            },
        };
        match out.last_mut() {
            Some(last)
                if role == Role::Assistant && last.role == role && text("type") != "message" =>
            {
                last.parts.extend(parts)
            }
            _ => out.push(StoredMessage { role, parts }),
        }
    }
    name_results(out.iter_mut());
    out
}
