//! pi's session file (docs/sources/pi.md §7): append-only JSONL. Each entry names its parent, so
//! the entries form a tree. The last line is the current leaf.
//!
//! A compaction is an entry with the summary and the ID of the first entry of the tail. The
//! summarised entries stay in the file. An edit hides a message. A rewind writes no line: the next
//! entry names an older entry as its parent. A restart before that entry shows the messages from
//! before the rewind.

use std::collections::HashMap;
use std::sync::LazyLock;

use ctxbench_core::prelude::*;
use ctxbench_formats::{lines, pi};
use serde::Deserialize;
use serde_json::{Value, json};

use super::rules::{FileLists, PiWords};
use crate::descriptor::About;
use crate::persist::jsonl::{Cursor, LineFormat, LineSession, ShownMessage};
use crate::persist::{BEGIN, CWD, PersistFormat, SESSION, StoredMessage};

pub(crate) const FORMAT: PersistFormat =
    PersistFormat { name: "pi-jsonl", open: |dir, seed| LineSession::open(&LINES, dir, seed) };

static WORDS: LazyLock<PiWords> = LazyLock::new(|| {
    let about = About::read(include_str!("about.toml"));
    PiWords::deserialize(about.words).expect("the fields are those of about.toml")
});

static LINES: LineFormat = LineFormat {
    path: ".pi/agent/sessions/--work-project--/\
        2023-11-14T22-13-20-000Z_00000000-0000-4000-8000-000000000001.jsonl",
    header: || {
        Some(json!({
            "type": "session", "version": 3, "id": SESSION, "timestamp": BEGIN, "cwd": CWD,
        }))
    },
    id: entry_id,
    message: |at, said| {
        let entry = match said.is_summary() {
            // A summary without entries before it.
            true => compaction(said, None),
            false => json!({"type": "message", "message": message(said)}),
        };
        vec![placed(at, entry)]
    },
    view,
    shown: |lines| (projected(lines), Vec::new()),
    log: |lines| lines.iter().filter_map(|l| parse_message(&l["message"])).collect(),
};

/// Gives an entry its id, time and parent.
fn placed(at: &mut Cursor, mut entry: Value) -> Value {
    at.lines += 1;
    let id = format!("{:08x}", (at.seed << 20 ^ at.lines) & 0xffff_ffff);
    entry["id"] = json!(id);
    entry["parentId"] = at.last.replace(id).into();
    entry["timestamp"] = json!(BEGIN);
    entry
}

fn compaction(said: &StoredMessage, kept: Option<&str>) -> Value {
    let text = said.parts.iter().map(Part::text).collect::<String>();
    let own = text.strip_prefix(&*WORDS.summary_head);
    let own = own.and_then(|t| t.strip_suffix(&*WORDS.summary_tail));
    let files = FileLists::found_in(own.unwrap_or_default());
    let mut entry = json!({
        "type": "compaction",
        "summary": own.unwrap_or(&text),
        "firstKeptEntryId": kept,
        "details": {"readFiles": files.read, "modifiedFiles": files.modified},
    });
    if own.is_none() {
        // An external compaction: the program adds no text around its summary.
        entry["fromHook"] = json!(true);
    }
    entry
}

fn view(at: &mut Cursor, view: &[StoredMessage]) -> Vec<Value> {
    let same = at.shared(view);
    if let Some(said) = view.first().filter(|s| s.is_summary() && same == 0) {
        return compact(at, said, &view[1..]);
    }
    if same == view.len() && at.shown.len() > same + 1 {
        // Returns to an older entry.
        at.last = same.checked_sub(1).map(|i| at.shown[i].1[0].clone());
        at.shown.truncate(same);
        return Vec::new();
    }
    if let Some(edits) = edits(at, view) {
        let edit = |(target, now): (String, Option<&StoredMessage>)| {
            let replacement = now.map(|n| json!({"content": content(n)}));
            json!({"type": "context_edit", "targetId": target, "replacement": replacement})
        };
        let edits: Vec<Value> = edits.into_iter().map(edit).collect();
        return edits.into_iter().map(|e| placed(at, e)).collect();
    }
    // Any other view starts a new branch at the root.
    at.last = None;
    view.iter().flat_map(|s| (LINES.message)(at, s)).collect()
}

/// Finds the entries with messages that are missing from the view or differ in it, if all other
/// messages are the same. Returns each such entry with its new message. `None` = the view has
/// other differences.
fn edits<'a>(
    at: &Cursor,
    view: &'a [StoredMessage],
) -> Option<Vec<(String, Option<&'a StoredMessage>)>> {
    let known = |v: &StoredMessage| at.shown.iter().any(|(s, _)| s == v);
    let mut rest = view.iter().peekable();
    let mut out = Vec::new();
    for (said, ids) in &at.shown {
        if rest.next_if(|v| *v == said).is_none() {
            out.push((ids[0].clone(), rest.next_if(|v| v.role == said.role && !known(v))));
        }
    }
    rest.peek().is_none().then_some(out)
}

