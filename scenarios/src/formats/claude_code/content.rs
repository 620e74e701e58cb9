//! What stands in the messages of a Claude Code transcript.

use ctxbench_core::block::Media;
use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Map, Value};

use super::super::lines::{str_of, string};
use super::super::recording::Piece;

/// What Claude Code writes into the conversation for a command that the user ran beside it.
pub(super) fn is_command_trace(text: &str) -> bool {
    const TRACES: &[&str] = &[
        "<command-name>",
        "<command-message>",
        "<local-command-stdout>",
        "<local-command-stderr>",
        "<local-command-caveat>",
        "<bash-input>",
        "<bash-stdout>",
        "<bash-stderr>",
    ];
    TRACES.iter().any(|t| text.trim_start().starts_with(t))
}

/// The pieces of a content, which is a string or a list of blocks, and how many blocks there are.
pub(super) fn pieces(content: Option<&Value>) -> (Vec<Piece>, usize) {
    match content {
        Some(Value::String(text)) => (vec![Piece::text(text)], 1),
        Some(Value::Array(list)) => (list.iter().map(piece).collect(), list.len()),
        _ => (Vec::new(), 0),
    }
}

fn piece(block: &Value) -> Piece {
    let Some(block) = block.as_object() else { return Piece::Opaque };
    let text = |key: &str| str_of(block, key).unwrap_or_default().to_string();
    Piece::Said(match str_of(block, "type").unwrap_or_default() {
        "text" => Part::Text(text("text").into()),
        "thinking" => {
            let encrypted = string(block, "signature").filter(|s| !s.is_empty());
            Part::Reasoning { text: text("thinking").into(), encrypted: encrypted.map(Into::into) }
        }
        "redacted_thinking" => {
            Part::Reasoning { text: "".into(), encrypted: Some(text("data").into()) }
        }
        "tool_use" => {
            let arguments = block.get("input").map_or_else(|| "{}".to_string(), Value::to_string);
            Part::Call(ToolCall::new(text("id"), text("name"), arguments))
        }
        "tool_result" => {
            let (pieces, _) = pieces(block.get("content"));
            let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or_default();
            return Piece::Result { call_id: text("tool_use_id"), pieces, is_error };
        }
        "image" | "document" => match image(block) {
            Some(image) => image,
            None => return Piece::Opaque,
        },
        other => return Piece::Unknown(other.to_string()),
    })
}

fn image(block: &Map<String, Value>) -> Option<Part> {
    let source = block.get("source").and_then(Value::as_object)?;
    let media_type = str_of(source, "media_type").unwrap_or("application/octet-stream").to_string();
    let url = match str_of(source, "data") {
        Some(data) => format!("data:{media_type};base64,{data}"),
        None => str_of(source, "url").unwrap_or_default().to_string(),
    };
    Some(Part::Image(Media { media_type, url, name: string(block, "title") }))
}
