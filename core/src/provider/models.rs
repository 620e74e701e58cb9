//! Models: windows, outputs, prices, cache rules and capabilities, as dated data.

use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use thiserror::Error;

use crate::settings::scale_tokens;

/// Who serves a model; decides cache rules and error words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Anthropic.
    Anthropic,
    /// OpenAI.
    Openai,
}

/// The format of requests and replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// `POST /v1/messages`.
    AnthropicMessages,
    /// `POST /v1/responses`.
    OpenaiResponses,
    /// `POST /v1/chat/completions`.
    OpenaiChat,
}

/// How a provider's prompt cache behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "rule")]
pub enum CacheRule {
    /// Breakpoints set by the client; writes only there, reads up to `lookback` positions before them.
    Explicit {
        /// Smallest prefix that is cached, tokens.
        minimum: u64,
        /// Most breakpoints in a request.
        breakpoints: usize,
        /// Positions checked per breakpoint, itself included.
        lookback: usize,
    },
    /// The provider caches every prompt by itself; hits in steps.
    Automatic {
        /// Smallest prefix that can hit, tokens.
        minimum: u64,
        /// Hits are whole multiples of this many tokens.
        step: u64,
        /// Idle lifetime, ms.
        ttl_ms: u64,
    },
}

/// USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Prices {
    /// Uncached input.
    pub input: f64,
    /// Cache write, five minutes.
    pub write_5m: f64,
    /// Cache write, one hour.
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

/// What a model's provider can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// A free counting endpoint.
    pub counting: bool,
    /// Clears old tool results on its side.
    pub context_editing: bool,
    /// Summarises on its side.
    pub server_compaction: bool,
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
    /// Default wire format.
    pub wire: Wire,
    /// Context window, tokens.
    pub window: u64,
    /// Largest reply, tokens.
    pub max_output: u64,
    /// Separate limit on input, tokens.
    #[serde(default)]
    pub input_limit: Option<u64>,
    /// Cheaper model of the same provider that products use for side work.
    pub weak: Arc<str>,
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
    /// The model with its limits multiplied by a scenario's scale. Prices and latencies per token stay.
    pub fn scaled(&self, scale: f64) -> Model {
        Model {
            window: scale_tokens(self.window, scale),
            max_output: scale_tokens(self.max_output, scale),
            input_limit: self.input_limit.map(|n| scale_tokens(n, scale)),
            ..self.clone()
        }
    }
}

/// All models, in the order of the data file.
pub fn catalogue() -> &'static [Model] {
    #[derive(Deserialize)]
    struct File {
        model: Vec<Model>,
    }
    static ALL: OnceLock<Vec<Model>> = OnceLock::new();
    ALL.get_or_init(|| toml::from_str::<File>(include_str!("models.toml")).expect("models.toml is checked by a test").model)
}

/// A model by name.
pub fn find(name: &str) -> Result<&'static Model, UnknownModel> {
    catalogue().iter().find(|m| &*m.name == name).ok_or_else(|| {
        let names: Vec<&str> = catalogue().iter().map(|m| &*m.name).collect();
        UnknownModel { name: name.into(), hint: crate::nearest::hint(name, &names) }
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
            let p = &m.prices;
            assert!([p.input, p.write_5m, p.write_1h, p.read, p.output].iter().all(|x| *x > 0.0), "{}", m.name);
            assert!(p.read < p.input && p.input < p.output && !m.source.is_empty(), "{}", m.name);
            assert!(m.max_output < m.window && m.input_limit.is_none_or(|l| l < m.window), "{}", m.name);
            let explicit = matches!(m.cache, CacheRule::Explicit { .. });
            assert_eq!(explicit, m.provider == Provider::Anthropic, "{}", m.name);
            if explicit {
                assert!(close(p.write_5m, 1.25 * p.input) && close(p.write_1h, 2.0 * p.input), "{}", m.name);
            }
        }
        assert_eq!(find(DEFAULT_MODEL).unwrap().window, 200_000);
        assert!(find("claude-sonet-4-6").unwrap_err().to_string().contains(DEFAULT_MODEL));
    }

    #[test]
    fn the_assumed_latency_fits_the_compactions_that_were_timed() {
        let l = find(DEFAULT_MODEL).unwrap().latency;
        // Warm, 186,805 tokens in, 4,413 out: 25-28 s seen.
        let warm = l.a_ms + l.c_ms * 186_805.0 + l.d_ms * 4_413.0;
        assert!((24_000.0..29_000.0).contains(&warm), "{warm}");
    }
}
