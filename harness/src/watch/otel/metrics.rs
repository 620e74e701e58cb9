//! What is counted, under the names that dashboards know: Claude Code's eight and those of the
//! GenAI conventions (docs/sources/opentelemetry.md §5).

use std::collections::BTreeMap;

use ctxbench_core::model::{self, Provider};
use ctxbench_kit::monitor::SessionMeter;

/// How an instrument adds up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A sum that only grows.
    Counter,
    /// A distribution with these upper bounds.
    Histogram(&'static [f64]),
}

/// One metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instrument {
    /// Name.
    pub name: &'static str,
    /// Unit, as the conventions write it.
    pub unit: &'static str,
    /// For people.
    pub help: &'static str,
    /// Kind.
    pub kind: Kind,
}

/// Bounds of token counts: powers of 4 up to 67,108,864 (docs/sources/opentelemetry.md §5).
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Bounds of durations in s: doubling from 10 ms (GenAI conventions,
/// `gen_ai.client.operation.duration`).
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

const fn counter(name: &'static str, unit: &'static str, help: &'static str) -> Instrument {
    Instrument { name, unit, help, kind: Kind::Counter }
}

/// Every metric that is exported.
pub(super) const INSTRUMENTS: [Instrument; 10] = [
    counter("claude_code.session.count", "count", "Sessions"),
    counter("claude_code.lines_of_code.count", "count", "Lines that edit tools added or removed"),
    counter("claude_code.pull_request.count", "count", "Pull requests asked for"),
    counter("claude_code.commit.count", "count", "Commits asked for"),
    counter("claude_code.cost.usage", "USD", "Cost of requests"),
    counter("claude_code.token.usage", "tokens", "Tokens of requests"),
    counter(
        "claude_code.code_edit_tool.decision",
        "count",
        "Calls of edit tools that were let through",
    ),
    counter("claude_code.active_time.total", "s", "Time in which the agent worked"),
    Instrument {
        name: "gen_ai.client.token.usage",
        unit: "{token}",
        help: "Tokens of one request",
        kind: Kind::Histogram(&TOKENS),
    },
    Instrument {
        name: "gen_ai.client.operation.duration",
        unit: "s",
        help: "Duration of one request",
        kind: Kind::Histogram(&SECONDS),
    },
];

/// Attributes of a series, sorted by name.
pub(super) type Attributes = Vec<(&'static str, String)>;

/// One series of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Distribution {
    pub(super) count: u64,
    pub(super) sum: f64,
    /// Values per bucket, the last one above all bounds.
    pub(super) buckets: Vec<u64>,
}

/// What was counted since the start, by metric and attributes.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub(super) sums: BTreeMap<(&'static str, Attributes), f64>,
    pub(super) distributions: BTreeMap<(&'static str, Attributes), Distribution>,
}

impl Metrics {
    /// Adds a finished session.
    pub fn add_session(&mut self, session: &str, meter: &SessionMeter) {
        let own = |more: &[(&'static str, &str)]| -> Attributes {
            let all = more
                .iter()
                .map(|(k, v)| (*k, v.to_string()))
                .chain([("session.id", session.to_string())]);
            let mut all: Attributes = all.collect();
            all.sort();
            all
        };
        self.add("claude_code.session.count", own(&[("start_type", "fresh")]), 1.0);
        let lines = meter.changed();
        for (kind, n) in [("added", lines.added), ("removed", lines.removed)] {
            self.add("claude_code.lines_of_code.count", own(&[("type", kind)]), n as f64);
        }
        self.add("claude_code.commit.count", own(&[]), meter.commits() as f64);
        self.add("claude_code.pull_request.count", own(&[]), meter.pull_requests() as f64);
        for (edit, n) in meter.edits() {
            // A replayed call was let through, whatever came of it; nobody was asked.
            let what = [
                ("tool_name", edit.tool.as_str()),
                ("language", &edit.language),
                ("decision", "accept"),
                ("source", "config"),
            ];
            self.add("claude_code.code_edit_tool.decision", own(&what), n as f64);
        }
        // When a user typed is not in a session, so there is no series of type user.
        self.add(
            "claude_code.active_time.total",
            own(&[("type", "cli")]),
            meter.active_ms() as f64 / 1_000.0,
        );
        for c in meter.calls() {
            let of = [("model", &*c.model), ("query_source", c.source.word())];
            self.add("claude_code.cost.usage", own(&of), c.cost_usd);
            let u = &c.usage;
            let kinds = [
                ("input", u.input),
                ("output", u.output),
                ("cacheRead", u.cache_read),
                ("cacheCreation", u.cache_write + u.cache_write_1h),
            ];
            for (kind, n) in kinds {
                self.add("claude_code.token.usage", own(&[of[0], of[1], ("type", kind)]), n as f64);
            }
            let gen_ai: Vec<(&'static str, &str)> =
                [("gen_ai.operation.name", "chat"), ("gen_ai.request.model", &*c.model)]
                    .into_iter()
                    .chain(provider_name(&c.model).map(|p| ("gen_ai.provider.name", p)))
                    .collect();
            let plain = |more: &[(&'static str, &str)]| -> Attributes {
                let mut all: Attributes =
                    gen_ai.iter().chain(more).map(|(k, v)| (*k, v.to_string())).collect();
                all.sort();
                all
            };
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
        let d = self.distributions.entry((name, attributes)).or_default();
        d.buckets.resize(bounds.len() + 1, 0);
        // A bucket holds what is above the bound before it, up to and with its own.
        d.buckets[bounds.iter().take_while(|b| value > **b).count()] += 1;
        d.count += 1;
        d.sum += value;
    }
}

/// `gen_ai.provider.name` of a model; `None` for models that are not in the catalogue.
fn provider_name(model: &str) -> Option<&'static str> {
    Some(match model::find(model).ok()?.provider {
        Provider::Anthropic => "anthropic",
        Provider::Openai => "openai",
        Provider::Gemini => "gcp.gemini",
        Provider::Deepseek => "deepseek",
        Provider::Xai => "x_ai",
    })
}
