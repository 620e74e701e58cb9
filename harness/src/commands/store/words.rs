//! Messages and checkpoints in short, as text and as JSON.

use ctxbench_core::block::Role;
use ctxbench_core::calendar::iso;
use ctxbench_core::tokens::bytes_div4_up;
use ctxbench_kit::rewind::files_of;
use ctxbench_kit::store::{At, Checkpoint, LoadedMessage, LoadedPart, PartKind, Place};
use ctxbench_reports::{one_line, printable};
use serde_json::{Value, json};

/// Characters of a message that a line shows.
const SHORT: usize = 72;

/// A time in UTC to the second.
pub(in crate::commands) fn time(at: At) -> String {
    iso(at.max(0) as u64)[..19].replace('T', " ")
}

/// The beginning of a text on one line.
pub(in crate::commands) fn short(text: &str) -> String {
    let one = one_line(text);
    match one.char_indices().nth(SHORT) {
        None => one,
        Some((end, _)) => format!("{}…", &one[..end]),
    }
}

pub(super) fn role(m: &LoadedMessage) -> &'static str {
    match m.role {
        _ if m.boundary => "compaction",
        Role::Instructions | Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

/// What a message says, in short.
pub(super) fn gist(m: &LoadedMessage) -> String {
    let parts: Vec<String> = m.parts.iter().filter_map(gist_of).collect();
    match (parts.is_empty(), m.boundary) {
        (true, true) => "without a summary".to_string(),
        _ => short(&parts.join(" · ")),
    }
}

/// The same, whole.
fn text(m: &LoadedMessage) -> String {
    m.parts.iter().filter_map(gist_of).collect::<Vec<_>>().join("\n")
}

fn gist_of(p: &LoadedPart) -> Option<String> {
    let text = |key: &str| p.data[key].as_str().unwrap_or_default().to_string();
    Some(match p.kind {
        PartKind::Marker => return None,
        PartKind::Text | PartKind::Summary | PartKind::Subtask | PartKind::Snapshot => text("text"),
        PartKind::Reasoning => format!("(thinks) {}", text("text")),
        PartKind::ToolCall => format!("{} {}", text("name"), text("arguments")),
        PartKind::ToolResult => match p.compacted_at {
            None => format!("{}: {}", text("name"), text("output")),
            Some(_) => format!("(pruned) {}: {}", text("name"), text("output")),
        },
        PartKind::File => format!("[{}]", text("media_type")),
        PartKind::ProviderCompaction => "compacted by the provider".to_string(),
        PartKind::Patch => "patch".to_string(),
    })
}

/// Bytes of what was said / 4: the estimate of docs/sources/openoxide.md §2.1, for models whose
/// tokenizer nobody has asked.
pub(super) fn tokens(messages: &[LoadedMessage]) -> u64 {
    let fields = ["text", "name", "arguments", "output", "opaque"];
    let of = |p: &LoadedPart| -> u64 {
        fields.iter().filter_map(|f| p.data[f].as_str()).map(bytes_div4_up).sum()
    };
    messages.iter().flat_map(|m| &m.parts).map(of).sum()
}

/// A row of a message.
pub(super) fn message(m: &LoadedMessage) -> String {
    format!("{}  {}  {:<10}  {}", m.id, time(m.created_at), role(m), gist(m))
}

pub(super) fn message_json(m: &LoadedMessage) -> Value {
    let pruned = m.parts.iter().filter(|p| p.compacted_at.is_some()).count();
    json!({
        "id": m.id.to_string(),
        "at_ms": m.created_at,
        "role": role(m),
        "text": text(m),
        "tokens_estimated": tokens(std::slice::from_ref(m)),
        "pruned": pruned,
    })
}

/// A checkpoint's name, tags and files.
pub(super) fn checkpoint(c: &Checkpoint) -> String {
    let name = c.what.name.as_deref().map_or_else(|| "prompt".to_string(), |n| format!("{n:?}"));
    let tags: String = c.what.tags.iter().map(|t| format!(" #{t}")).collect();
    let files = files_of(c).map_or("conversation only", |_| "with files");
    printable(&format!("{name}{tags}, {files}"))
}

/// Where it stands.
pub(super) fn place(place: Place) -> String {
    let word = match place {
        Place::Before(_) => "before",
        Place::Behind(_) => "behind",
    };
    format!("{word} {}", place.message())
}

pub(super) fn checkpoint_json(c: &Checkpoint) -> Value {
    json!({
        "id": c.id.to_string(),
        "session": c.session.to_string(),
        "at_ms": c.at,
        "name": c.what.name,
        "tags": c.what.tags,
        "place": match c.what.place {
            Place::Before(_) => "before",
            Place::Behind(_) => "behind",
        },
        "message": c.what.place.message().to_string(),
        "files": files_of(c),
    })
}
