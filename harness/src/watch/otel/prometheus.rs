//! Prometheus's text format, with names as the OpenTelemetry specification maps them: dots become
//! underscores, the unit is a suffix, and a counter ends in `_total`.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Resource;
use super::json::of;
use super::metrics::{Attributes, INSTRUMENTS, Instrument, Kind, Metrics};

/// All metrics that have a series, and as `target_info` where they come from.
pub(super) fn text(metrics: &Metrics, resource: &Resource) -> String {
    let mut out = String::new();
    // Of keys that have one name here the last counts: a label may stand once.
    let named: BTreeMap<String, &str> = resource.0.iter().map(|(k, v)| (label(k), &**v)).collect();
    let source = named.iter().map(|(k, v)| (&**k, *v));
    let _ = writeln!(out, "# TYPE target_info gauge\ntarget_info{} 1", labels(source));
    for i in &INSTRUMENTS {
        let (name, mut series) = (name(i), String::new());
        match i.kind {
            Kind::Counter => of(&metrics.sums, i.name)
                .for_each(|(a, x)| line(&mut series, &name, "", &labels(own(a)), *x)),
            Kind::Histogram(bounds) => {
                for (a, d) in of(&metrics.distributions, i.name) {
                    let mut up_to = 0;
                    for (n, b) in d
                        .buckets
                        .iter()
                        .zip(bounds.iter().map(f64::to_string).chain(["+Inf".into()]))
                    {
                        up_to += n;
                        line(
                            &mut series,
                            &name,
                            "_bucket",
                            &labels(own(a).chain([("le", &*b)])),
                            up_to as f64,
                        );
                    }
                    line(&mut series, &name, "_sum", &labels(own(a)), d.sum);
                    line(&mut series, &name, "_count", &labels(own(a)), d.count as f64);
                }
            }
        }
        if !series.is_empty() {
            let kind = if i.kind == Kind::Counter { "counter" } else { "histogram" };
            let _ = write!(out, "# HELP {name} {}\n# TYPE {name} {kind}\n{series}", i.help);
        }
    }
    out
}

fn line(out: &mut String, name: &str, suffix: &str, labels: &str, value: f64) {
    let _ = writeln!(out, "{name}{suffix}{labels} {value}");
}

fn name(i: &Instrument) -> String {
    let mut name = i.name.replace('.', "_");
    let counter = i.kind == Kind::Counter;
    if counter {
        name = name.strip_suffix("_total").map_or(name.clone(), str::to_string);
    }
    // Units in braces are remarks, and a count of things has none.
    let unit = match i.unit {
        "s" => "seconds",
        "count" => "",
        u if u.starts_with('{') => "",
        u => u,
    };
    if !unit.is_empty() && !name.ends_with(unit) {
        name = format!("{name}_{unit}");
    }
    if counter { format!("{name}_total") } else { name }
}

fn own(attributes: &Attributes) -> impl Iterator<Item = (&str, &str)> {
    attributes.iter().map(|(k, v)| (*k, &**v))
}

fn label(key: &str) -> String {
    key.replace(|c: char| !c.is_ascii_alphanumeric(), "_")
}

fn labels<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let escaped = |v: &str| v.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all: Vec<String> = all.map(|(k, v)| format!("{}=\"{}\"", label(k), escaped(v))).collect();
    if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
}
