//! Settings of OpenCode.

use std::sync::Arc;

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenCodeSettings {
    pub(crate) auto: bool,
    pub(crate) prune: Option<bool>,
    pub(crate) prune_protect: u64,
    pub(crate) prune_minimum: u64,
    pub(crate) count: Count,
    pub(crate) reserved: Option<u64>,
    pub(crate) tail_turns: Option<u64>,
    pub(crate) preserve_recent_tokens: Option<u64>,
    pub(crate) tail_least: u64,
    pub(crate) tail_most: u64,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) model_context: Option<u64>,
    pub(crate) model_output: Option<u64>,
    pub(crate) model_input: Option<u64>,
    pub(crate) hook_context: Option<Arc<str>>,
    pub(crate) hook_prompt: Option<Arc<str>>,
    pub(crate) autocontinue: bool,
    pub(crate) proactive: Option<f64>,
    pub(crate) prompt: Prompt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Count {
    Characters,
    Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Prompt {
    Own,
    Sdk,
}
