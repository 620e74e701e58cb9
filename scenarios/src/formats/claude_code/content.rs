//! What stands in the messages of a Claude Code transcript.

use ctxbench_kit::transcript;
use serde_json::Value;

use super::super::lines::str_of;
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
    match str_of(block, "type").unwrap_or_default() {
        "tool_result" => {
            let (pieces, _) = pieces(block.get("content"));
            let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or_default();
            let call_id = str_of(block, "tool_use_id").unwrap_or_default().to_string();
            Piece::Result { call_id, pieces, is_error }
        }
        kind => match transcript::part(block) {
            Some(part) => Piece::Said(part),
            // A file that the transcript does not hold.
            None if matches!(kind, "image" | "document") => Piece::Opaque,
            None => Piece::Unknown(kind.to_string()),
        },
    }
}
