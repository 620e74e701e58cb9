//! Codex CLI's session files, called rollouts (docs/sources/codex.md §4): a JSON object per line,
//! `{timestamp, type, payload}`. Items of the history have the form of the Responses API.
//!
//! [`reconstruct()`] resumes a session. It is generic over the item type, so that replays in memory
//! and files share it.

mod reconstruct;

use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Map, Value, json};

use super::{argument_text, image_at, reasoning, str_of, text_of};
pub use reconstruct::{Record, ResumedSession, TokenTotals, reconstruct, surviving};

/// Converts a part of a message or a tool's output: a text or an image.
pub fn content_part(content: &Map<String, Value>) -> Option<Part> {
    if str_of(content, "type") != Some("input_image") {
        return Some(Part::Text(str_of(content, "text")?.into()));
    }
    str_of(content, "image_url").map(image_at)
}

/// Converts an item of the model other than a message: reasoning, a call, or a compaction by the
/// provider. Returns `None` for other items.
pub fn part(item: &Map<String, Value>) -> Option<Part> {
    let call = |name: &str, arguments: Option<&Value>| {
        let id = str_of(item, "call_id").or(str_of(item, "id")).unwrap_or_default();
        Part::Call(ToolCall::new(id, name, argument_text(None, arguments)))
    };
    Some(match text_of(item, "type") {
        "reasoning" => {
            let texts = |key: &str| {
                let list = item.get(key).and_then(Value::as_array).into_iter().flatten();
                list.filter_map(|s| s.get("text")?.as_str()).collect::<Vec<_>>().join("\n\n")
            };
            let content = texts("content");
            let text = if content.is_empty() { texts("summary") } else { content };
            reasoning(&text, str_of(item, "encrypted_content"))
        }
        "function_call" => call(text_of(item, "name"), item.get("arguments")),
        "custom_tool_call" => call(text_of(item, "name"), item.get("input")),
        "local_shell_call" => call("local_shell", item.get("action")),
        "tool_search_call" => call("tool_search", item.get("arguments")),
        "compaction" => Part::Compaction(Some(text_of(item, "encrypted_content").into())),
        _ => return None,
    })
}

/// Converts texts and images to an item of the role.
pub fn message(role: &str, content: Vec<Value>) -> Value {
    json!({"type": "message", "role": role, "content": content})
}

/// Converts a text or an image to content of a message of the role.
pub fn content(role: &str, part: &Part) -> Option<Value> {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    Some(match part {
        Part::Text(t) | Part::Summary(t) => json!({"type": kind, "text": **t}),
        Part::Image(m) => json!({"type": "input_image", "image_url": m.url}),
        _ => return None,
    })
}

/// Converts reasoning, a call, a result or a compaction by the provider to an item.
pub fn item(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Reasoning { text, encrypted } => json!({
            "type": "reasoning", "encrypted_content": encrypted.as_deref(),
            "summary": [{"type": "summary_text", "text": **text}],
        }),
        Part::Call(ToolCall { id, name, arguments }) => json!({
            "type": "function_call", "name": **name, "arguments": **arguments, "call_id": **id,
        }),
        Part::Result { id, output, .. } => json!({
            "type": "function_call_output", "call_id": **id, "output": **output,
        }),
        Part::Compaction(Some(t)) => json!({"type": "compaction", "encrypted_content": **t}),
        _ => return None,
    })
}

/// Returns the name of a context message from the program: the path of an instruction file or the
/// tag name. Returns `None` for other text.
pub fn context_path(text: &str) -> Option<String> {
    const TAGS: &[&str] = &[
        "user_instructions",
        "environment_context",
        "permissions instructions",
        "collaboration_mode",
        "skills_instructions",
        "plugins_instructions",
        "apps_instructions",
        "personality_spec",
        "model_switch",
        "INSTRUCTIONS",
        "turn_aborted",
        "subagent_notification",
    ];
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix("# AGENTS.md instructions") {
        let first = rest.lines().next().unwrap_or_default().trim();
        let folder = first.strip_prefix("for ").map(str::trim).filter(|f| !f.is_empty());
        let path = folder.map(|f| format!("{}/AGENTS.md", f.trim_end_matches('/')));
        return Some(path.unwrap_or_else(|| "AGENTS.md".to_string()));
    }
    let (tag, _) = text.strip_prefix('<')?.split_once('>')?;
    TAGS.contains(&tag).then(|| {
        if matches!(tag, "user_instructions" | "INSTRUCTIONS") {
            "AGENTS.md".to_string()
        } else {
            tag.to_string()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_program_are_named() {
        for (text, name) in [
            ("fix it", None),
            ("<b>fix it</b>", None),
            ("<environment_context>\n</environment_context>", Some("environment_context")),
            ("# AGENTS.md instructions for /src/\n", Some("/src/AGENTS.md")),
            ("# AGENTS.md instructions\n", Some("AGENTS.md")),
            ("<user_instructions>be nice", Some("AGENTS.md")),
        ] {
            assert_eq!(context_path(text).as_deref(), name, "{text}");
        }
    }
}
