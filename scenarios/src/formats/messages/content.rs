//! Contents of messages: blocks of all three APIs, and tool definitions.

use ctxbench_core::content::joined_text;
use ctxbench_formats::claude_code;

use crate::formats::prelude::*;

/// Converts content, which is a text, a block, or a list of these. Leaves out empty texts.
pub(in super::super) fn content(value: Option<&Value>) -> Vec<MessagePart> {
    match value {
        Some(Value::String(text)) if !text.is_empty() => vec![MessagePart::text(text)],
        Some(Value::Array(list)) => list.iter().flat_map(|b| content(Some(b))).collect(),
        Some(Value::Object(block)) => piece(block).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Returns whether a type is a call or a result in Anthropic's form, including tools of the
/// provider.
pub(super) fn is_tool(kind: &str) -> bool {
    matches!(kind, "tool_use" | "tool_result" | "server_tool_use" | "mcp_tool_use")
        || kind.ends_with("_tool_result")
}

fn piece(block: &Map<String, Value>) -> Option<MessagePart> {
    let said = |text: &str| (!text.is_empty()).then(|| MessagePart::text(text));
    Some(match str_of(block, "type").unwrap_or_default() {
        "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text" => {
            return said(str_of(block, "text")?);
        }
        // Some libraries omit the type of a text.
        "" => return said(str_of(block, "text").or_else(|| str_of(block, "content"))?),
        "reasoning" if block.contains_key("text") => {
            MessagePart::reasoning(str_of(block, "text")?, None)
        }
        "refusal" => return said(str_of(block, "refusal")?),
        "image_url" | "input_image" => {
            let url = block.get("image_url").or_else(|| block.get("url"));
            let url = url.and_then(|u| u.as_str().or_else(|| u.get("url")?.as_str()));
            url.map_or(MessagePart::Opaque, MessagePart::image)
        }
        "tool_result" => result(block, content(block.get("content")), flag(block, "is_error")),
        // Result of a tool that ran at the provider.
        kind if kind.ends_with("_tool_result") => {
            let failed = block.get("content").and_then(|c| c.get("error_code")).is_some();
            result(block, returned(block.get("content")), failed || flag(block, "is_error"))
        }
        "server_tool_use" | "mcp_tool_use" => {
            let call = Map::from_iter([("type".to_string(), "tool_use".into())]);
            let all: Map<String, Value> = block.clone().into_iter().chain(call).collect();
            claude_code::part(&all).map_or(MessagePart::Opaque, MessagePart::Said)
        }
        // Its text is the summary of a compaction.
        "compaction" => MessagePart::Opaque,
        "file" | "input_file" | "input_audio" | "audio" | "video_url" => MessagePart::Opaque,
        kind => match claude_code::part(block) {
            Some(part) => MessagePart::Said(part),
            None if matches!(kind, "image" | "document") => MessagePart::Opaque,
            None => MessagePart::Unknown(kind.to_string()),
        },
    })
}

fn result(block: &Map<String, Value>, pieces: Vec<MessagePart>, is_error: bool) -> MessagePart {
    let call_id = str_of(block, "tool_use_id").unwrap_or_default().to_string();
    MessagePart::Result { call_id, pieces, is_error }
}

/// Returns the result of a tool of the provider: known blocks, and others as JSON. Encrypted parts
/// are left out, because only the provider can read them.
fn returned(value: Option<&Value>) -> Vec<MessagePart> {
    let blocks = match value {
        Some(Value::Array(list)) => list.as_slice(),
        Some(one @ Value::Object(_)) => std::slice::from_ref(one),
        other => return content(other),
    };
    let mut out = Vec::new();
    for block in blocks {
        for piece in content(Some(block)) {
            let MessagePart::Unknown(_) = piece else {
                out.push(piece);
                continue;
            };
            let mut plain = block.clone();
            let fields = plain.as_object_mut();
            let encrypted = fields.and_then(|o| o.remove("encrypted_content")).is_some();
            out.push(MessagePart::text(&plain.to_string()));
            out.extend(encrypted.then_some(MessagePart::Opaque));
        }
    }
    out
}

pub(in super::super) fn text_of(pieces: &[MessagePart]) -> String {
    let parts: Vec<Part> = pieces.iter().cloned().filter_map(MessagePart::into_part).collect();
    joined_text(&parts, "\n\n")
}

/// Converts tool definitions of any API to the names of a session. Returns `None` if `tools` is not
/// a list.
pub(in super::super) fn definitions(tools: Option<&Value>) -> Option<StepKind> {
    Some(StepKind::Tools(tools?.as_array()?.iter().filter_map(definition).collect()))
}

/// Converts the definition of a tool to an object with `name`, `description`, `input_schema`.
pub(crate) fn definition(tool: &Value) -> Option<Value> {
    let outer = tool.as_object()?;
    let tool = object_of(outer, "function").unwrap_or(outer);
    // Tools that run at the provider have only a type.
    let name = str_of(tool, "name").or_else(|| str_of(tool, "type"))?;
    let schemas = ["input_schema", "parameters", "inputSchema"];
    let schema = schemas.iter().find_map(|k| tool.get(*k).filter(|s| s.is_object()));
    Some(json!({
        "name": name,
        "description": str_of(tool, "description").unwrap_or_default(),
        "input_schema": schema.cloned().unwrap_or_else(|| json!({"type": "object"})),
    }))
}
