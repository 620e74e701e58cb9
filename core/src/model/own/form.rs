//! The format of a file of models.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::model::{CacheRule, Entries, Latency, Provider};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelFile {
    #[serde(default, rename = "model")]
    pub(super) models: Vec<Spanned<OwnModel>>,
    #[serde(default)]
    pub(super) cache: BTreeMap<String, Spanned<CacheRule>>,
    #[serde(default)]
    pub(super) speed: BTreeMap<String, Spanned<Latency>>,
}

/// A model in a file. Missing fields come from the listed model with the name, or from the model that
/// it is `like`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnModel {
    pub(super) name: Spanned<String>,
    pub(super) like: Option<Spanned<String>>,
    pub(super) provider: Option<Spanned<Provider>>,
    pub(super) wire: Option<Spanned<String>>,
    pub(super) window: Option<Spanned<u64>>,
    pub(super) max_output: Option<Spanned<u64>>,
    pub(super) input_limit: Option<Spanned<u64>>,
    pub(super) weak: Option<Spanned<String>>,
    pub(super) cache: Option<Spanned<OwnCache>>,
    pub(super) prices: Option<Spanned<OwnPrices>>,
    pub(super) capabilities: Option<Spanned<OwnCapabilities>>,
    pub(super) speed: Option<Spanned<String>>,
    pub(super) keeps_thinking: Option<bool>,
    pub(super) counting: Option<Spanned<OwnCounting>>,
    pub(super) deprecated: Option<String>,
    pub(super) source: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnCache {
    pub(super) rule: Option<Spanned<String>>,
    pub(super) entries: Option<Entries>,
    pub(super) minimum: Option<u64>,
    pub(super) breakpoints: Option<usize>,
    pub(super) lookback: Option<usize>,
    pub(super) considered: Option<usize>,
    pub(super) step: Option<u64>,
    pub(super) short_ms: Option<u64>,
    pub(super) long_ms: Option<u64>,
    pub(super) write_fee: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnPrices {
    pub(super) input: f64,
    pub(super) read: f64,
    pub(super) output: f64,
    pub(super) write_5m: Option<f64>,
    pub(super) write_1h: Option<f64>,
    pub(super) storage: Option<f64>,
    pub(super) long_from: Option<u64>,
    pub(super) long_input_factor: Option<f64>,
    pub(super) long_output_factor: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnCapabilities {
    pub(super) server_compaction: Option<bool>,
    pub(super) awareness: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnCounting {
    pub(super) family: Option<Family>,
    pub(super) per_token: Option<f64>,
    pub(super) per_visible_token: Option<f64>,
    pub(super) per_block: Option<u64>,
    pub(super) per_image: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Family {
    /// The counting model of Claude.
    Claude,
    /// o200k, exactly.
    Openai,
    /// o200k as a substitute for an unknown vocabulary.
    O200k,
}
