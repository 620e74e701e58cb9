//! What stands in the messages and outputs of a Codex rollout.

use ctxbench_core::block::Media;
use ctxbench_core::content::Part;
pub(super) use ctxbench_kit::rollout::context_path;
use serde_json::{Map, Value};

use super::super::lines::str_of;
use super::super::recording::Piece;

/// A message's or output's content: a string, or a list of texts and images.
pub(super) fn content(value: Option<&Value>) -> Vec<Piece> {
    match value {
        Some(Value::String(text)) => vec![Piece::text(text)],
        Some(Value::Array(list)) => {
            let piece =
                |b: &Value| b.as_object().and_then(block).map_or(Piece::Opaque, Piece::Said);
            list.iter().map(piece).collect()
        }
        _ => Vec::new(),
    }
}

fn block(block: &Map<String, Value>) -> Option<Part> {
    if str_of(block, "type") == Some("input_image") {
        let url = str_of(block, "image_url")?.to_string();
        let media_type = url
            .strip_prefix("data:")
            .and_then(|u| u.split([';', ',']).next())
            .filter(|m| !m.is_empty());
        let media_type = media_type.unwrap_or("image/*").to_string();
        return Some(Part::Image(Media { media_type, url, name: None }));
    }
    Some(Part::Text(str_of(block, "text")?.into()))
}
