//! Stored parts: a kind and a JSON object.

use std::sync::Arc;

use serde_json::{Value, json};

use ctxbench_core::block::{Media, Role};
use ctxbench_core::content::{Part, ToolCall};

/// Kind of a stored part, with the shape of its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartKind {
    /// `{"text"}`.
    Text,
    /// `{"text","encrypted"?}`.
    Reasoning,
    /// `{"call_id","name","arguments"}`.
    ToolCall,
    /// `{"call_id","name","output","is_error"}`.
    ToolResult,
    /// `{"media_type","url","name"?}`.
    File,
    /// `{"text"}`: replaces all earlier history.
    Summary,
    /// `{"auto","overflow"}`: a compaction.
    Marker,
    /// `{"opaque"}`: a compaction made by the provider.
    ProviderCompaction,
}

const NAMES: [(PartKind, &str); 8] = [
    (PartKind::Text, "text"),
    (PartKind::Reasoning, "reasoning"),
    (PartKind::ToolCall, "tool_call"),
    (PartKind::ToolResult, "tool_result"),
    (PartKind::File, "file"),
    (PartKind::Summary, "summary"),
    (PartKind::Marker, "marker"),
    (PartKind::ProviderCompaction, "provider_compaction"),
];

impl PartKind {
    /// Returns the name used in the file.
    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(k, _)| *k == self).map_or("", |(_, w)| w)
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, w)| *w == name).map(|(k, _)| *k)
    }
}

/// A part to store.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPart {
    pub kind: PartKind,
    /// JSON object of the shape that the kind states.
    pub data: Value,
}

impl NewPart {
    /// Creates a part of plain text.
    pub fn text(text: &str) -> Self {
        NewPart { kind: PartKind::Text, data: json!({ "text": text }) }
    }

    pub(super) fn marker() -> Self {
        NewPart { kind: PartKind::Marker, data: json!({ "auto": true, "overflow": false }) }
    }

    pub(super) fn summary(text: &str) -> Self {
        NewPart { kind: PartKind::Summary, data: json!({ "text": text }) }
    }
}

impl From<&Part> for NewPart {
    fn from(p: &Part) -> Self {
        let (kind, data) = match p {
            Part::Text(t) | Part::Unrecorded(t) => (PartKind::Text, json!({ "text": **t })),
            Part::Reasoning { text, encrypted } => {
                (PartKind::Reasoning, json!({ "text": **text, "encrypted": encrypted.as_deref() }))
            }
            Part::Call(ToolCall { id, name, arguments }) => (
                PartKind::ToolCall,
                json!({ "call_id": **id, "name": **name, "arguments": **arguments }),
            ),
            Part::Result { id, name, output, is_error } => (
                PartKind::ToolResult,
                json!({ "call_id": **id, "name": **name, "output": **output, "is_error": is_error }),
            ),
            Part::Image(m) => (
                PartKind::File,
                json!({ "media_type": m.media_type, "url": m.url, "name": m.name }),
            ),
            Part::Summary(t) => (PartKind::Summary, json!({ "text": **t })),
            Part::Compaction(t) => {
                let opaque = t.as_deref().unwrap_or_default();
                (PartKind::ProviderCompaction, json!({ "opaque": opaque }))
            }
        };
        NewPart { kind, data }
    }
}

/// Converts a stored part to a message part; `None` for a marker.
pub(super) fn to_content(kind: PartKind, data: &Value) -> Option<Part> {
    let text = |key: &str| -> Arc<str> { data[key].as_str().unwrap_or_default().into() };
    Some(match kind {
        PartKind::Text => Part::Text(text("text")),
        PartKind::Reasoning => Part::Reasoning {
            text: text("text"),
            encrypted: data["encrypted"].as_str().map(Into::into),
        },
        PartKind::ToolCall => Part::Call(ToolCall {
            id: text("call_id"),
            name: text("name"),
            arguments: text("arguments"),
        }),
        PartKind::ToolResult => Part::Result {
            id: text("call_id"),
            name: text("name"),
            output: text("output"),
            is_error: data["is_error"].as_bool().unwrap_or_default(),
        },
        PartKind::File => Part::Image(Media {
            media_type: text("media_type").to_string(),
            url: text("url").to_string(),
            name: data["name"].as_str().map(str::to_string),
        }),
        PartKind::Summary => Part::Summary(text("text")),
        PartKind::ProviderCompaction => Part::Compaction(Some(text("opaque"))),
        PartKind::Marker => return None,
    })
}

const ROLES: [(Role, &str); 6] = [
    (Role::Instructions, "instructions"),
    (Role::System, "system"),
    (Role::Developer, "developer"),
    (Role::User, "user"),
    (Role::Assistant, "assistant"),
    (Role::Tool, "tool"),
];

pub(super) fn role_name(role: Role) -> &'static str {
    ROLES.iter().find(|(r, _)| *r == role).map_or("", |(_, w)| w)
}

pub(super) fn parse_role(name: &str) -> Option<Role> {
    ROLES.iter().find(|(_, w)| *w == name).map(|(r, _)| *r)
}
