//! Models: windows, outputs, prices, cache rules and capabilities, as dated data.

pub(crate) mod counting;
mod family;
mod images;
mod names;
mod own;
mod price;
mod recorded;
mod table;
mod unlisted;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use counting::Counting;
pub use family::substitute;
pub use images::ImageRule;
pub use own::OwnFile;
pub use price::{Cost, cost, cost_of_reply, iterations};
pub use recorded::{find_recorded, keeps_thinking, priced_as, provider_of};
pub use table::TERMS;
use table::table;
pub use unlisted::count as unlisted_count;

use crate::settings::scale_tokens;
use crate::time::Millis;
use crate::usage::Ttl;
use ctxbench_util::toml_file::TomlError;

/// The provider of a model, which determines cache rules and error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    Anthropic,
    Openai,
    Gemini,
    /// Via its OpenAI-compatible endpoint.
    Deepseek,
    /// Via its OpenAI-compatible endpoint.
    Xai,
    /// Any other provider, via an OpenAI-compatible endpoint.
    Other,
}

/// Positions at which a reusable prefix can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entries {
    /// At breakpoints of the client.
    Breakpoints,
    /// At breakpoints, and at the end of the prompt unless all breakpoints are used.
    BreakpointsAndEnd,
    /// At the end of each prompt and of its reply, and where two earlier prompts diverged.
    Units,
    /// After every position.
    Everywhere,
}

/// Parameters of a provider's prompt cache (`[cache.*]` in `rules.toml`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CacheRule {
    pub entries: Entries,
    /// Minimum size of a cached prefix, tokens.
    pub minimum: u64,
    /// Maximum number of breakpoints; 0 if the wire has none.
    #[serde(default)]
    pub breakpoints: usize,
    /// Positions checked per breakpoint, including itself; absent means all before it.
    pub lookback: Option<usize>,
    /// Number of earlier breakpoints considered, latest first; absent means all.
    pub considered: Option<usize>,
    /// Hits are whole multiples of this many tokens.
    #[serde(default = "one_token")]
    pub step: u64,
    /// Lifetime after the last use of entries with the short lifetime (`5m`) or without a requested one,
    /// in ms.
    pub short_ms: Millis,
    /// Lifetime after the last use of entries with the long lifetime (`1h`), in ms; absent if there is
    /// only one.
    pub long_ms: Option<Millis>,
    /// Whether cache writes cost more than input and are reported separately.
    #[serde(default)]
    pub write_fee: bool,
}

fn one_token() -> u64 {
    1
}

impl CacheRule {
    /// Returns the lifetime of an entry after its last use, in ms.
    pub fn lifetime(&self, ttl: Ttl) -> Millis {
        match ttl {
            Ttl::FiveMinutes => self.short_ms,
            Ttl::OneHour => self.long_ms.unwrap_or(self.short_ms),
        }
    }

    /// Returns the rule with entries that never expire.
    pub fn without_lifetimes(self) -> Self {
        const FOREVER: Millis = Millis::MAX / 4;
        CacheRule { short_ms: FOREVER, long_ms: Some(FOREVER), ..self }
    }

    /// Returns whether only prefixes at breakpoints are cached.
    pub fn needs_breakpoints(&self) -> bool {
        self.entries == Entries::Breakpoints
    }
}

/// USD per million tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    /// Uncached input.
    pub input: f64,
    /// Cache write for the short lifetime (Anthropic's five minutes); the input price if writes cost
    /// nothing extra.
    pub write_5m: f64,
    /// Cache write for the long lifetime (Anthropic's hour).
    pub write_1h: f64,
    /// Cache read.
    pub read: f64,
    pub output: f64,
    /// Tiers of long prompts, by size.
    pub long: Vec<LongPrice>,
}

/// Factors on the prices of a request with a long prompt.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// Prompt size in tokens above which the factors apply to the whole request.
    pub from: u64,
    /// Factor on all kinds of input.
    pub input_factor: f64,
    pub output_factor: f64,
}

/// Capabilities of a model's provider: those of the wire (`[wire.*]` in `rules.toml`) and the model's
/// own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// A free counting endpoint.
    pub counting: bool,
    /// Clears old tool results, and ignores everything before a compaction.
    pub context_editing: bool,
    /// Summarises conversations on the server.
    pub server_compaction: bool,
    /// Compactions are items that the client requests and positions.
    pub compaction_items: bool,
    /// Stores conversations that a later request continues.
    pub message_threads: bool,
    /// Informs the model of the remaining window.
    pub awareness: bool,
}

