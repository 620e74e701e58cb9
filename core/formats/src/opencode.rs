//! Parts of OpenCode's messages (docs/sources/opencode.md §7).

use ctxbench_core::content::Part;
use serde_json::{Map, Value, json};

use super::{image, object_of, reasoning, str_of, text_of};

/// Member of a part's data for OpenAI with its encrypted reasoning.
const ENVELOPE: &str = "reasoningEncryptedContent";

/// Returns whether a part has reasoning that only its provider can read.
pub fn is_sealed(p: &Map<String, Value>) -> bool {
    let mut kept = object_of(p, "metadata").into_iter().flatten();
    kept.any(|(_, of)| of.get(ENVELOPE).is_some_and(Value::is_string))
}

/// Converts a part: text, reasoning or a file. Returns `None` for calls, which contain their result,
/// and for parts without content for the model.
pub fn part(p: &Map<String, Value>) -> Option<Part> {
    let text = |key: &str| text_of(p, key);
    Some(match text("type") {
        "text" => Part::Text(text("text").into()),
        "reasoning" => {
            // Data of each provider that must be sent back.
            let kept = object_of(p, "metadata").into_iter().flatten();
            let found = |(_, of): (_, &Value)| {
                ["signature", ENVELOPE]
                    .iter()
                    .find_map(|n| of.get(*n)?.as_str())
                    .map(str::to_string)
            };
            reasoning(text("text"), kept.filter_map(found).next().as_deref())
        }
        "file" => {
            let url = str_of(p, "url")?;
            let inline = url.strip_prefix("data:").and_then(|rest| rest.split_once([';', ',']));
            let named = str_of(p, "mime").filter(|m| !m.is_empty());
            let media_type = named.or(inline.map(|(kind, _)| kind)).unwrap_or("image/*");
            image(media_type, url.to_string(), str_of(p, "filename"))
        }
        _ => return None,
    })
}

/// Converts a part of a message, except for results, which belong to their calls.
pub fn block(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(t) | Part::Summary(t) => json!({"type": "text", "text": **t}),
        Part::Reasoning { text, encrypted } => {
            let kept = json!({"openai": {"reasoningEncryptedContent": encrypted.as_deref()}});
            json!({"type": "reasoning", "text": **text, "metadata": kept})
        }
        Part::Call(call) => {
            let input: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            // A prompt repeats the exact argument text.
            let raw = &*call.arguments;
            let state = json!({"status": "running", "input": input, "raw": raw, "time": {}});
            json!({"type": "tool", "callID": *call.id, "tool": *call.name, "state": state})
        }
        Part::Image(m) => json!({
            "type": "file", "mime": m.media_type, "url": m.url, "filename": m.name,
        }),
        Part::Compaction(Some(t)) => json!({"type": "opaque", "text": **t}),
        _ => return None,
    })
}
