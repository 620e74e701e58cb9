//! Lines of a recording, and reading fields of them.

use ctxbench_scenarios::InputError;
use serde_json::{Map, Value};

/// One JSON object of a recording.
pub(super) struct Line {
    pub(super) number: usize,
    pub(super) object: Map<String, Value>,
}

/// The objects of a recording. A last line that breaks off is left out with a warning; any other broken line is an error, because the
/// calls around a lost one would be compared wrongly.
pub(super) fn lines(text: &str, file: &str, warnings: &mut Vec<String>) -> Result<Vec<Line>, InputError> {
    let mut out = Vec::new();
    let mut all = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()).peekable();
    while let Some((i, content)) = all.next() {
        match serde_json::from_str(content) {
            Ok(object) => out.push(Line { number: i + 1, object }),
            Err(e) if all.peek().is_none() && e.is_eof() => {
                warnings.push(format!("{file}:{}: the last line breaks off; what stands before it is used", i + 1));
            }
            Err(e) => {
                let what = format!("not a JSON object ({e})");
                return Err(wrong(file, i + 1, what, "one JSON object per line, as the program wrote it"));
            }
        }
    }
    Ok(out)
}

pub(super) fn wrong(file: &str, line: usize, what: String, expected: &str) -> InputError {
    let fix = "give the recording as the program wrote it".to_string();
    InputError { file: file.into(), line, what, expected: expected.into(), fix }
}

pub(super) fn text_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

pub(super) fn flag(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// A counter; absent and null are 0, anything else than a number of tokens is an error.
pub(super) fn count(usage: &Value, key: &str, file: &str, line: usize) -> Result<u64, InputError> {
    const MOST: u64 = 1 << 40;
    match usage.get(key) {
        None | Some(Value::Null) => Ok(0),
        Some(v) => {
            v.as_u64().filter(|n| *n <= MOST).ok_or_else(|| wrong(file, line, format!("{key} is {v}"), "a number of tokens, 0 or more"))
        }
    }
}

/// Milliseconds since 1970 of an RFC 3339 stamp.
pub(super) fn millis(stamp: &str) -> Option<i64> {
    ctxbench_scenarios::import::millis(stamp)
}
