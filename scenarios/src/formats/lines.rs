//! Lines of a recording, and reading fields of them.

use serde_json::{Map, Value};

use super::recording::Recording;
use crate::jsonl::numbered;

/// One JSON object of a recording.
#[derive(Clone, Debug)]
pub struct RecordedLine {
    /// From 1.
    pub number: usize,
    pub object: Map<String, Value>,
}

/// The objects of a format with one on each line. Broken lines are left out, and noted in the
/// recording.
pub(super) fn of_lines(text: &str, file: &str, notes: &mut Recording) -> Vec<RecordedLine> {
    let mut out = Vec::new();
    let mut lines = numbered(text).peekable();
    while let Some((number, content)) = lines.next() {
        match serde_json::from_str(content) {
            Ok(object) => out.push(RecordedLine { number, object }),
            Err(e) if lines.peek().is_none() && e.is_eof() => {
                notes.warnings.push(format!(
                    "{file}:{number}: the last line breaks off; what stands before it is used"
                ));
            }
            Err(e) => {
                let what = format!("not a JSON object ({e})");
                notes.warnings.push(format!("{file}:{number}: {what}; left out"));
                notes.broken.get_or_insert((number, what));
            }
        }
    }
    out
}

/// The first objects of a text, for sniffing.
pub(super) fn first_objects(text: &str) -> impl Iterator<Item = Map<String, Value>> {
    numbered(text).take(20).filter_map(|(_, l)| serde_json::from_str(l).ok())
}

pub(super) fn str_of<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

pub(super) fn string(object: &Map<String, Value>, key: &str) -> Option<String> {
    str_of(object, key).map(str::to_string)
}

pub(super) fn flag(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_lines_are_reported_and_the_rest_is_kept() {
        let mut notes = Recording::default();
        let lines = of_lines("{\"a\":1}\nnoise\n\n{\"b\":2}\n{\"c\":", "r.jsonl", &mut notes);
        assert_eq!(lines.iter().map(|l| l.number).collect::<Vec<_>>(), [1, 4]);
        let warnings = notes.warnings;
        assert!(warnings[0].starts_with("r.jsonl:2: not a JSON object"), "{warnings:?}");
        assert!(warnings[1].starts_with("r.jsonl:5: the last line breaks off"), "{warnings:?}");
        assert!(matches!(notes.broken, Some((2, _))));
    }
}
