//! Session files of coding agents: their records, and the parts of messages in them.
//!
//! A file here describes the records of one agent once. `ctxbench-scenarios` reads recordings with
//! it, and `ctxbench-strategies` writes sessions and resumes them.

pub mod claude_code;
pub mod codex;
pub mod gemini_cli;
pub mod lines;
pub mod opencode;
pub mod pi;

use ctxbench_core::block::Media;
use ctxbench_core::content::Part;
use serde_json::{Map, Value};

/// Returns a member that is a text.
pub fn str_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

/// Returns a text, or an empty one if there is none.
fn text_of<'a>(object: &'a Map<String, Value>, key: &str) -> &'a str {
    str_of(object, key).unwrap_or_default()
}

/// Returns a member that is an object.
pub fn object_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Map<String, Value>> {
    object.get(key).and_then(Value::as_object)
}

/// Creates an image from its type and address.
fn image(media_type: &str, url: String, name: Option<&str>) -> Part {
    let (media_type, name) = (media_type.to_string(), name.map(str::to_string));
    Part::Image(Media { media_type, url, name })
}

/// Creates an image from its address. The type comes from a data URL.
pub fn image_at(url: &str) -> Part {
    let inline = url.strip_prefix("data:").and_then(|rest| rest.split([';', ',']).next());
    image(inline.filter(|kind| !kind.is_empty()).unwrap_or("image/*"), url.to_string(), None)
}

fn reasoning(text: &str, encrypted: Option<&str>) -> Part {
    Part::Reasoning { text: text.into(), encrypted: encrypted.map(Into::into) }
}

/// Returns the base64 data of a data URL. `None` = a link.
fn inline(url: &str) -> Option<&str> {
    url.split_once(";base64,").map(|(_, data)| data)
}

/// Returns the arguments of a call as JSON, or `otherwise` if they are not JSON; and as text if the
/// JSON does not say exactly the same.
fn arguments(text: &str, otherwise: Value) -> (Value, Option<&str>) {
    let input: Value = serde_json::from_str(text).unwrap_or(otherwise);
    let same = *input.to_string() == *text;
    (input, (!same).then_some(text))
}

/// Returns the text of arguments: `raw` if it is a text, otherwise the value as JSON.
pub fn argument_text(raw: Option<&Value>, input: Option<&Value>) -> String {
    match raw.or(input) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "{}".to_string(),
        Some(other) => other.to_string(),
    }
}
