//! Models: windows, outputs, prices, cache rules and capabilities, as dated data.

mod counting;
mod family;
mod own;
mod price;
mod table;

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use thiserror::Error;

pub use counting::Counting;
pub use family::{find_recorded, keeps_thinking, priced_as, provider_of, stand_in};
pub use own::OwnFile;
pub use price::{Cost, cost, cost_of_reply, iterations, storage_cost};
use table::table;

use crate::request::Ttl;
use crate::session::Millis;
use crate::settings::scale_tokens;
use crate::toml_file::Wrong;

/// Who serves a model; decides cache rules and error words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Anthropic.
    Anthropic,
    /// OpenAI.
    Openai,
    /// Google Gemini.
    Gemini,
    /// DeepSeek, over its OpenAI-compatible endpoint.
    Deepseek,
    /// xAI, over its OpenAI-compatible endpoint.
    Xai,
}

impl Provider {
    /// Its name in files.
    pub fn word(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::Openai => "openai",
            Provider::Gemini => "gemini",
            Provider::Deepseek => "deepseek",
            Provider::Xai => "xai",
        }
    }
}

/// Where a prefix can end that a later prompt reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entries {
    /// Where the client put a breakpoint.
    Breakpoints,
    /// There, and at the end of the prompt unless all breakpoints are used up.
    BreakpointsAndEnd,
    /// At the end of each prompt, at the end of the reply to it, and where two earlier prompts
    /// parted.
    Units,
    /// After every position.
    Everywhere,
}

/// How a provider's prompt cache behaves: one simulator, a set of parameters per provider
/// (`[cache.*]` in `rules.toml`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheRule {
    /// Where entries end.
    pub entries: Entries,
    /// Smallest prefix that is cached, tokens.
    pub minimum: u64,
    /// Most breakpoints that a client may set; 0 = the wire has none.
    #[serde(default)]
    pub breakpoints: usize,
    /// Positions checked per breakpoint, itself included; absent = all before it.
    #[serde(default)]
    pub lookback: Option<usize>,
    /// Earlier breakpoints that are considered, the latest first; absent = all.
    #[serde(default)]
    pub considered: Option<usize>,
    /// Hits are whole multiples of this many tokens.
    #[serde(default = "one_token")]
    pub step: u64,
    /// Life after the last use of an entry asked for with the short lifetime (`5m` on our side of
    /// the wire), and of one that nobody asked for, ms.
    pub short_ms: Millis,
    /// The same for the long lifetime (`1h` on our side of the wire), ms; absent = there is only
    /// one.
    #[serde(default)]
    pub long_ms: Option<Millis>,
    /// Writes cost more than plain input and are reported apart.
    #[serde(default)]
    pub write_fee: bool,
}

fn one_token() -> u64 {
    1
}

impl CacheRule {
    /// Life of an entry after its last use, ms.
    pub fn lifetime(&self, ttl: Ttl) -> Millis {
        match ttl {
            Ttl::FiveMinutes => self.short_ms,
            Ttl::OneHour => self.long_ms.unwrap_or(self.short_ms),
        }
    }

    /// The same rule with entries that never expire.
    pub fn without_lifetimes(self) -> Self {
        const FOR_EVER: Millis = Millis::MAX / 4;
        CacheRule { short_ms: FOR_EVER, long_ms: Some(FOR_EVER), ..self }
    }

    /// Whether nothing is cached unless the client asks for it.
    pub fn needs_breakpoints(&self) -> bool {
        self.entries == Entries::Breakpoints
    }
}

/// USD per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Prices {
    /// Uncached input.
    pub input: f64,
    /// Cache write for the short lifetime (Anthropic's five minutes); the input price where writing
    /// costs nothing more.
    pub write_5m: f64,
    /// Cache write for the long lifetime (Anthropic's hour).
    pub write_1h: f64,
    /// Cache read.
    pub read: f64,
    /// Output.
    pub output: f64,
    /// Contents that a client stores with the provider, per hour; `None` = nothing can be stored.
    #[serde(default)]
    pub storage: Option<f64>,
    /// Prompt size above which the long-prompt factors hold for the whole request, tokens.
    #[serde(default)]
    pub long_from: Option<u64>,
    /// Factor on all input kinds above that.
    #[serde(default = "one")]
    pub long_input_factor: f64,
    /// Factor on output above that.
    #[serde(default = "one")]
    pub long_output_factor: f64,
}

fn one() -> f64 {
    1.0
}

/// What a model's provider can do. What holds for everybody who speaks a wire stands with the wire
/// (`[wire.*]` in `rules.toml`), and a model adds its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Capabilities {
    /// A free counting endpoint.
    pub counting: bool,
    /// Clears old tool results on its side, and ignores what stands before a compaction.
    pub context_editing: bool,
    /// Summarises on its side.
    pub server_compaction: bool,
    /// A compaction is an item that the client asks for and puts where it wants.
    pub compaction_items: bool,
    /// Keeps conversations that a later request goes on with.
    pub message_threads: bool,
    /// The model is told how much window is left.
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

