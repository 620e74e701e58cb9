//! Content blocks of Claude Code's transcripts (docs/sources/claude-code.md §1.6), which are blocks
//! of the Messages API.

use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Map, Value, json};

use super::{arguments, image, object_of, reasoning, str_of, text_of};

/// Converts a block to a part: text, thinking, a call, an image or another file. Returns `None` for
/// tool results, which contain blocks themselves, and for unknown types.
pub fn part(block: &Map<String, Value>) -> Option<Part> {
    let text = |key: &str| text_of(block, key);
    Some(match str_of(block, "type")? {
        "text" => Part::Text(text("text").into()),
        "thinking" => {
            let encrypted = str_of(block, "signature").filter(|s| !s.is_empty());
            reasoning(text("thinking"), encrypted)
        }
        "redacted_thinking" => reasoning("", Some(text("data"))),
        "tool_use" => {
            let arguments = match str_of(block, "raw") {
                Some(raw) => raw.to_string(),
                None => block.get("input").map_or_else(|| "{}".to_string(), Value::to_string),
            };
            Part::Call(ToolCall::new(text("id"), text("name"), arguments))
        }
        "image" | "document" => {
            let source = object_of(block, "source")?;
            let media_type = str_of(source, "media_type").unwrap_or("application/octet-stream");
            let url = match str_of(source, "data") {
                Some(data) => format!("data:{media_type};base64,{data}"),
                None => str_of(source, "url").unwrap_or_default().to_string(),
            };
            image(media_type, url, str_of(block, "title"))
        }
        _ => return None,
    })
}

/// Converts a part to a block. Arguments that are not the same as JSON are kept in `raw`.
pub fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(t) | Part::Summary(t) => json!({"type": "text", "text": **t}),
        Part::Reasoning { text, encrypted } => {
            json!({"type": "thinking", "thinking": **text, "signature": encrypted.as_deref()})
        }
        Part::Call(ToolCall { id, name, arguments: text }) => {
            let (input, raw) = arguments(text, json!(**text));
            json!({"type": "tool_use", "id": **id, "name": **name, "input": input, "raw": raw})
        }
        Part::Result { id, output, is_error, .. } => json!({
            "type": "tool_result", "tool_use_id": **id, "content": **output, "is_error": is_error,
        }),
        Part::Image(m) => json!({
            "type": "image", "title": m.name,
            "source": {"type": "url", "media_type": m.media_type, "url": m.url},
        }),
        Part::Compaction(Some(t)) => json!({"type": "compaction", "content": **t}),
        _ => return None,
    })
}
