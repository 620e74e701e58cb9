//! Formats a case with one item, event or request per line, so that two versions can be compared.

use serde_json::{Value, json};

use crate::conform::Case;

pub(super) fn text(case: &Case) -> String {
    let lists = [
        ("fixed", &case.fixed),
        ("events", &case.events),
        ("items", &case.items),
        ("requests", &case.requests),
    ];
    let mut members: Vec<String> = [
        ("kind", json!(case.kind)),
        ("agent", json!(case.agent)),
        ("version", json!(case.version)),
        ("name", json!(case.name)),
        ("shows", json!(case.shows)),
        ("settings", json!(case.settings)),
        ("constants", json!(case.constants)),
    ]
    .into_iter()
    .map(|(name, value)| format!("{}:{value}", json!(name)))
    .collect();
    for (name, list) in lists {
        let lines: Vec<String> = list.iter().map(Value::to_string).collect();
        members.push(format!("{}:[\n{}\n]", json!(name), lines.join(",\n")));
    }
    if let Some(outcome) = &case.outcome {
        members.push(format!("\"outcome\":{outcome}"));
    }
    format!("{{\n{}\n}}\n", members.join(",\n"))
}
