//! Settings of context management by the Anthropic API.

use std::sync::Arc;

use serde::Deserialize;

use crate::shared::Places;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiSettings {
    pub(crate) clear: bool,
    pub(crate) clear_trigger: u64,
    pub(crate) clear_trigger_uses: Option<u64>,
    pub(crate) clear_keep: u64,
    pub(crate) clear_at_least: u64,
    pub(crate) clear_exclude: Option<Arc<str>>,
    pub(crate) clear_inputs: Arc<str>,
    pub(crate) memory: bool,
    pub(crate) thinking: Thinking,
    pub(crate) thinking_keep: u64,
    pub(crate) compact: Compact,
    pub(crate) compact_trigger: u64,
    pub(crate) pause: bool,
    pub(crate) keep_last: u64,
    pub(crate) breakpoints: Places,
    pub(crate) instructions: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Thinking {
    Default,
    All,
    Turns,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Compact {
    Threshold,
    OnDemand,
    Off,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiWords {
    pub(crate) memory_warning: Arc<str>,
    pub(crate) memory_saved: Arc<str>,
}
