//! What stands in the messages and outputs of a Codex rollout.

use ctxbench_core::session::SessionPart;
use serde_json::{Map, Value};

use super::str_of;

/// The name under which text of the program itself is shown, if it is such: the file of instructions, or the name of its tag.
pub(super) fn context_path(text: &str) -> Option<String> {
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
        let folder = rest.lines().next().and_then(|l| l.trim().strip_prefix("for ")).map(str::trim).filter(|f| !f.is_empty());
        return Some(folder.map_or_else(|| "AGENTS.md".to_string(), |f| format!("{}/AGENTS.md", f.trim_end_matches('/'))));
    }
    let (tag, _) = text.strip_prefix('<')?.split_once('>')?;
    TAGS.contains(&tag).then(|| if matches!(tag, "user_instructions" | "INSTRUCTIONS") { "AGENTS.md".to_string() } else { tag.to_string() })
}

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

/// The text of a part, if it is one.
pub(super) fn into_text(part: SessionPart) -> Option<String> {
    match part {
        SessionPart::Text { text } => Some(text),
        _ => None,
    }
}
