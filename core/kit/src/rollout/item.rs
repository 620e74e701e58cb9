//! Items of a conversation as a rollout stores them: the Responses API's own shape. Members not
//! named here are kept.

use ctxbench_core::block::Media;
use ctxbench_core::content::Part;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

type Rest = Map<String, Value>;

/// One item of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// Something said by the user, the model or the program.
    Message {
        /// `user`, `assistant`, `developer` or `system`.
        role: String,
        /// Its parts in order.
        content: Vec<Content>,
        /// Further members.
        #[serde(flatten)]
        rest: Rest,
    },
    /// Thinking.
    Reasoning {
        /// The provider's opaque form.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
        /// Further members, readable summaries among them.
        #[serde(flatten)]
        rest: Rest,
    },
    /// A tool call.
    FunctionCall {
        /// Tool.
        name: String,
        /// Exact argument text.
        arguments: String,
        /// Pairs it with its output.
        call_id: String,
        /// Further members.
        #[serde(flatten)]
        rest: Rest,
    },
    /// What a tool returned.
    FunctionCallOutput {
        /// The call.
        call_id: String,
        /// A text, or a list of parts.
        output: Value,
        /// Further members.
        #[serde(flatten)]
        rest: Rest,
    },
    /// A compaction made by the provider.
    Compaction {
        /// Its opaque payload.
        encrypted_content: String,
        /// Further members.
        #[serde(flatten)]
        rest: Rest,
    },
    /// A commit of the working tree for `/undo`: kept in the history and on disk, never shown to a
    /// model (docs/sources/codex.md §1.4).
    GhostSnapshot {
        /// The commit.
        ghost_commit: Value,
        /// Further members.
        #[serde(flatten)]
        rest: Rest,
    },
    /// Any other item, as it stands.
    #[serde(untagged)]
    Other(Value),
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Text that went to the model.
    InputText {
        /// The text.
        text: String,
    },
    /// Text that the model wrote.
    OutputText {
        /// The text.
        text: String,
    },
    /// Any other part, images among them.
    #[serde(untagged)]
    Other(Value),
}

impl Content {
    /// An image by its address.
    pub fn image(url: &str) -> Content {
        Content::Other(serde_json::json!({"type": "input_image", "image_url": url}))
    }
}

/// The text or image that a part of a message or of an output is.
pub fn part(content: &Map<String, Value>) -> Option<Part> {
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

impl Item {
    /// A message of plain texts; the assistant's are output, all others input.
    pub fn message(role: &str, texts: impl IntoIterator<Item = String>) -> Item {
        let part = |text| {
            if role == "assistant" {
                Content::OutputText { text }
            } else {
                Content::InputText { text }
            }
        };
        Item::Message {
            role: role.to_string(),
            content: texts.into_iter().map(part).collect(),
            rest: Rest::new(),
        }
    }

    /// The texts of a message, joined.
    pub fn text(&self) -> Option<String> {
        let Item::Message { content, .. } = self else { return None };
        let text = |c: &Content| match c {
            Content::InputText { text } | Content::OutputText { text } => Some(text.clone()),
            Content::Other(_) => None,
        };
        Some(content.iter().filter_map(text).collect())
    }

    /// Whether a person said it: role `user`, and not one of the messages that the program writes
    /// in the user's place (docs/sources/codex.md §1.4).
    pub fn is_user(&self) -> bool {
        let said =
            |c: &Content| !matches!(c, Content::InputText { text } if context_path(text).is_some());
        matches!(self, Item::Message { role, content, .. } if role == "user" && content.iter().all(said))
    }

    /// Whether a model may see it.
    pub fn in_prompt(&self) -> bool {
        !matches!(self, Item::GhostSnapshot { .. })
    }
}

/// The name under which text of the program itself is shown, if it is such: the file of
/// instructions, or the name of its tag.
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
    fn unknown_items_and_members_survive() {
        for value in [
            json!({"type": "web_search_call", "status": "completed"}),
            json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c", "id": "fc_1", "status": "done"}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "data:,"}], "phase": 1}),
            json!({"type": "function_call", "name": "no call id"}),
        ] {
            let item: Item = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&item).unwrap(), value);
        }
    }

    #[test]
    fn what_the_program_writes_in_the_users_place_is_not_the_user() {
        assert!(Item::message("user", ["fix it".into()]).is_user());
        assert!(
            !Item::message("user", ["<environment_context>\n</environment_context>".into()])
                .is_user()
        );
        assert!(!Item::message("user", ["# AGENTS.md instructions for /src\n".into()]).is_user());
        assert!(!Item::message("developer", ["fix it".into()]).is_user());
    }

    #[test]
    fn ghosts_stay_out_of_prompts() {
        let ghost: Item = serde_json::from_value(
            json!({"type": "ghost_snapshot", "ghost_commit": {"id": "abc"}}),
        )
        .unwrap();
        assert!(matches!(ghost, Item::GhostSnapshot { .. }) && !ghost.in_prompt());
    }
}
