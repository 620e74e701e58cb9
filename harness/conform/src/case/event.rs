//! Events of a case.

use std::collections::BTreeMap;

use ctxbench_core::content::Part;
use ctxbench_core::request::Purpose;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum CaseEvent {
    /// A message of the user.
    User {
        parts: Vec<Part>,
    },
    Reply(CaseReply),
    SummaryReply(CaseReply),
    Error(RefusedRequest),
    Compact {
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

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CaseReply {
    pub id: Option<String>,
    /// A compaction by the provider, which precedes the parts.
    pub compaction: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Output of each call as it entered the history, by the id of the call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
    pub stop_reason: Option<String>,
    pub usage: Option<CaseUsage>,
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
    pub message: Option<String>,
}
