//! Events of a case.

use ctxbench_core::request::Purpose;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum CaseEvent {
    /// A message of the user: a text, or several parts.
    User {
        text: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<UserPart>,
    },
    Reply(CaseReply),
    SummaryReply(CaseReply),
    Error(RefusedRequest),
    Compact {
        #[serde(alias = "focus")]
        instructions: Option<String>,
    },
    Restart {},
    Kill {},
    /// The caller of a library adds a message to the history.
    CallerAppend {
        form: ContentForm,
    },
}

/// Form of a message's content.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentForm {
    String,
    Blocks,
    Object,
}

/// A text or a file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct UserPart {
    pub text: Option<String>,
    pub url: Option<String>,
    #[serde(alias = "mime", alias = "media")]
    pub media_type: Option<String>,
    #[serde(alias = "filename")]
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CaseReply {
    pub id: Option<String>,
    pub reasoning: Option<CaseReasoning>,
    /// A compaction by the provider.
    #[serde(alias = "compaction")]
    pub opaque: Option<String>,
    /// Blocks before the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<ReplyBlock>,
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CaseCall>,
    pub stop_reason: Option<String>,
    pub usage: Option<CaseUsage>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CaseReasoning {
    #[serde(default)]
    pub text: String,
    pub encrypted: Option<String>,
    pub encrypted_bytes: Option<usize>,
}

/// A call, with its output as it entered the history.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CaseCall {
    pub id: String,
    pub name: String,
    pub arguments: String,
    pub output: Option<String>,
    pub output_bytes: Option<usize>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// A block of the Anthropic API.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ReplyBlock {
    Text { text: String },
    Thinking { thinking: String, signature: Option<String> },
    RedactedThinking { data: String },
    ToolUse { id: String, name: String, input: Map<String, Value> },
    Compaction { content: Option<String> },
}

/// Usage under the names of the provider's API.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CaseUsage {
    #[serde(alias = "prompt_tokens")]
    pub input_tokens: Option<u64>,
    #[serde(alias = "completion_tokens")]
    pub output_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub cache_creation_input_tokens: Option<u64>,
    pub cache_read_input_tokens: Option<u64>,
    /// Passes over the model, for readers.
    pub iterations: Option<Value>,
}

/// A request that failed: a status, a code, or both.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RefusedRequest {
    pub on: Purpose,
    pub status: Option<u16>,
    pub code: Option<String>,
    #[serde(alias = "text")]
    pub message: Option<String>,
}
