//! Settings of pi.

use std::sync::Arc;

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PiSettings {
    pub(crate) auto: bool,
    pub(crate) reserve: u64,
    pub(crate) keep_recent: u64,
    pub(crate) retries: u64,
    pub(crate) base_estimate: Option<u64>,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PiWords {
    pub(crate) summary_system: Arc<str>,
    pub(crate) open: Arc<str>,
    pub(crate) close: Arc<str>,
    pub(crate) prior_open: Arc<str>,
    pub(crate) prior_close: Arc<str>,
    pub(crate) initial: Arc<str>,
    pub(crate) update: Arc<str>,
    pub(crate) prefix_open: Arc<str>,
    pub(crate) prefix_close: Arc<str>,
    pub(crate) prefix: Arc<str>,
    pub(crate) focus: Arc<str>,
    pub(crate) no_history: Arc<str>,
    pub(crate) split_join: Arc<str>,
    pub(crate) summary_head: Arc<str>,
    pub(crate) summary_tail: Arc<str>,
}
