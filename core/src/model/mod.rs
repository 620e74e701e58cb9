//! Models: windows, outputs, prices, cache rules and capabilities, as dated data.

mod counting;
mod price;

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use thiserror::Error;

pub use counting::Counting;
pub use price::{Cost, cost, cost_of_reply, cost_with_read_share, iterations};

use crate::request::Ttl;
use crate::session::Millis;
use crate::settings::scale_tokens;

/// Who serves a model; decides cache rules and error words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Anthropic.
    Anthropic,
    /// OpenAI.
    Openai,
    /// Google Gemini, over its OpenAI-compatible endpoint.
    Gemini,
    /// DeepSeek, over its OpenAI-compatible endpoint.
    Deepseek,
    /// xAI, over its OpenAI-compatible endpoint.
    Xai,
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
/// (`[cache.*]` in `models.toml`).
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
/// (`[wire.*]` in `models.toml`), and a model adds its own.
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
    /// Prompt cache.
    pub cache: CacheRule,
    /// Prices.
    pub prices: Prices,
    /// What the provider can do for it.
    #[serde(default)]
    pub capabilities: Capabilities,
    /// Modelled latency.
    pub latency: Latency,
    /// Where the figures come from, with a date.
    pub source: String,
}

/// No model of that name.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no model `{name}`; {hint}")]
pub struct UnknownModel {
    /// What was asked for.
    pub name: String,
    /// Nearest names.
    pub hint: String,
}

/// The model of a run without `--model`.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-6";

impl Model {
    /// The model with its limits multiplied by a scenario's scale. Prices and latencies per token
    /// stay.
    pub fn scaled(&self, scale: f64) -> Model {
        Model {
            window: scale_tokens(self.window, scale),
            max_output: scale_tokens(self.max_output, scale),
            input_limit: self.input_limit.map(|n| scale_tokens(n, scale)),
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

    /// Whether anybody knows what it costs.
    pub fn is_priced(&self) -> bool {
        self.prices != Prices::default()
    }
}

/// All models, in the order of the data file.
pub fn catalogue() -> &'static [Model] {
    static ALL: OnceLock<Vec<Model>> = OnceLock::new();
    ALL.get_or_init(|| read(include_str!("models.toml")).expect("models.toml is checked by a test"))
}

/// Reads the data file: a model's `cache` names one of the rules and may override its parameters;
/// its capabilities add to those of its wire.
fn read(text: &str) -> Result<Vec<Model>, String> {
    let mut file: toml::Table = toml::from_str(text).map_err(|e| e.to_string())?;
    let models = file.remove("model").and_then(|m| m.try_into::<Vec<toml::Table>>().ok());
    let part = |of: &str, name: &str| file.get(of)?.get(name)?.as_table().cloned();
    let resolved = models.ok_or("no tables [[model]]")?.into_iter().map(|mut m| {
        let word = |v: Option<&toml::Value>| v.and_then(toml::Value::as_str).map(str::to_string);
        let table = |m: &mut toml::Table, key: &str| match m.remove(key) {
            Some(toml::Value::Table(t)) => t,
            _ => toml::Table::new(),
        };
        let mut own = table(&mut m, "cache");
        let rule = word(own.remove("rule").as_ref()).ok_or("a cache without rule")?;
        let mut cache = part("cache", &rule).ok_or_else(|| format!("no rule [cache.{rule}]"))?;
        cache.extend(own);
        let wire = word(m.get("wire")).ok_or("a model without wire")?;
        let mut can = part("wire", &wire).unwrap_or_default();
        can.extend(table(&mut m, "capabilities"));
        m.extend([("cache".into(), cache.into()), ("capabilities".into(), can.into())]);
        let model = m.try_into::<Model>().map_err(|e| e.to_string())?;
        let counting = Counting::of(model.provider);
        Ok(Model { published_output: model.max_output, counting, ..model })
    });
    resolved.collect()
}

/// A model by name.
pub fn find(name: &str) -> Result<&'static Model, UnknownModel> {
    catalogue().iter().find(|m| &*m.name == name).ok_or_else(|| {
        let names: Vec<&str> = catalogue().iter().map(|m| &*m.name).collect();
        UnknownModel { name: name.into(), hint: crate::nearest::hint(name, &names) }
    })
}

