//! Sessions in JSONL.

use ctxbench_scenarios::{Scenario, jsonl as reader};
use serde_json::Value;

/// Builds a scenario from the lines of a session after its header.
pub fn session_of(lines: &str) -> Scenario {
    let head = r#"{"type":"session","version":1,"id":"test","title":"test"}"#;
    let text = format!("{head}\n{lines}\n");
    Scenario::of_session(reader::read(text.as_bytes(), "test.jsonl").unwrap())
}

/// Writes one JSON object per line.
pub fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|l| format!("{l}\n")).collect()
}
