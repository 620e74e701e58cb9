//! Sessions in JSONL.

use ctxbench_scenarios::{Scenario, jsonl as reader};
use serde_json::Value;

pub fn session_of(lines: &str) -> Scenario {
    let head = r#"{"type":"session","version":1,"id":"test","title":"test"}"#;
    let text = format!("{head}\n{lines}\n");
    Scenario::of_session(reader::read(text.as_bytes(), "test.jsonl").unwrap())
}

/// Returns a text of `n` tokens.
pub fn words(n: usize) -> String {
    "word".to_string() + &" word".repeat(n - 1)
}

pub fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|l| format!("{l}\n")).collect()
}

pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}"))).collect()
}
