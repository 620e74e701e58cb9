//! Settings of the Anthropic SDK's tool runner.

use std::sync::Arc;

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SdkSettings {
    pub(crate) language: Language,
    pub(crate) enabled: bool,
    pub(crate) threshold: u64,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) summary_prompt: Option<Arc<str>>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_iterations: Option<u64>,
    pub(crate) compact_at: u64,
    pub(crate) threads: bool,
    pub(crate) edits: Edits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    Python,
    Typescript,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Edits {
    None,
    ClearToolUses,
    Compact,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SdkWords {
    pub(crate) summary_prompt: Arc<str>,
}
