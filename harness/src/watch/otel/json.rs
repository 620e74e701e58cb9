//! OTLP's JSON: the body of an `ExportMetricsServiceRequest`. 64-bit whole numbers are strings
//! there, as protobuf's JSON has it.

use serde_json::{Value, json};

use super::Resource;
use super::metrics::{Attributes, INSTRUMENTS, Instrument, Kind, Metrics};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: everything since the start.
const CUMULATIVE: u32 = 2;

/// The body for everything counted between two Unix times in ms. Metrics without a series are left
/// out.
pub(super) fn body(metrics: &Metrics, resource: &Resource, began_ms: u64, now_ms: u64) -> String {
    let time = |ms: u64| format!("{}000000", ms);
    let (start, now) = (time(began_ms), time(now_ms));
    let all: Vec<Value> =
        INSTRUMENTS.iter().filter_map(|i| metric(metrics, i, &start, &now)).collect();
    let resource: Vec<Value> = resource.0.iter().map(|(k, v)| attribute(k, v)).collect();
    let scope = json!({"name": "ctxbench", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceMetrics": [{
        "resource": {"attributes": resource},
        "scopeMetrics": [{"scope": scope, "metrics": all}],
    }]})
    .to_string()
}

fn metric(metrics: &Metrics, i: &Instrument, start: &str, now: &str) -> Option<Value> {
    let (kind, data) = match i.kind {
        Kind::Counter => {
            let points: Vec<Value> = of(&metrics.sums, i.name)
                .map(|(a, x)| json!({"attributes": attributes(a), "startTimeUnixNano": start, "timeUnixNano": now, "asDouble": x}))
                .collect();
            (
                "sum",
                json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true}),
            )
        }
        Kind::Histogram(bounds) => {
            let points: Vec<Value> = of(&metrics.distributions, i.name)
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

/// The series of one metric.
pub(super) fn of<'a, T>(
    all: &'a std::collections::BTreeMap<(&'static str, Attributes), T>,
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
