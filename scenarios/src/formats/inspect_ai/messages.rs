//! Conversion of inspect_ai's messages to the dialect of the conversation reader.

use crate::formats::prelude::*;

/// Prefix of a reference to a text that is stored separately.
const ATTACHMENT: &str = "attachment://";

pub(super) fn attached(value: Value, attachments: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix(ATTACHMENT).and_then(|a| attachments.get(a))
        {
            Some(Value::String(whole)) => whole.as_str().into(),
            _ => text.into(),
        },
        Value::Array(list) => list.into_iter().map(|v| attached(v, attachments)).collect(),
        Value::Object(object) => {
            let member = |(k, v)| (k, attached(v, attachments));
            Value::Object(object.into_iter().map(member).collect())
        }
        other => other,
    }
}

/// Converts a message to OpenAI's form, with blocks of both APIs.
pub(super) fn chat(message: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for key in ["role", "id", "tool_call_id"] {
        out.extend(message.get(key).map(|v| (key.to_string(), v.clone())));
    }
    let content = match message.get("content") {
        Some(Value::Array(list)) => list.iter().filter_map(block).collect(),
        other => other.cloned().unwrap_or_default(),
    };
    out.insert("content".into(), content);
    let calls: Vec<Value> = objects(message, "tool_calls").map(call).collect();
    if !calls.is_empty() {
        out.insert("tool_calls".into(), calls.into());
    }
    if message.get("error").is_some_and(|e| !e.is_null()) {
        out.insert("is_error".into(), true.into());
    }
    out
}

fn call(call: &Map<String, Value>) -> Value {
    let function = json!({"name": call.get("function"), "arguments": call.get("arguments")});
    json!({"id": call.get("id"), "function": function})
}

fn block(block: &Value) -> Option<Value> {
    let Some(o) = block.as_object() else { return Some(block.clone()) };
    let text = |key: &str| str_of(o, key).unwrap_or_default();
    Some(match text("type") {
        "reasoning" if flag(o, "redacted") => {
            let shown = text("summary");
            json!({"type": "thinking", "thinking": shown, "signature": text("reasoning")})
        }
        "reasoning" => {
            let shown =
                if text("reasoning").is_empty() { text("summary") } else { text("reasoning") };
            json!({"type": "thinking", "thinking": shown, "signature": text("signature")})
        }
        "image" => json!({"type": "image_url", "image_url": {"url": text("image")}}),
        "document" => {
            let media_type = text("mime_type");
            let source = match text("document").split_once(";base64,") {
                Some((_, data)) => json!({"media_type": media_type, "data": data}),
                None => json!({"media_type": media_type, "url": text("document")}),
            };
            json!({"type": "document", "source": source, "title": o.get("filename")})
        }
        "audio" => json!({"type": "audio"}),
        "video" => json!({"type": "video_url"}),
        "data" => json!({"type": "file"}),
        // The provider ran this tool within the reply.
        "tool_use" => {
            let said = format!("[{}: {}]\n{}", text("name"), text("arguments"), text("result"));
            json!({"type": "text", "text": said})
        }
        _ => block.clone(),
    })
}
