//! JSON form and transcript of OpenCode's messages.

use std::sync::Arc;

use super::log::{cleared, estimate_list, message_len, message_transcript, part_len};
use ctxbench_core::block::{Block, BlockKind, CallRef, Draft, Media, MessageId, Role};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conform::{Context, MemberError, read};

/// Author of a message.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CaseSpeaker {
    User,
    Assistant,
}

impl CaseSpeaker {
    pub(super) fn is_user(&self) -> bool {
        matches!(self, CaseSpeaker::User)
    }
}

fn block(
    kind: BlockKind,
    role: Role,
    text: impl Into<Arc<str>>,
    call: Option<(String, String)>,
    is_error: bool,
) -> Arc<Block> {
    let call = call.map(|(id, name)| Arc::new(CallRef { id: id.into(), name: name.into() }));
    Draft { call, is_error, ..Draft::text(kind, role, text) }.build(MessageId(0), vec![])
}

fn file(media_type: String, url: String, name: Option<String>) -> Arc<Block> {
    let media = Some(Arc::new(Media { media_type, url, name }));
    Draft { media, ..Draft::text(BlockKind::Image, Role::User, "") }.build(MessageId(0), vec![])
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelMessage {
    role: String,
    content: Vec<ModelPart>,
}

#[derive(Deserialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
enum ModelPart {
    Text { text: String },
    Reasoning { text: String },
    ToolCall { tool_call_id: String, tool_name: String, input: Value },
    ToolResult { tool_call_id: String, tool_name: String, output: ModelOutput },
    File { data: String, media_type: String, filename: Option<String> },
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
enum ModelOutput {
    Text { value: String },
    ErrorText { value: String },
}

impl ModelPart {
    fn block(self) -> Arc<Block> {
        match self {
            ModelPart::Text { text } => block(BlockKind::User, Role::User, text, None, false),
            ModelPart::Reasoning { text } => {
                block(BlockKind::Reasoning, Role::Assistant, text, None, false)
            }
            ModelPart::ToolCall { tool_call_id, tool_name, input } => block(
                BlockKind::Call,
                Role::Assistant,
                input.to_string(),
                Some((tool_call_id, tool_name)),
                false,
            ),
            ModelPart::ToolResult { tool_call_id, tool_name, output } => {
                let (text, is_error) = match output {
                    ModelOutput::Text { value } => (value, false),
                    ModelOutput::ErrorText { value } => (value, true),
                };
                block(
                    BlockKind::Output,
                    Role::Tool,
                    text,
                    Some((tool_call_id, tool_name)),
                    is_error,
                )
            }
            ModelPart::File { data, media_type, filename } => file(media_type, data, filename),
        }
    }
}

pub(super) fn messages_estimate(_: &Context, input: Value) -> Result<Value, MemberError> {
    let messages: Vec<ModelMessage> = read(input)?;
    let lens = messages
        .into_iter()
        .map(|m| (message_len(&m.role, m.content.into_iter().map(|p| part_len(&p.block()))), 1));
    Ok(json!(estimate_list(&lens.collect::<Vec<_>>())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseMessage {
    role: CaseSpeaker,
    parts: Vec<StoredPart>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum StoredPart {
    Text {
        text: String,
        /// Whether the part is hidden from the model.
        #[serde(default)]
        ignored: bool,
        /// The program added the part; it is shown like any other.
        #[serde(default, rename = "synthetic")]
        _synthetic: bool,
    },
    Reasoning {
        text: String,
    },
    Tool {
        name: String,
        arguments: String,
        status: Status,
        #[serde(default, alias = "error")]
        output: String,
        #[serde(default)]
        cleared: bool,
        #[serde(default)]
        attachments: Vec<Attachment>,
    },
    #[serde(alias = "media")]
    File(Attachment),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Attachment {
    /// Media type, under the name that the program stores or the one in a case's user message.
    #[serde(alias = "media")]
    mime: String,
    #[serde(alias = "name")]
    filename: Option<String>,
    #[serde(default)]
    url: String,
}

impl Attachment {
    fn block(self) -> Arc<Block> {
        file(self.mime, self.url, self.filename)
    }
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Status {
    Completed,
    Error,
    Pending,
    Running,
}

impl StoredPart {
    /// Returns the blocks of the `nth` part.
    fn blocks(self, nth: usize, user: bool) -> Vec<Arc<Block>> {
        match self {
            StoredPart::Text { ignored: true, .. } => vec![],
            StoredPart::Text { text, .. } if user => {
                vec![block(BlockKind::User, Role::User, text, None, false)]
            }
            StoredPart::Text { text, .. } => {
                vec![block(BlockKind::Assistant, Role::Assistant, text, None, false)]
            }
            StoredPart::Reasoning { text } => {
                vec![block(BlockKind::Reasoning, Role::Assistant, text, None, false)]
            }
            StoredPart::Tool { name, arguments, status, output, cleared: gone, attachments } => {
                let call = Some((format!("call_{nth}"), name));
                let mut blocks =
                    vec![block(BlockKind::Call, Role::Assistant, arguments, call.clone(), false)];
                if matches!(status, Status::Completed | Status::Error) {
                    let result =
                        block(BlockKind::Output, Role::Tool, output, call, status == Status::Error);
                    blocks.push(if gone { cleared(&result) } else { result });
                    blocks.extend(attachments.into_iter().map(Attachment::block));
                }
                blocks
            }
            StoredPart::File(f) => vec![f.block()],
        }
    }
}

/// Adds the type to a part without one, as in the parts of a user's message.
fn typed(part: &mut Value) {
    if let Some(part) = part.as_object_mut().filter(|p| !p.contains_key("type")) {
        let kind = if part.contains_key("text") { "text" } else { "file" };
        part.insert("type".into(), kind.into());
    }
}

pub(super) fn transcript(_: &Context, mut input: Value) -> Result<Value, MemberError> {
    input.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten().for_each(typed);
    let m: CaseMessage = read(input)?;
    let user = m.role.is_user();
    let blocks: Vec<Arc<Block>> =
        m.parts.into_iter().enumerate().flat_map(|(n, p)| p.blocks(n, user)).collect();
    Ok(json!({"text": *message_transcript(user, &blocks)}))
}
