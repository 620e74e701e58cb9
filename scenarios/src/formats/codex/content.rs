//! Contents of messages and outputs in a Codex rollout.

use ctxbench_formats::codex::content_part;
use serde_json::Value;

use super::super::recording::MessagePart;

/// Converts the content of a message or output: a string, or a list of texts and images.
pub(super) fn content(value: Option<&Value>) -> Vec<MessagePart> {
    match value {
        Some(Value::String(text)) => vec![MessagePart::text(text)],
        Some(Value::Array(list)) => {
            let piece = |b: &Value| {
                b.as_object().and_then(content_part).map_or(MessagePart::Opaque, MessagePart::Said)
            };
            list.iter().map(piece).collect()
        }
        _ => Vec::new(),
    }
}
