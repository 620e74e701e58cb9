//! Content blocks of Claude Code's transcripts (docs/sources/claude-code.md §1.6), which are blocks
//! of the Messages API.

use ctxbench_core::block::Media;
use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Map, Value};

/// Converts a block to a part: text, thinking, a call, an image or another file. Returns `None` for
/// tool results, which contain blocks themselves, and for unknown types.
pub fn parse_part(block: &Map<String, Value>) -> Option<Part> {
    let text = |key: &str| str_of(block, key).unwrap_or_default();
    Some(match str_of(block, "type")? {
        "text" => Part::Text(text("text").into()),
        "thinking" => {
            let encrypted = str_of(block, "signature").filter(|s| !s.is_empty());
            Part::Reasoning { text: text("thinking").into(), encrypted: encrypted.map(Into::into) }
        }
        "redacted_thinking" => {
            Part::Reasoning { text: "".into(), encrypted: Some(text("data").into()) }
        }
        "tool_use" => {
            let arguments = block.get("input").map_or_else(|| "{}".to_string(), Value::to_string);
            Part::Call(ToolCall::new(text("id"), text("name"), arguments))
        }
        "image" | "document" => {
            let source = block.get("source").and_then(Value::as_object)?;
            let media_type = str_of(source, "media_type").unwrap_or("application/octet-stream");
            let url = match str_of(source, "data") {
                Some(data) => format!("data:{media_type};base64,{data}"),
                None => str_of(source, "url").unwrap_or_default().to_string(),
            };
            let name = str_of(block, "title").map(str::to_string);
            Part::Image(Media { media_type: media_type.to_string(), url, name })
        }
        _ => return None,
    })
}

fn str_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}
