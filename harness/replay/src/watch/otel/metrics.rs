//! Exported metrics: those of Claude Code that depend on the strategy, and those of the GenAI
//! conventions (docs/sources/opentelemetry.md §5), in OTLP's JSON. 64-bit integers are strings, as in
//! protobuf's JSON mapping.

use std::collections::BTreeMap;

use ctxbench_core::model::{self, Provider};
use ctxbench_kit::monitor::SessionMeter;
use serde::Serialize;
use serde_json::{Value, json};

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

/// The metrics: name, unit in the notation of the conventions, description, and upper bounds of a
/// histogram. The others are monotonic sums.
const INSTRUMENTS: [(&str, &str, &str, Option<[f64; 14]>); 6] = [
    ("claude_code.session.count", "count", "Sessions", None),
    ("claude_code.cost.usage", "USD", "Cost of requests", None),
    ("claude_code.token.usage", "tokens", "Tokens of requests", None),
    ("claude_code.active_time.total", "s", "Working time of the agent", None),
    ("gen_ai.client.token.usage", "{token}", "Tokens per request", Some(TOKENS)),
    ("gen_ai.client.operation.duration", "s", "Duration per request", Some(SECONDS)),
];

/// Attributes of a series, sorted by name.
type Attributes = BTreeMap<&'static str, String>;

/// Values of one metric with the same attributes.
#[derive(Clone, Debug, Default)]
struct Series {
    count: u64,
    sum: f64,
    /// Number of values per bucket; the last bucket is above all bounds.
    buckets: [u64; 15],
}

/// Values since the start by metric and attributes.
#[derive(Clone, Debug, Default)]
pub struct Metrics(BTreeMap<(&'static str, Attributes), Series>);

impl Metrics {
    pub fn add_session(&mut self, session: &str, meter: &SessionMeter) {
        let own =
            |more: &[(&'static str, &str)]| named(&[&[("session.id", session)], more].concat());
        self.add("claude_code.session.count", own(&[("start_type", "fresh")]), 1.0);
        // A session does not record when the user typed, so the series of type `user` is omitted.
        let active_s = meter.active_ms as f64 / 1_000.0;
        self.add("claude_code.active_time.total", own(&[("type", "cli")]), active_s);
        for c in &meter.calls {
            let call = [("model", &*c.model), ("query_source", c.source.name())];
            self.add("claude_code.cost.usage", own(&call), c.cost_usd);
            let u = &c.usage;
            for (kind, n) in [
                ("input", u.input),
                ("output", u.output),
                ("cacheRead", u.cache_read),
                ("cacheCreation", u.cache_write + u.cache_write_1h),
            ] {
                let series = own(&[call[0], call[1], ("type", kind)]);
                self.add("claude_code.token.usage", series, n as f64);
            }
            let mut gen_ai =
                vec![("gen_ai.operation.name", "chat"), ("gen_ai.request.model", &*c.model)];
            gen_ai.extend(provider_name(&c.model).map(|p| ("gen_ai.provider.name", p)));
            let took_s = c.took_ms as f64 / 1_000.0;
            self.add("gen_ai.client.operation.duration", named(&gen_ai), took_s);
            for (kind, n) in [("input", u.prompt()), ("output", u.output)] {
                let series = named(&[&gen_ai[..], &[("gen_ai.token.type", kind)]].concat());
                self.add("gen_ai.client.token.usage", series, n as f64);
            }
        }
    }

    fn add(&mut self, name: &'static str, attributes: Attributes, value: f64) {
        let series = self.0.entry((name, attributes)).or_default();
        series.count += 1;
        series.sum += value;
        let bounds = INSTRUMENTS.iter().find(|i| i.0 == name).and_then(|i| i.3);
        // A bucket includes its upper bound and excludes its lower one.
        let bucket = bounds.map_or(0, |all| all.iter().take_while(|b| value > **b).count());
        series.buckets[bucket] += 1;
    }

    /// Returns the body of an `ExportMetricsServiceRequest` for metrics between two Unix times in ms.
    /// Leaves out metrics without data.
    pub(super) fn body(
        &self,
        resource: &BTreeMap<String, String>,
        start_ms: u64,
        now_ms: u64,
    ) -> String {
        let time = |ms: u64| format!("{ms}000000");
        let metric = |(name, unit, help, bounds): (&str, &str, &str, Option<[f64; 14]>)| {
            let own = self.0.iter().filter(|((of, _), _)| *of == name);
            let points = own.map(|((_, attributes), s)| {
                let mut point = json!({
                    "attributes": pairs(attributes),
                    "startTimeUnixNano": time(start_ms),
                    "timeUnixNano": time(now_ms),
                });
                match bounds {
                    None => point["asDouble"] = s.sum.into(),
                    Some(bounds) => {
                        point["count"] = s.count.to_string().into();
                        point["sum"] = s.sum.into();
                        point["bucketCounts"] = s.buckets.iter().map(u64::to_string).collect();
                        point["explicitBounds"] = bounds.as_slice().into();
                    }
                }
                point
            });
            let points: Vec<Value> = points.collect();
            let is_empty = points.is_empty();
            // `AGGREGATION_TEMPORALITY_CUMULATIVE`: values since the start.
            let mut data = json!({"dataPoints": points, "aggregationTemporality": 2});
            if bounds.is_none() {
                data["isMonotonic"] = true.into();
            }
            let kind = if bounds.is_none() { "sum" } else { "histogram" };
            (!is_empty)
                .then(|| json!({"name": name, "unit": unit, "description": help, kind: data}))
        };
        let all: Vec<Value> = INSTRUMENTS.into_iter().filter_map(metric).collect();
        let scope = json!({"name": "ctxbench", "version": env!("CARGO_PKG_VERSION")});
        json!({"resourceMetrics": [{
            "resource": {"attributes": pairs(resource)},
            "scopeMetrics": [{"scope": scope, "metrics": all}],
        }]})
        .to_string()
    }
}

fn named(pairs: &[(&'static str, &str)]) -> Attributes {
    pairs.iter().map(|(k, v)| (*k, v.to_string())).collect()
}

fn pairs<K: Serialize>(all: &BTreeMap<K, String>) -> Value {
    all.iter().map(|(k, v)| json!({"key": k, "value": {"stringValue": v}})).collect()
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
