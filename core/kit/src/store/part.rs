//! Stored parts: a kind and a JSON object.

use serde_json::{Value, json};

use ctxbench_core::prelude::*;

pub(super) const TOOL_RESULT: &str = "tool_result";

/// Returns the kind and the data of a part.
pub(super) fn encode(part: &Part) -> (&'static str, Value) {
    match part {
        Part::Text(t) | Part::Unrecorded(t) => ("text", json!({ "text": **t })),
        Part::Reasoning { text, encrypted } => {
            ("reasoning", json!({ "text": **text, "encrypted": encrypted.as_deref() }))
        }
        Part::Call(ToolCall { id, name, arguments }) => {
            ("tool_call", json!({ "call_id": **id, "name": **name, "arguments": **arguments }))
        }
        Part::Result { id, name, output, is_error } => (
            TOOL_RESULT,
            json!({ "call_id": **id, "name": **name, "output": **output, "is_error": is_error }),
        ),
        Part::Image(m) => {
            ("file", json!({ "media_type": m.media_type, "url": m.url, "name": m.name }))
        }
        Part::Summary(t) => ("summary", json!({ "text": **t })),
        Part::Compaction(t) => {
            ("provider_compaction", json!({ "opaque": t.as_deref().unwrap_or_default() }))
        }
    }
}

/// Converts stored data to a part; `None` for an unknown kind.
pub(super) fn decode(kind: &str, data: &Value) -> Option<Part> {
    let text = |key: &str| -> Arc<str> { data[key].as_str().unwrap_or_default().into() };
    let optional = |key: &str| data[key].as_str();
    Some(match kind {
        "text" => Part::Text(text("text")),
        "reasoning" => {
            Part::Reasoning { text: text("text"), encrypted: optional("encrypted").map(Into::into) }
        }
        "tool_call" => Part::Call(ToolCall {
            id: text("call_id"),
            name: text("name"),
            arguments: text("arguments"),
        }),
        TOOL_RESULT => Part::Result {
            id: text("call_id"),
            name: text("name"),
            output: text("output"),
            is_error: data["is_error"].as_bool().unwrap_or_default(),
        },
        "file" => Part::Image(Media {
            media_type: text("media_type").to_string(),
            url: text("url").to_string(),
            name: optional("name").map(str::to_string),
        }),
        "summary" => Part::Summary(text("text")),
        "provider_compaction" => Part::Compaction(Some(text("opaque"))),
        _ => return None,
    })
}
