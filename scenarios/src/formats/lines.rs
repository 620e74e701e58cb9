//! Lines of a recording, and access to their fields.

use std::collections::BTreeSet;
use std::path::PathBuf;

use ctxbench_core::plural::pluralize;
use serde_json::{Map, Value};

use super::recording::Recording;
use super::source::Source;
use super::{Sink, companions};
use crate::error::InputError;
use crate::escapes;

/// A JSON object of a recording with its line number.
#[derive(Clone, Debug)]
pub struct RecordedLine {
    /// Line number, from 1.
    pub number: usize,
    pub object: Map<String, Value>,
}

/// Reads the objects of a format with one object per line. Broken lines are left out with a note.
/// Objects that two writers put on one line are read one by one.
pub(super) fn of_lines(
    source: &Source<'_>,
    notes: &mut Recording,
) -> Result<Vec<RecordedLine>, InputError> {
    let (mut out, mut begins) = (Vec::new(), BTreeSet::new());
    let mut lines = source.lines()?.peekable();
    let file = source.name();
    while let Some(line) = lines.next() {
        let (number, content) = line?;
        match escapes::from_str(&content) {
            Ok(object) => {
                begins.extend(begin_of(&content).map(str::to_string));
                out.push(RecordedLine { number, object });
            }
            Err(_) if let Some((objects, torn)) = joined(&content, &begins) => {
                let n = pluralize(objects.len(), "object");
                let rest = if torn { ", after one that breaks off" } else { "" };
                notes.warnings.push(format!("{file}:{number}: {n} on one line{rest}; read"));
                out.extend(objects.into_iter().map(|object| RecordedLine { number, object }));
            }
            Err(e) if lines.peek().is_none() && e.is_eof() => {
                notes.warnings.push(format!(
                    "{file}:{number}: the last line breaks off; the lines before it are used"
                ));
            }
            Err(e) => {
                let what = format!("not a JSON object ({e})");
                notes.warnings.push(format!("{file}:{number}: {what}; left out"));
                notes.broken.get_or_insert((number, what));
            }
        }
    }
    Ok(out)
}

/// Returns the beginning of an object, up to its first name.
fn begin_of(text: &str) -> Option<&str> {
    let name = text.trim_start().strip_prefix("{\"")?;
    let end = text.len() - name.len() + name.find('"')?;
    Some(&text[..=end])
}

/// Splits a line that several objects share, because two programs wrote at once or one broke off.
/// Each begins like a line before it or like the line itself. Also returns whether a part breaks
/// off; it is left out.
fn joined(text: &str, begins: &BTreeSet<String>) -> Option<(Vec<Map<String, Value>>, bool)> {
    let text = &*escapes::replace_lone_surrogates(text);
    let first = begin_of(text)?;
    let begins = || std::iter::once(first).chain(begins.iter().map(String::as_str));
    let begins_object = |at: usize| {
        let rest = text[at..].trim_start();
        rest.is_empty() || begins().any(|begin| rest.starts_with(begin))
    };
    let (mut objects, mut torn, mut from) = (Vec::new(), false, 0);
    loop {
        let mut rest = serde_json::Deserializer::from_str(&text[from..]).into_iter();
        let object = rest.next().and_then(Result::ok);
        let end = from + rest.byte_offset();
        match object.filter(|_| begins_object(end)) {
            Some(object) => {
                objects.push(object);
                from = end;
            }
            None => {
                torn = true;
                from += 1;
            }
        }
        let next = begins().filter_map(|begin| text.get(from..)?.find(begin)).min();
        let Some(next) = next else { break };
        from += next;
    }
    (!objects.is_empty()).then_some((objects, torn))
}

/// Passes on the one session of an input with an object on each line, and of its companion files,
/// merged in chronological order.
pub(super) fn session(
    source: &Source<'_>,
    beside: Vec<PathBuf>,
    sink: &mut Sink<'_>,
    read: fn(Vec<RecordedLine>, &str, &mut Recording),
) -> Result<(), InputError> {
    let mut out = Recording::default();
    let mut lines = of_lines(source, &mut out)?;
    if !beside.is_empty() {
        let others = beside.iter().map(|path| of_lines(&Source::at(path), &mut out));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        lines = companions::merged(std::iter::once(lines).chain(others));
    }
    out.last_line = lines.last().map_or(1, |l| l.number);
    out.beside = beside;
    read(lines, source.name(), &mut out);
    let _ = sink(Ok(out));
    Ok(())
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

pub(super) fn object_of<'a>(
    object: &'a Map<String, Value>,
    key: &str,
) -> Option<&'a Map<String, Value>> {
    object.get(key).and_then(Value::as_object)
}

/// Returns the items of a list, or none if there is no list.
pub(super) fn list_of<'a>(object: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the objects in a list.
pub(super) fn objects<'a>(
    object: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    list_of(object, key).iter().filter_map(Value::as_object)
}

/// Returns the first line with content.
pub(super) fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|l| !l.is_empty()).map(str::to_string)
}

#[cfg(test)]
pub(super) fn of_text(text: &str) -> Vec<RecordedLine> {
    of_lines(&Source::of_bytes(text.as_bytes(), "t"), &mut Recording::default()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_lines_are_reported_and_the_rest_is_kept() {
        let mut notes = Recording::default();
        let text = b"{\"a\":1}\nnoise\n\n{\"b\":2}\n{\"c\":";
        let lines = of_lines(&Source::of_bytes(text, "r.jsonl"), &mut notes).unwrap();
        assert_eq!(lines.iter().map(|l| l.number).collect::<Vec<_>>(), [1, 4]);
        let warnings = notes.warnings;
        assert!(warnings[0].starts_with("r.jsonl:2: not a JSON object"), "{warnings:?}");
        assert!(warnings[1].starts_with("r.jsonl:5: the last line breaks off"), "{warnings:?}");
        assert!(matches!(notes.broken, Some((2, _))));
    }

    #[test]
    fn objects_that_share_a_line_are_read_one_by_one() {
        let read = |text: &str| {
            let mut notes = Recording::default();
            let source = Source::of_bytes(text.as_bytes(), "r.jsonl");
            let lines = of_lines(&source, &mut notes).unwrap();
            let lines = lines.into_iter().map(|l| (l.number, l.object["a"].to_string()));
            (lines.collect::<Vec<_>>(), notes.warnings)
        };
        let line = |n: usize, a: &str| (n, a.to_string());
        let (lines, told) = read("{\"a\":1}{\"a\":{\"a\":2}}\n{\"a\":3}");
        assert_eq!(lines, [line(1, "1"), line(1, "{\"a\":2}"), line(2, "3")]);
        assert_eq!(told, ["r.jsonl:1: 2 objects on one line; read"]);
        // The first of two breaks off, within an object that begins like a line.
        let (lines, told) = read("{\"a\":1}\n{\"b\":[{\"a\":5},{\"a\":{\"a\":2}}");
        assert_eq!(lines, [line(1, "1"), line(2, "{\"a\":2}")]);
        assert_eq!(told, ["r.jsonl:2: 1 object on one line, after one that breaks off; read"]);
    }

    #[test]
    fn half_a_character_costs_no_line() {
        let mut notes = Recording::default();
        let text = b"{\"a\":\"cut \\ud83d\"}\n{\"b\":\"\\ude00";
        let lines = of_lines(&Source::of_bytes(text, "r.jsonl"), &mut notes).unwrap();
        assert_eq!(lines[0].object["a"], "cut \u{fffd}");
        assert_eq!(lines.len(), 1);
        assert!(notes.warnings[0].contains("the last line breaks off"), "{:?}", notes.warnings);
    }
}
