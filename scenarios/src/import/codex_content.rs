//! What stands in the messages and outputs of a Codex rollout.

pub(super) use ctxbench_core::rollout::context_path;
use ctxbench_core::session::SessionPart;
use serde_json::{Map, Value};

use super::str_of;

/// A message's or output's content: a string, or a list of texts and images.
pub(super) fn content(value: Option<&Value>) -> Vec<SessionPart> {
    match value {
        Some(Value::String(text)) => vec![SessionPart::Text { text: text.clone() }],
        Some(Value::Array(list)) => list.iter().filter_map(|b| content_block(b.as_object()?)).collect(),
        _ => Vec::new(),
    }
}

fn content_block(block: &Map<String, Value>) -> Option<SessionPart> {
    if str_of(block, "type") == Some("input_image") {
        let url = str_of(block, "image_url")?.to_string();
        let media_type = url.strip_prefix("data:").and_then(|u| u.split([';', ',']).next()).filter(|m| !m.is_empty());
        let media_type = media_type.unwrap_or("image/*").to_string();
        return Some(SessionPart::Image { media_type, url, name: None });
    }
    Some(SessionPart::Text { text: str_of(block, "text")?.to_string() })
}
