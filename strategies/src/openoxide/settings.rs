//! Settings of OpenOxide.

use std::sync::Arc;

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenOxideSettings {
    pub(crate) phases: Phases,
    pub(crate) prune_protect: u64,
    pub(crate) prune_minimum: u64,
    pub(crate) keep_turns: u64,
    pub(crate) prune_order: PruneOrder,
    pub(crate) output_reserve: u64,
    pub(crate) safety_margin: f64,
    pub(crate) repo_map_fraction: f64,
    pub(crate) repo_map_min: u64,
    pub(crate) repo_map_max: u64,
    pub(crate) chat_history_fraction: f64,
    pub(crate) chat_history_max: u64,
    pub(crate) compaction_buffer: u64,
    pub(crate) weak_model: Option<Arc<str>>,
    pub(crate) transcript_output: u64,
    pub(crate) clear_trigger: u64,
    pub(crate) clear_keep: u64,
    pub(crate) clear_at_least: Option<u64>,
    pub(crate) compact_trigger: u64,
    pub(crate) awareness: bool,
    pub(crate) migration: bool,
    pub(crate) cross_session: bool,
    pub(crate) memory_index_lines: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phases {
    Three,
    Two,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PruneOrder {
    Age,
    Importance,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OxideWords {
    pub(crate) history_system: Arc<str>,
    pub(crate) session_prompt: Arc<str>,
    pub(crate) session_wishes: Arc<str>,
    pub(crate) session_from: Arc<str>,
    pub(crate) summary_prefix: Arc<str>,
    pub(crate) before_prefix: Arc<str>,
    pub(crate) placeholder: Arc<str>,
    pub(crate) budget: Arc<str>,
    pub(crate) usage: Arc<str>,
}
