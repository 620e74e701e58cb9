//! OTLP in JSON: the body of an `ExportMetricsServiceRequest`. 64-bit integers are strings, as in
//! protobuf's JSON mapping.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::metrics::{Attributes, INSTRUMENTS, Instrument, InstrumentKind, Metrics};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: values since the start.
const CUMULATIVE: u32 = 2;

/// Builds the body for metrics between two Unix times in ms. Leaves out metrics without data.
pub(super) fn body(
    metrics: &Metrics,
    resource: &BTreeMap<String, String>,
    start_ms: u64,
    now_ms: u64,
) -> String {
    let time = |ms: u64| format!("{}000000", ms);
    let (start, now) = (time(start_ms), time(now_ms));
    let all: Vec<Value> =
        INSTRUMENTS.iter().filter_map(|i| metric(metrics, i, &start, &now)).collect();
    let resource: Vec<Value> = resource.iter().map(|(k, v)| attribute(k, v)).collect();
    let scope = json!({"name": "ctxbench", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceMetrics": [{
        "resource": {"attributes": resource},
        "scopeMetrics": [{"scope": scope, "metrics": all}],
    }]})
    .to_string()
}

fn metric(metrics: &Metrics, i: &Instrument, start: &str, now: &str) -> Option<Value> {
    let (kind, data) = match i.kind {
        InstrumentKind::Counter => {
            let points: Vec<Value> = series(&metrics.sums, i.name)
                .map(|(a, x)| json!({"attributes": attributes(a), "startTimeUnixNano": start, "timeUnixNano": now, "asDouble": x}))
                .collect();
            (
                "sum",
                json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true}),
            )
        }
        InstrumentKind::Histogram(bounds) => {
            let points: Vec<Value> = series(&metrics.histograms, i.name)
                .map(|(a, d)| {
                    let buckets: Vec<String> = d.buckets.iter().map(u64::to_string).collect();
                    json!({
                        "attributes": attributes(a), "startTimeUnixNano": start, "timeUnixNano": now,
                        "count": d.count.to_string(), "sum": d.sum, "bucketCounts": buckets, "explicitBounds": bounds,
                    })
                })
                .collect();
            ("histogram", json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE}))
        }
    };
    let empty = data["dataPoints"].as_array().is_none_or(Vec::is_empty);
    (!empty).then(|| json!({"name": i.name, "unit": i.unit, "description": i.help, kind: data}))
}

/// Returns the series of a metric.
fn series<'a, T>(
    all: &'a BTreeMap<(&'static str, Attributes), T>,
    name: &'static str,
) -> impl Iterator<Item = (&'a Attributes, &'a T)> {
    all.iter().filter(move |((n, _), _)| *n == name).map(|((_, a), x)| (a, x))
}

fn attributes(all: &Attributes) -> Vec<Value> {
    all.iter().map(|(k, v)| attribute(k, v)).collect()
}

fn attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}