/// Modelled latency: `first token = a + b·uncached + c·cached`, then `d` per output token.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Fixed part, ms.
    pub a_ms: f64,
    /// Per uncached (or newly written) input token, ms.
    pub b_ms: f64,
    /// Per cached input token, ms.
    pub c_ms: f64,
    /// Per output token, ms.
    pub d_ms: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name on the wire.
    pub name: Arc<str>,
    pub provider: Provider,
    /// Name of the wire format, see `ctxbench-provider`.
    pub wire: Arc<str>,
    /// Context window, tokens.
    pub window: u64,
    /// Maximum size of a reply, tokens.
    pub max_output: u64,
    /// Unscaled maximum size of a reply, for wires that require a limit.
    pub published_output: u64,
    /// Separate limit on input, tokens.
    pub input_limit: Option<u64>,
    /// Cheaper model of the same provider that products use for side work.
    pub weak: Arc<str>,
    pub counting: Counting,
    /// Whether the thinking of earlier turns remains in the prompt by default (`[thinking]` in
    /// `rules.toml`).
    pub keeps_thinking: bool,
    pub cache: CacheRule,
    pub prices: Prices,
    /// Whether `prices` are those of another model.
    pub lacks_prices: bool,
    pub capabilities: Capabilities,
    /// Modelled latency (`[speed.*]` in `rules.toml`).
    pub latency: Latency,
    /// Announced day of retirement, `YYYY-MM-DD`.
    pub deprecated: Option<Arc<str>>,
    /// Source of the figures: version and page of the price file, and reason and page of each override.
    pub source: String,
}

/// Error: the catalogue has no model of this name. Many recordings name unknown models, so similar
/// names are searched only when the error is displayed.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no model `{name}`; {}", nearest_to(name))]
pub struct UnknownModel {
    pub name: String,
}

fn nearest_to(name: &str) -> String {
    let names: Vec<&str> = catalogue().iter().map(|m| &*m.name).collect();
    let all =
        format!("`ctxbench list models` shows {} of them, --models FILE adds yours", names.len());
    ctxbench_util::nearest::hint_or(name, &names, &all)
}

/// The default of `--model`: available, with no announced day of retirement
/// (<https://platform.claude.com/docs/en/models/sonnet-4-6/overview> calls it legacy), and the
/// latest Sonnet with a default window of 200k. With a window of 1M, the built-in sessions end before
/// any compaction.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-6";

impl Model {
    /// Returns the model with limits multiplied by a scenario's scale. Prices and latencies per token do
    /// not change.
    pub fn scaled(&self, scale: f64) -> Model {
        Model {
            window: scale_tokens(self.window, scale),
            max_output: scale_tokens(self.max_output, scale),
            input_limit: self.input_limit.map(|n| scale_tokens(n, scale)),
            counting: self.counting.scaled(scale),
            ..self.clone()
        }
    }

    /// Returns the model of a name with the token count of this one. An unknown name becomes a copy of
    /// this model without prices.
    pub fn named(self: &Arc<Self>, name: &str) -> Arc<Model> {
        if *self.name == *name {
            return self.clone();
        }
        let unknown = |_| Model { name: name.into(), lacks_prices: true, ..(**self).clone() };
        let model = find(name).cloned().unwrap_or_else(unknown);
        Arc::new(Model { counting: self.counting, ..model })
    }

    /// Returns the day of retirement if it is before the date of the table, regardless of the clock.
    pub fn retired(&self) -> Option<&str> {
        self.deprecated.as_deref().filter(|day| *day <= table().as_of.as_str())
    }

    /// Returns whether the prices are known.
    pub fn is_priced(&self) -> bool {
        !self.lacks_prices
    }
}

/// Returns all listed models, in the order of the data file. [`find`] also knows those that only the
/// price file has.
pub fn catalogue() -> &'static [Model] {
    &table().models
}

/// Returns the version of prices and windows, such as `litellm 1.109.1 + overrides, 1f0a77c2`: the
/// price file, and a hash of the table and its rules. Files of [`install`] follow with name and hash:
/// `… + mine.toml, 09c2b1e4`.
pub fn price_table() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| name_of(table()))
}

fn name_of(table: &table::Table) -> String {
    let hash = table::hash() >> 32;
    let published = format!("{} + overrides, {hash:08x}", table.origin);
    table.changes.iter().fold(published, |name, file| format!("{name} + {file}"))
}

/// Models that cannot be installed.
#[derive(Debug, Error)]
pub enum InstallError {
    #[error(transparent)]
    File(#[from] TomlError),
    /// The table was already used.
    #[error("models can only be installed before the first lookup; call `install` at the start")]
    Late,
}

/// Adds the user's models to the table, or changes listed ones, for the whole process. Models are
/// `'static`, so call this once, before the first lookup. Later files override earlier ones.
pub fn install(files: &[OwnFile]) -> Result<(), InstallError> {
    let table = files.iter().try_fold(table::published(), table::Table::with)?;
    if table::install(table) { Ok(()) } else { Err(InstallError::Late) }
}

/// Finds a model by its exact name in the catalogue, or else in the price file.
pub fn find(name: &str) -> Result<&'static Model, UnknownModel> {
    let found = catalogue().iter().find(|m| &*m.name == name);
    found.or_else(|| unlisted::exact(name)).ok_or_else(|| UnknownModel { name: name.into() })
}

#[cfg(test)]
mod tests;
