//! What stands in the messages of a Claude Code transcript.

use ctxbench_core::session::SessionPart;
use serde_json::Value;

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

/// A content as a list of blocks, whichever way it was written.
pub(super) fn blocks(content: Option<&Value>) -> Vec<Value> {
    match content {
        Some(Value::String(text)) => vec![serde_json::json!({"type": "text", "text": text})],
        Some(Value::Array(list)) => list.clone(),
        _ => Vec::new(),
    }
}

/// The texts of a content.
pub(super) fn plain(parts: Vec<SessionPart>) -> String {
    parts.into_iter().filter_map(SessionPart::into_text).collect::<Vec<_>>().join("\n")
}