/// The model that a name in a recording stands for: exactly, or without a date or a gateway's
/// prefix and suffix (`claude-sonnet-4-5-20250929`, `anthropic.claude-sonnet-4-5-20250929-v1:0`).
/// The longest name of the catalogue in it wins.
pub fn find_recorded(name: &str) -> Option<&'static Model> {
    find(name).ok().or_else(|| {
        let whole = |m: &&Model| {
            name.match_indices(&*m.name).any(|(at, found)| {
                let (before, after) = (&name[..at], &name[at + found.len()..]);
                let is_date =
                    |s: &str| s.len() >= 8 && s.as_bytes()[..8].iter().all(u8::is_ascii_digit);
                let ends = after.is_empty()
                    || after.starts_with(['@', ':', '['])
                    || after.strip_prefix('-').is_some_and(is_date);
                ends && (before.is_empty() || before.ends_with(['.', '/']))
            })
        };
        catalogue().iter().filter(whole).max_by_key(|m| m.name.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_sound() {
        let mut names: Vec<&str> = catalogue().iter().map(|m| &*m.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), catalogue().len(), "names are unique");
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        for m in catalogue() {
            let weak = find(&m.weak).unwrap();
            assert_eq!(weak.provider, m.provider, "{}", m.name);
            assert!(m.is_priced(), "{}", m.name);
            let p = &m.prices;
            assert!(
                [p.input, p.write_5m, p.write_1h, p.read, p.output].iter().all(|x| *x > 0.0),
                "{}",
                m.name
            );
            assert!(p.read < p.input && p.input < p.output && !m.source.is_empty(), "{}", m.name);
            assert!(
                m.max_output < m.window && m.input_limit.is_none_or(|l| l < m.window),
                "{}",
                m.name
            );
            assert_eq!(
                m.cache.needs_breakpoints(),
                m.provider == Provider::Anthropic,
                "{}",
                m.name
            );
            assert!(m.cache.minimum > 0 && m.cache.step > 0 && m.cache.short_ms > 0, "{}", m.name);
            // docs/sources/anthropic-api.md §2.1 and docs/sources/providers.md §3: 1.25 times for
            // the short lifetime; twice (Anthropic) or 2.5 times (OpenAI) for the long.
            let (short, long) = match (m.cache.write_fee, m.provider) {
                (true, Provider::Anthropic) => (1.25, 2.0),
                (true, _) => (1.25, 2.5),
                (false, _) => (1.0, 1.0),
            };
            assert!(
                close(p.write_5m, short * p.input) && close(p.write_1h, long * p.input),
                "{}",
                m.name
            );
        }
        assert_eq!(find(DEFAULT_MODEL).unwrap().window, 200_000);
        assert!(find("claude-sonet-4-6").unwrap_err().to_string().contains(DEFAULT_MODEL));
    }

    #[test]
    fn recorded_names_find_their_model() {
        let name = |n: &str| find_recorded(n).map(|m| &*m.name);
        assert_eq!(name("claude-sonnet-4-5-20250929"), Some("claude-sonnet-4-5"));
        assert_eq!(name("us.anthropic.claude-sonnet-4-5-20250929-v1:0"), Some("claude-sonnet-4-5"));
        assert_eq!(name("claude-opus-4-6[1m]"), Some("claude-opus-4-6"));
        assert_eq!(name("gpt-5.1"), Some("gpt-5.1"));
        assert_eq!(name("gpt-5.1-codex"), None, "another model of the family is not this one");
        assert_eq!(name("mystery-1"), None);
    }

    #[test]
    fn every_price_list_of_the_facts_is_there() {
        // docs/sources/providers.md §3 and §4: in / cached / out.
        for (name, input, read, output) in [
            ("gpt-6-astra", 10.0, 1.0, 50.0),
            ("gpt-6.1-sol", 2.0, 0.1, 10.0),
            ("gpt-5.6-luna", 0.2, 0.02, 1.2),
            ("gemini-2.5-pro", 1.25, 0.125, 10.0),
            ("gemini-3.5-flash", 1.5, 0.15, 9.0),
            ("deepseek-v4-flash", 0.3, 0.006, 1.2),
            ("deepseek-chat", 0.28, 0.028, 0.42),
            ("grok-4.7", 2.0, 0.5, 6.0),
            ("grok-code-fast-1", 1.0, 0.2, 2.0),
        ] {
            let p = find(name).unwrap().prices;
            assert_eq!((p.input, p.read, p.output), (input, read, output), "{name}");
        }
    }

    #[test]
    fn the_assumed_latency_fits_the_compactions_that_were_timed() {
        let l = find(DEFAULT_MODEL).unwrap().latency;
        // Warm, 186,805 tokens in, 4,413 out: 25-28 s seen.
        let warm = l.a_ms + l.c_ms * 186_805.0 + l.d_ms * 4_413.0;
        assert!((24_000.0..29_000.0).contains(&warm), "{warm}");
    }
}
