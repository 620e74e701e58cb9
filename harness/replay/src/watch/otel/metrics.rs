//! Exported metrics: those of Claude Code that depend on the strategy, and those of the GenAI
//! conventions (docs/sources/opentelemetry.md §5).

use std::collections::BTreeMap;

use ctxbench_core::model::{self, Provider};
use ctxbench_kit::monitor::SessionMeter;

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum InstrumentKind {
    /// A monotonic sum.
    Counter,
    /// A histogram with these upper bounds.
    Histogram(&'static [f64]),
}

/// A metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instrument {
    pub name: &'static str,
    /// Unit in the notation of the conventions.
    pub unit: &'static str,
    /// Description.
    pub help: &'static str,
    pub kind: InstrumentKind,
}

/// Bucket bounds of token counts: powers of 4 up to 67,108,864 (docs/sources/opentelemetry.md §5).
const TOKENS: [f64; 14] = bounds(1.0, 4.0);

/// Bucket bounds of durations in s: doubling from 10 ms (GenAI conventions,
/// `gen_ai.client.operation.duration`).
const SECONDS: [f64; 14] = bounds(0.01, 2.0);

const fn bounds(first: f64, factor: f64) -> [f64; 14] {
    let mut all = [first; 14];
    let mut i = 1;
    while i < all.len() {
        all[i] = all[i - 1] * factor;
        i += 1;
    }
    all
}

const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Instrument {
    Instrument { name, unit, help, kind: InstrumentKind::Counter }
}

/// All exported metrics.
pub(super) const INSTRUMENTS: [Instrument; 6] = [
    counter("claude_code.session.count", "count", "Sessions"),
    counter("claude_code.cost.usage", "USD", "Cost of requests"),
    counter("claude_code.token.usage", "tokens", "Tokens of requests"),
    counter("claude_code.active_time.total", "s", "Working time of the agent"),
    Instrument {
        name: "gen_ai.client.token.usage",
        unit: "{token}",
        help: "Tokens per request",
        kind: InstrumentKind::Histogram(&TOKENS),
    },
    Instrument {
        name: "gen_ai.client.operation.duration",
        unit: "s",
        help: "Duration per request",
        kind: InstrumentKind::Histogram(&SECONDS),
    },
];

/// Attributes of a series, sorted by name.
pub(super) type Attributes = Vec<(&'static str, String)>;

/// A series of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HistogramSeries {
    pub(super) count: u64,
    pub(super) sum: f64,
    /// Number of values per bucket; the last bucket is above all bounds.
    pub(super) buckets: Vec<u64>,
}

/// Values since the start by metric and attributes.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(super) sums: BTreeMap<(&'static str, Attributes), f64>,
    pub(super) histograms: BTreeMap<(&'static str, Attributes), HistogramSeries>,
}

impl Metrics {
    /// Adds a finished session.
    pub fn add_session(&mut self, session: &str, meter: &SessionMeter) {
        let id = [("session.id", session)];
        let attributes = |more: &[(&'static str, &str)]| sorted(more.iter().chain(&id));
        self.add("claude_code.session.count", attributes(&[("start_type", "fresh")]), 1.0);
        // A session does not record when the user typed, so the series of type `user` is omitted.
        self.add(
            "claude_code.active_time.total",
            attributes(&[("type", "cli")]),
            meter.active_ms as f64 / 1_000.0,
        );
        for c in &meter.calls {
            let call = [("model", &*c.model), ("query_source", c.source.name())];
            self.add("claude_code.cost.usage", attributes(&call), c.cost_usd);
            let u = &c.usage;
            let kinds = [
                ("input", u.input),
                ("output", u.output),
                ("cacheRead", u.cache_read),
                ("cacheCreation", u.cache_write + u.cache_write_1h),
            ];
            for (kind, n) in kinds {
                self.add(
                    "claude_code.token.usage",
                    attributes(&[call[0], call[1], ("type", kind)]),
                    n as f64,
                );
            }
            let gen_ai: Vec<(&'static str, &str)> =
                [("gen_ai.operation.name", "chat"), ("gen_ai.request.model", &*c.model)]
                    .into_iter()
                    .chain(provider_name(&c.model).map(|p| ("gen_ai.provider.name", p)))
                    .collect();
            let plain = |more: &[(&'static str, &str)]| sorted(gen_ai.iter().chain(more));
            self.record(
                "gen_ai.client.operation.duration",
                plain(&[]),
                c.took_ms as f64 / 1_000.0,
                &SECONDS,
            );
            for (kind, n) in [("input", u.prompt()), ("output", u.output)] {
                self.record(
                    "gen_ai.client.token.usage",
                    plain(&[("gen_ai.token.type", kind)]),
                    n as f64,
                    &TOKENS,
                );
            }
        }
    }

    fn add(&mut self, name: &'static str, attributes: Attributes, value: f64) {
        *self.sums.entry((name, attributes)).or_default() += value;
    }

    fn record(&mut self, name: &'static str, attributes: Attributes, value: f64, bounds: &[f64]) {
        let d = self.histograms.entry((name, attributes)).or_default();
        d.buckets.resize(bounds.len() + 1, 0);
        // A bucket includes its upper bound and excludes its lower one.
        d.buckets[bounds.iter().take_while(|b| value > **b).count()] += 1;
        d.count += 1;
        d.sum += value;
    }
}

fn sorted<'a>(pairs: impl Iterator<Item = &'a (&'static str, &'a str)>) -> Attributes {
    let mut all: Attributes = pairs.map(|(k, v)| (*k, v.to_string())).collect();
    all.sort();
    all
}

/// Returns the `gen_ai.provider.name` of a model, or `None` if it is not in the catalogue.
fn provider_name(model: &str) -> Option<&'static str> {
    Some(match model::find(model).ok()?.provider {
        Provider::Anthropic => "anthropic",
        Provider::Openai => "openai",
        Provider::Gemini => "gcp.gemini",
        Provider::Deepseek => "deepseek",
        Provider::Xai => "x_ai",
        Provider::Other => "_OTHER",
    })
}
