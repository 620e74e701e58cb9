//! Settings of Gemini CLI.

use std::sync::Arc;

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GeminiCliSettings {
    pub(crate) threshold: f64,
    pub(crate) keep: f64,
    pub(crate) results_budget: u64,
    pub(crate) cut_to: u64,
    pub(crate) mask: bool,
    pub(crate) mask_protect: u64,
    pub(crate) mask_minimum: u64,
    pub(crate) attempts: u64,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GeminiCliWords {
    pub(crate) summary_system: Arc<str>,
    pub(crate) prompt_new: Arc<str>,
    pub(crate) prompt_anchored: Arc<str>,
    pub(crate) prompt_verify: Arc<str>,
    pub(crate) ack: Arc<str>,
    pub(crate) interrupted: Arc<str>,
    pub(crate) cut_note: Arc<str>,
    pub(crate) masked_note: Arc<str>,
}
