//! Settings of Aider.

use std::sync::Arc;

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AiderSettings {
    pub(crate) max_chat_history_tokens: Option<u64>,
    pub(crate) history_least: u64,
    pub(crate) history_most: u64,
    pub(crate) map_tokens: Option<u64>,
    pub(crate) map_multiplier_no_files: u64,
    pub(crate) weak_model: Option<Arc<str>>,
    pub(crate) architect: bool,
    pub(crate) editor_model: Option<Arc<str>>,
    pub(crate) auto_accept: bool,
    pub(crate) cache_prompts: bool,
    pub(crate) keepalive_pings: u64,
    pub(crate) keepalive_delay_ms: u64,
    pub(crate) reminder: Reminder,
    pub(crate) oversize: Oversize,
    pub(crate) restore: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reminder {
    User,
    Sys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Oversize {
    Proceed,
    Decline,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AiderWords {
    pub(crate) summary_prompt: Arc<str>,
    pub(crate) summary_prefix: Arc<str>,
    pub(crate) described_prefix: Arc<str>,
    pub(crate) committed: Arc<str>,
    pub(crate) edited: Arc<str>,
    pub(crate) ok: Arc<str>,
    pub(crate) files: Arc<str>,
    pub(crate) files_ok: Arc<str>,
    pub(crate) no_files: Arc<str>,
    pub(crate) no_files_but_map: Arc<str>,
    pub(crate) no_files_but_map_ok: Arc<str>,
    pub(crate) reminder: Arc<str>,
    pub(crate) too_long: Arc<str>,
}
