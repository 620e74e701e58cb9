//! Conversation items in a rollout, in the format of the Responses API. Unknown members are
//! ignored.

use ctxbench_core::block::Media;
use ctxbench_core::content::Part;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An item of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RolloutItem {
    /// A message from the user, the model or the program.
    Message {
        /// `user`, `assistant`, `developer` or `system`.
        role: String,
        /// Parts in order.
        content: Vec<ItemContent>,
    },
    /// Reasoning of the model.
    Reasoning {
        /// Encrypted reasoning from the provider.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
        /// List of readable summaries.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        summary: Value,
    },
    /// A tool call.
    FunctionCall {
        /// Tool name.
        name: String,
        /// Arguments, byte for byte.
        arguments: String,
        /// Matches the `call_id` of the output.
        call_id: String,
    },
    /// A tool result.
    FunctionCallOutput {
        call_id: String,
        /// A string or a list of parts.
        output: Value,
    },
    /// A compaction by the provider.
    Compaction {
        /// Encrypted payload.
        encrypted_content: String,
    },
    /// A commit of the working tree for `/undo`. It is stored in the history, but never sent to a
    /// model (docs/sources/codex.md §1.4).
    GhostSnapshot { ghost_commit: Value },
    /// Any other item, unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemContent {
    /// Text sent to the model.
    InputText { text: String },
    /// Text written by the model.
    OutputText { text: String },
    /// Any other part, such as an image.
    #[serde(untagged)]
    Other(Value),
}

impl ItemContent {
    /// Creates an image part from a URL.
    pub fn image(url: &str) -> ItemContent {
        ItemContent::Other(serde_json::json!({"type": "input_image", "image_url": url}))
    }
}

/// Parses a part of a message or tool output as text or an image.
pub fn parse_part(content: &Map<String, Value>) -> Option<Part> {
    let text = |key: &str| content.get(key)?.as_str();
    if text("type") != Some("input_image") {
        return Some(Part::Text(text("text")?.into()));
    }
    let url = text("image_url")?.to_string();
    let media_type = url
        .strip_prefix("data:")
        .and_then(|u| u.split([';', ',']).next())
        .filter(|m| !m.is_empty());
    let media_type = media_type.unwrap_or("image/*").to_string();
    Some(Part::Image(Media { media_type, url, name: None }))
}

impl RolloutItem {
    /// Creates a message from texts: output text for the assistant, input text for other roles.
    pub fn message(role: &str, texts: impl IntoIterator<Item = String>) -> RolloutItem {
        let part = |text| {
            if role == "assistant" {
                ItemContent::OutputText { text }
            } else {
                ItemContent::InputText { text }
            }
        };
        RolloutItem::Message {
            role: role.to_string(),
            content: texts.into_iter().map(part).collect(),
        }
    }

    /// Returns the joined texts of a message.
    pub fn text(&self) -> Option<String> {
        let RolloutItem::Message { content, .. } = self else { return None };
        let text = |c: &ItemContent| match c {
            ItemContent::InputText { text } | ItemContent::OutputText { text } => {
                Some(text.clone())
            }
            ItemContent::Other(_) => None,
        };
        Some(content.iter().filter_map(text).collect())
    }

    /// Returns true if the user wrote it: role `user` and no context message from the program
    /// (docs/sources/codex.md §1.4).
    pub fn is_user(&self) -> bool {
        let from_user = |c: &ItemContent| !matches!(c, ItemContent::InputText { text } if context_path(text).is_some());
        matches!(self, RolloutItem::Message { role, content, .. } if role == "user" && content.iter().all(from_user))
    }

    /// Returns true if it is sent to the model.
    pub fn in_prompt(&self) -> bool {
        !matches!(self, RolloutItem::GhostSnapshot { .. })
    }
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
        let folder = rest
            .lines()
            .next()
            .and_then(|l| l.trim().strip_prefix("for "))
            .map(str::trim)
            .filter(|f| !f.is_empty());
        return Some(folder.map_or_else(
            || "AGENTS.md".to_string(),
            |f| format!("{}/AGENTS.md", f.trim_end_matches('/')),
        ));
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
    use serde_json::json;

    #[test]
    fn unknown_items_round_trip() {
        for value in [
            json!({"type": "web_search_call", "status": "completed"}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}),
            json!({"type": "function_call", "name": "no call id"}),
        ] {
            let item: RolloutItem = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&item).unwrap(), value);
        }
    }

    #[test]
    fn context_message_with_user_role_is_not_user() {
        assert!(RolloutItem::message("user", ["fix it".into()]).is_user());
        assert!(
            !RolloutItem::message("user", ["<environment_context>\n</environment_context>".into()])
                .is_user()
        );
        assert!(
            !RolloutItem::message("user", ["# AGENTS.md instructions for /src\n".into()]).is_user()
        );
        assert!(!RolloutItem::message("developer", ["fix it".into()]).is_user());
    }

    #[test]
    fn ghost_snapshot_is_not_in_prompt() {
        let ghost: RolloutItem = serde_json::from_value(
            json!({"type": "ghost_snapshot", "ghost_commit": {"id": "abc"}}),
        )
        .unwrap();
        assert!(matches!(ghost, RolloutItem::GhostSnapshot { .. }) && !ghost.in_prompt());
    }
}
