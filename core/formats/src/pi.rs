//! Content blocks of pi's sessions (docs/sources/pi.md §7).

use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Map, Value, json};

use super::{argument_text, arguments, image, inline, reasoning, str_of, text_of};

/// Converts a block to a part: text, thinking, a call or an image. Returns `None` for unknown types.
pub fn part(block: &Map<String, Value>) -> Option<Part> {
    let text = |key: &str| text_of(block, key);
    Some(match text("type") {
        "text" => Part::Text(text("text").into()),
        "thinking" => {
            let encrypted = str_of(block, "thinkingSignature").filter(|s| !s.is_empty());
            reasoning(text("thinking"), encrypted)
        }
        "toolCall" => {
            let raw = block.get("raw").filter(|raw| raw.is_string());
            let arguments = argument_text(raw, block.get("arguments"));
            Part::Call(ToolCall::new(text("id"), text("name"), arguments))
        }
        "image" => {
            let linked = block.get("linked").is_some_and(|l| *l == true);
            let url = match linked {
                true => text("data").to_string(),
                false => format!("data:{};base64,{}", text("mimeType"), text("data")),
            };
            image(text("mimeType"), url, str_of(block, "name"))
        }
        _ => return None,
    })
}

/// Converts a part to a block. What pi's blocks lack is in the members `raw`, `linked` and `name`.
pub fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(t) | Part::Summary(t) | Part::Result { output: t, .. } => {
            json!({"type": "text", "text": **t})
        }
        Part::Reasoning { text, encrypted } => json!({
            "type": "thinking", "thinking": **text, "thinkingSignature": encrypted.as_deref(),
        }),
        Part::Call(ToolCall { id, name, arguments: text }) => {
            let (input, raw) = arguments(text, json!({}));
            json!({"type": "toolCall", "id": **id, "name": **name, "arguments": input, "raw": raw})
        }
        Part::Image(m) => {
            let data = inline(&m.url);
            json!({
                "type": "image", "data": data.unwrap_or(&m.url), "mimeType": m.media_type,
                "linked": data.is_none().then_some(true), "name": m.name,
            })
        }
        _ => return None,
    })
}
