//! Sessions in JSONL.

use serde_json::Value;

/// Writes one JSON object per line.
pub fn jsonl(lines: &[Value]) -> String {
    lines.iter().map(|l| format!("{l}\n")).collect()
}