/// One model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Model {
    /// Name on the wire.
    pub name: Arc<str>,
    /// Provider.
    pub provider: Provider,
    /// The wire format: a name that whoever speaks wires knows (`ctxbench-provider`).
    pub wire: Arc<str>,
    /// Context window, tokens.
    pub window: u64,
    /// Largest reply, tokens.
    pub max_output: u64,
    /// The same whatever the scale: asked for where a wire demands a limit and a request has none.
    #[serde(skip)]
    pub published_output: u64,
    /// Separate limit on input, tokens.
    #[serde(default)]
    pub input_limit: Option<u64>,
    /// Cheaper model of the same provider that products use for side work.
    pub weak: Arc<str>,
    /// How it counts tokens.
    #[serde(skip)]
    pub counting: Counting,
    /// Thinking of earlier turns stays in the prompt unless a request says otherwise
    /// (`[thinking]` in `rules.toml`).
    #[serde(skip)]
    pub keeps_thinking: bool,
    /// Prompt cache.
    pub cache: CacheRule,
    /// Prices.
    pub prices: Prices,
    /// What the provider can do for it.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Modelled latency (`[speed.*]` in `rules.toml`).
    pub latency: Latency,
    /// Day from which the provider no longer serves it, as announced, `YYYY-MM-DD`.
    #[serde(default)]
    pub deprecated: Option<Arc<str>>,
    /// Where the figures come from: the version of the price file with the page that it names, and
    /// each figure of ours with its reason and page.
    pub source: String,
}

/// No model of that name. Recordings ask for many that are not known, so the nearest names are
/// looked for when it is shown.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no model `{name}`; {}", nearest_to(name))]
pub struct UnknownModel {
    /// What was asked for.
    pub name: String,
}

fn nearest_to(name: &str) -> String {
    let names: Vec<&str> = catalogue().iter().map(|m| &*m.name).collect();
    let all = format!("`ctxbench list models` shows all {}, --models FILE adds yours", names.len());
    crate::nearest::hint_or(name, &names, &all)
}

/// The model of a run without `--model`: sold today, with no day of retirement announced
/// (<https://platform.claude.com/docs/en/models/sonnet-4-6/overview> calls it legacy), and the
/// latest Sonnet whose clients get 200k without asking. With the 1M of the Sonnets after it the
/// built-in sessions end before anything is compacted.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-6";

impl Model {
    /// The model with its limits multiplied by a scenario's scale. Prices and latencies per token
    /// stay.
    pub fn scaled(&self, scale: f64) -> Model {
        Model {
            window: scale_tokens(self.window, scale),
            max_output: scale_tokens(self.max_output, scale),
            input_limit: self.input_limit.map(|n| scale_tokens(n, scale)),
            counting: self.counting.scaled(scale),
            ..self.clone()
        }
    }

    /// The model of a name as a client of this one meets it. A name that the catalogue does not
    /// hold is taken for another model like this one, without a price list.
    pub fn named(self: &Arc<Self>, name: &str) -> Arc<Model> {
        if *self.name == *name {
            return self.clone();
        }
        let unknown =
            |_| Model { name: name.into(), prices: Prices::default(), ..(**self).clone() };
        let model = find(name).cloned().unwrap_or_else(unknown);
        Arc::new(Model { counting: self.counting, ..model })
    }

    /// The day of its retirement, if that had come when the table was made. Not asked of the clock:
    /// the same table says the same on every day.
    pub fn retired(&self) -> Option<&str> {
        self.deprecated.as_deref().filter(|day| *day <= table().as_of.as_str())
    }

    /// Whether anybody knows what it costs.
    pub fn is_priced(&self) -> bool {
        self.prices != Prices::default()
    }
}

/// All models, in the order of the data file.
pub fn catalogue() -> &'static [Model] {
    &table().models
}

/// Which figures dollars and windows rest on, such as `litellm 1.109.1 + overrides, 1f0a77c2`: the
/// price file, and a hash of the table and its rules, which changes with any of their bytes. Files
/// of [`install`] follow with name and hash: `… + mine.toml, 09c2b1e4`.
pub fn price_table() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| name_of(table()))
}

fn name_of(table: &table::Table) -> String {
    let hash = table::hash() >> 32;
    let published = format!("{} + overrides, {hash:08x}", table.origin);
    table.changes.iter().fold(published, |name, file| format!("{name} + {file}"))
}

/// Why a user's models are not those of the process.
#[derive(Debug, Error)]
pub enum InstallError {
    /// A file is not as it should be.
    #[error(transparent)]
    Wrong(#[from] Wrong),
    /// Somebody has looked into the table already.
    #[error("models can only be added before the first is looked up")]
    Late,
}

/// Adds models of a user's own to the table, or changes what it says of some, for the whole
/// process: models are `'static` everywhere, so this is done once, before the first is looked up.
/// A later file goes on from what an earlier one says.
pub fn install(files: &[OwnFile]) -> Result<(), InstallError> {
    let table = files.iter().try_fold(table::published(), table::Table::with)?;
    table::install(table).map_err(|_| InstallError::Late)
}

/// A model by name.
pub fn find(name: &str) -> Result<&'static Model, UnknownModel> {
    let found = catalogue().iter().find(|m| &*m.name == name);
    found.ok_or_else(|| UnknownModel { name: name.into() })
}

#[cfg(test)]
mod tests;
