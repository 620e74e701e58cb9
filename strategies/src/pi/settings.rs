//! Settings of pi.

use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PiSettings {
    pub(crate) auto: bool,
    pub(crate) reserve: u64,
    pub(crate) keep_recent: u64,
    pub(crate) retries: u64,
    pub(crate) base_estimate: Option<u64>,
}