/// Writes a compaction. The part of its tail that ends the current view is kept by reference,
/// and all other messages of the tail are written again.
fn compact(at: &mut Cursor, summary: &StoredMessage, tail: &[StoredMessage]) -> Vec<Value> {
    let ends = |from: usize| {
        let shown = at.shown[from..].iter().map(|(s, _)| s);
        shown.clone().count() <= tail.len() && shown.zip(tail).all(|(a, b)| a == b)
    };
    let from = (0..at.shown.len()).find(|&i| ends(i));
    let kept = from.map(|i| at.shown[i].1[0].clone());
    let named = from.map_or(0, |i| at.shown.len() - i);
    let mut out = vec![placed(at, compaction(summary, kept.as_deref()))];
    out.extend(
        tail[named..].iter().map(|s| placed(at, json!({"type": "message", "message": message(s)}))),
    );
    out
}

fn entry_id(line: &Value) -> Option<&str> {
    line["id"].as_str().filter(|_| line["type"] != "session")
}

/// Returns the messages on the way from the root to the last entry, each with its entry's ID.
fn projected(all: &[Value]) -> Vec<ShownMessage> {
    let entries: Vec<(&str, &Value)> = all.iter().filter_map(|l| Some((entry_id(l)?, l))).collect();
    let tree: Vec<(&str, Option<&str>)> =
        entries.iter().map(|(id, l)| (*id, l["parentId"].as_str())).collect();
    let mut way: Vec<(&str, &Value)> =
        lines::path_to_last(&tree).into_iter().map(|i| entries[i]).collect();
    let mut out = Vec::new();
    let mut from = 0;
    if let Some(at) = way.iter().rposition(|(_, l)| l["type"] == "compaction") {
        let (id, entry) = way.remove(at);
        let kept = way[..at].iter().position(|(id, _)| entry["firstKeptEntryId"] == *id);
        out.push((summary(entry), vec![id.to_string()]));
        from = kept.unwrap_or(at);
    }
    let edits: HashMap<&str, &Value> = way
        .iter()
        .filter(|(_, l)| l["type"] == "context_edit")
        .filter_map(|(_, l)| Some((l["targetId"].as_str()?, &l["replacement"])))
        .collect();
    for (id, line) in &way[from..] {
        let said = match edits.get(id) {
            None => parse_message(&line["message"]),
            Some(Value::Null) => None,
            Some(replacement) => {
                let mut message = line["message"].clone();
                if message.is_object() {
                    message["content"] = replacement["content"].clone();
                }
                parse_message(&message)
            }
        };
        out.extend(said.map(|said| (said, vec![id.to_string()])));
    }
    out
}

fn summary(entry: &Value) -> StoredMessage {
    let text = entry["summary"].as_str().unwrap_or_default();
    let text = match entry["fromHook"] == true {
        true => text.to_string(),
        false => format!("{}{text}{}", WORDS.summary_head, WORDS.summary_tail),
    };
    StoredMessage { role: Role::User, parts: vec![Part::Summary(text.into())] }
}

fn message(said: &StoredMessage) -> Value {
    let content = content(said);
    match (said.role, said.parts.first()) {
        (_, Some(Part::Result { id, name, is_error, .. })) => json!({
            "role": "toolResult", "toolCallId": **id, "toolName": **name, "content": content,
            "isError": is_error,
        }),
        (Role::Assistant, _) => json!({"role": "assistant", "content": content}),
        _ => json!({"role": "user", "content": content}),
    }
}

fn content(said: &StoredMessage) -> Vec<Value> {
    said.parts.iter().filter_map(pi::block).collect()
}

fn parse_message(message: &Value) -> Option<StoredMessage> {
    let blocks = message["content"].as_array()?.iter().filter_map(Value::as_object);
    let mut parts: Vec<Part> = blocks.filter_map(pi::part).collect();
    if message["role"] != "toolResult" {
        let role = if message["role"] == "assistant" { Role::Assistant } else { Role::User };
        return Some(StoredMessage { role, parts });
    }
    let id = message["toolCallId"].as_str().unwrap_or_default();
    let text = parts.iter().position(|p| p.as_text().is_some()).map(|at| parts.remove(at));
    let output = text.as_ref().and_then(Part::as_text).unwrap_or_default().into();
    let name = message["toolName"].as_str().unwrap_or_default();
    let is_error = message["isError"] == true;
    parts.insert(0, Part::Result { id: id.into(), name: name.into(), output, is_error });
    Some(StoredMessage { role: Role::Tool, parts })
}
