//! Settings of Codex CLI.

use std::sync::Arc;

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodexSettings {
    pub(crate) auto_compact_limit: Option<u64>,
    pub(crate) limit_scope: LimitScope,
    pub(crate) compact_prompt: Option<Arc<str>>,
    pub(crate) user_message_tokens: u64,
    pub(crate) tool_output_tokens: Option<u64>,
    pub(crate) tool_output_policy: ToolOutputPolicy,
    pub(crate) post_turn_percent: u64,
    pub(crate) stream_retries: u64,
    pub(crate) remote: bool,
    pub(crate) remote_user_tokens: u64,
    pub(crate) base_estimate_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LimitScope {
    Total,
    #[serde(rename = "body_after_prefix")]
    AfterPrefix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolOutputPolicy {
    Tokens,
    Bytes,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodexWords {
    pub(crate) summary_prompt: Arc<str>,
    pub(crate) summary_prefix: Arc<str>,
}
