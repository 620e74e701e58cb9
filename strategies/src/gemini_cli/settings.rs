//! Settings of Gemini CLI.

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
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
