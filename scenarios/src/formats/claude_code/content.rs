//! Contents of messages in a Claude Code transcript.

use serde_json::Value;

use super::super::messages;
use super::super::recording::MessagePart;

/// Returns whether a text is the trace of a command that the user ran outside the conversation.
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

/// Converts a content, which is a string or a list of Anthropic's blocks. Also returns the number
/// of blocks.
pub(super) fn pieces(content: Option<&Value>) -> (Vec<MessagePart>, usize) {
    match content {
        Some(Value::String(text)) => (vec![MessagePart::text(text)], 1),
        Some(list @ Value::Array(blocks)) => (messages::content(Some(list)), blocks.len()),
        _ => (Vec::new(), 0),
    }
}
