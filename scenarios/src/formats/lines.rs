//! Lines of a recording, and access to their fields.

use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::LazyLock;

use ctxbench_core::tokens::content_hash;

pub(super) use ctxbench_formats::lines::ObjectLine as RecordedLine;
use ctxbench_formats::lines::{LineReader, path_to_last};
pub(super) use ctxbench_formats::{object_of, str_of};
use ctxbench_util::plural::pluralize;
use rapidhash::quality::RapidHasher;
use rapidhash::{HashSetExt, RapidHashSet as HashSet};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Error, Map, Value};

use super::format::{Ended, Sink};
use super::json::Document;
use super::plausible;
use super::recording::Recording;
use super::source::Source;
use crate::error::InputError;

/// Returns the objects of a format with one object per line; see [`each_object`].
pub(super) fn of_lines<T: LineObject>(
    source: &Source<'_>,
    notes: &mut Recording,
) -> Result<Vec<RecordedLine<T>>, InputError> {
    let mut out = Vec::new();
    each_object(source, notes, |_, line| {
        out.push(line);
        Ok(())
    })?;
    Ok(out)
}

/// Part of an object on a line that a reader needs.
pub(super) trait LineObject: DeserializeOwned + From<Map<String, Value>> {
    /// Returns when it was written.
    fn timestamp(&self) -> Option<&str>;
    /// Returns whether it has an id.
    fn is_named(&self) -> bool;
}

impl LineObject for Map<String, Value> {
    fn timestamp(&self) -> Option<&str> {
        str_of(self, "timestamp")
    }

    fn is_named(&self) -> bool {
        ["uuid", "id"].iter().any(|key| str_of(self, key).is_some())
    }
}

/// Passes on the objects of a format with one object per line. Other text is left out with a note.
/// Objects that two writers put on one line are passed on one by one, and a repeated line that has an id
/// is passed on once.
pub(super) fn each_object<T: LineObject>(
    source: &Source<'_>,
    notes: &mut Recording,
    mut take: impl FnMut(&mut Recording, RecordedLine<T>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let mut reader = LineReader::default();
    let mut lines = source.lines()?.peekable();
    let file = source.name();
    let mut named = HashSet::new();
    while let Some(line) = lines.next() {
        let (number, content) = line?;
        let (objects, error) = match reader.single_object(&content) {
            Some(one) => (vec![one], None),
            None => {
                let (objects, error) = reader.objects(&content);
                (objects.into_iter().map(T::from).collect(), error)
            }
        };
        if let [one] = &objects[..]
            && one.is_named()
            && !named.insert(content_hash(content.as_bytes()))
        {
            continue;
        }
        let is_last = lines.peek().is_none();
        let told = damage(objects.len(), error.as_ref(), is_last);
        notes.warnings.extend(told.map(|told| format!("{file}:{number}: {told}")));
        if error.is_some_and(|e| !is_cut(&e, is_last)) {
            notes.broken.push(number);
        }
        for object in objects {
            take(notes, RecordedLine { number, object })?;
        }
    }
    Ok(())
}

/// Describes a line that is not a single object: how many objects were read from it, and the error of
/// its other text.
pub(crate) fn damage(objects: usize, error: Option<&Error>, is_last: bool) -> Option<String> {
    Some(match (objects, error) {
        (1, None) => return None,
        (0, Some(e)) if is_cut(e, is_last) => {
            "the last line breaks off; the lines before it are used".to_string()
        }
        (0, Some(e)) => format!("{NOT_AN_OBJECT} ({e}); left out"),
        (n, None) => format!("{} on one line; read", pluralize(n, "object")),
        (n, Some(_)) => {
            format!("{} on one line, after one that breaks off; read", pluralize(n, "object"))
        }
    })
}

/// Returns whether a warning reports a lost line, counters that are not believed or compactions that
/// the file does not show, so that figures may be too low.
pub fn is_about_damage(warning: &str) -> bool {
    let told = [
        NOT_AN_OBJECT,
        "breaks off",
        "not readable as JSON",
        "which cannot be read",
        plausible::IMPOSSIBLE,
        plausible::HIDDEN,
    ];
    told.iter().any(|words| warning.contains(words))
}

const NOT_AN_OBJECT: &str = "not a JSON object";

fn is_cut(error: &Error, is_last: bool) -> bool {
    is_last && error.is_eof()
}

/// Receives the documents of a file one at a time, each with a name.
type TakeRow<'a> = dyn FnMut(&Document<'_>, Option<String>) -> Result<(), Ended> + 'a;

/// Passes on the documents of a format with one document per line, and several on one line one by one.
/// A text that breaks off is passed on as it is. Only a document that is alone has no name.
pub(super) fn rows(source: &Source<'_>, take: &mut TakeRow<'_>) -> Result<(), Ended> {
    let mut lines = source.lines()?.peekable();
    while let Some(line) = lines.next() {
        let (number, text) = line?;
        let (objects, torn) = match serde_json::from_str::<IgnoredAny>(&text) {
            Ok(_) => Default::default(),
            Err(_) => LineReader::default().objects(&text),
        };
        let mut texts: Vec<String> =
            objects.into_iter().map(|object| Value::Object(object).to_string()).collect();
        if texts.is_empty() || torn.is_some() {
            texts.insert(0, text);
        }
        let alone = number == 1 && texts.len() == 1 && lines.peek().is_none();
        for (n, text) in texts.iter().enumerate() {
            let place = if n == 0 { number.to_string() } else { format!("{number}.{n}") };
            let name = (!alone).then(|| format!("{}-{place}", source.stem()));
            take(&Document { line: number, ..Document::new(text, source.name()) }, name)?;
        }
    }
    Ok(())
}

/// Passes on the one session of an input with an object on each line, and of its companion files,
/// merged in chronological order.
pub(super) fn session<T: LineObject>(
    source: &Source<'_>,
    beside: Vec<PathBuf>,
    sink: &mut Sink<'_>,
    read: fn(Vec<RecordedLine<T>>, &str, Recording) -> Recording,
) -> Result<(), Ended> {
    let mut out = Recording::default();
    let mut lines = of_lines(source, &mut out)?;
    if !beside.is_empty() {
        let others = beside.iter().map(|path| of_lines(&source.open_companion(path)?, &mut out));
        let others = others.collect::<Result<Vec<_>, _>>()?;
        lines = merged(std::iter::once(lines).chain(others));
    }
    sink(Ok(read(lines, source.name(), Recording { beside, ..out })))
}

/// Merges the objects of a session and its companions in chronological order, keeping the order of
/// each file. An object without a time stays with the one before it.
fn merged<T: LineObject>(
    files: impl Iterator<Item = Vec<RecordedLine<T>>>,
) -> Vec<RecordedLine<T>> {
    let timed = |lines: Vec<RecordedLine<T>>| {
        // The newest time so far. Times sort as text.
        let mut newest = String::new();
        lines.into_iter().map(move |line| {
            if let Some(time) = line.object.timestamp().filter(|t| **t > *newest) {
                newest = time.to_string();
            }
            (newest.clone(), line)
        })
    };
    let mut all: Vec<(String, RecordedLine<T>)> = files.flat_map(timed).collect();
    // The sort is stable, so each file keeps its order. The main file's line comes first if times
    // are equal.
    all.sort_by(|a, b| a.0.cmp(&b.0));
    (1..).zip(all).map(|(number, (_, line))| RecordedLine { number, ..line }).collect()
}

/// Returns for each line whether it is on a branch that was given up: its members `id` and
/// `parent` chain it, and it is not on the way to the last such line. A note counts the messages.
pub(super) fn given_up(
    lines: &[RecordedLine],
    [id, parent]: [&str; 2],
    is_message: fn(&RecordedLine) -> bool,
    file: &str,
    out: &mut Recording,
) -> Vec<bool> {
    let chain = lines.iter().enumerate().filter(|(_, l)| l.object.contains_key(parent));
    let chain =
        chain.filter_map(|(at, l)| Some((at, (str_of(&l.object, id)?, str_of(&l.object, parent)))));
    let (places, tree): (Vec<usize>, Vec<(&str, Option<&str>)>) = chain.unzip();
    let mut left = vec![false; lines.len()];
    places.iter().for_each(|at| left[*at] = true);
    path_to_last(&tree).into_iter().for_each(|at| left[places[at]] = false);
    let messages = lines.iter().zip(&left).filter(|(l, left)| **left && is_message(l)).count();
    note_branches(messages, "message", file, out);
    left
}

/// Notes that some messages or lines belong to branches that were given up.
pub(super) fn note_branches(n: usize, noun: &str, file: &str, out: &mut Recording) {
    if n > 0 {
        let left = pluralize(n, noun);
        let note = "of branches that the session did not end with";
        out.left_out.push(format!("{file}: left out {left} {note}"));
    }
}

pub(super) fn string(object: &Map<String, Value>, key: &str) -> Option<String> {
    str_of(object, key).map(str::to_string)
}

pub(super) fn flag(object: &Map<String, Value>, key: &str) -> bool {
    object.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// Returns a member that is an object, or an empty one.
pub(super) fn object_in<'a>(object: &'a Map<String, Value>, key: &str) -> &'a Map<String, Value> {
    static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    object_of(object, key).unwrap_or(&EMPTY)
}

pub(super) fn list_of<'a>(object: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    object.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn objects<'a>(
    object: &'a Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    list_of(object, key).iter().filter_map(Value::as_object)
}

/// Returns a hash that is the same for equal values.
pub(super) fn hash_of(what: impl Hash) -> u64 {
    let mut hasher = RapidHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Returns the first line with content.
pub(super) fn first_line(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|l| !l.is_empty()).map(str::to_string)
}

#[cfg(test)]
pub(super) fn of_text<T: LineObject>(text: &str) -> Vec<RecordedLine<T>> {
    of_lines(&Source::of_bytes(text.as_bytes(), "t"), &mut Recording::default()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_lines_are_reported_and_the_rest_is_kept() {
        let mut notes = Recording::default();
        let text = b"{\"a\":1}\nnoise\n\n{\"b\":2}\n{\"c\":";
        let lines: Vec<RecordedLine> =
            of_lines(&Source::of_bytes(text, "r.jsonl"), &mut notes).unwrap();
        assert_eq!(lines.iter().map(|l| l.number).collect::<Vec<_>>(), [1, 4]);
        let warnings = notes.warnings;
        assert!(warnings[0].starts_with("r.jsonl:2: not a JSON object"), "{warnings:?}");
        assert!(warnings[1].starts_with("r.jsonl:5: the last line breaks off"), "{warnings:?}");
        assert_eq!(notes.broken, [2]);
    }

    #[test]
    fn objects_that_share_a_line_are_read_one_by_one() {
        let read = |text: &str| {
            let mut notes = Recording::default();
            let source = Source::of_bytes(text.as_bytes(), "r.jsonl");
            let lines: Vec<RecordedLine> = of_lines(&source, &mut notes).unwrap();
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
    fn a_repeated_line_with_an_id_counts_once() {
        let text = "{\"id\":\"1\",\"a\":1}\n{\"a\":2}\n{\"id\":\"1\",\"a\":1}\n{\"a\":2}\n{\"id\":\"1\",\"a\":3}";
        let told: Vec<String> =
            of_text::<Map<String, Value>>(text).iter().map(|l| l.object["a"].to_string()).collect();
        assert_eq!(told, ["1", "2", "2", "3"]);
    }

    #[test]
    fn half_a_character_costs_no_line() {
        let mut notes = Recording::default();
        let text = b"{\"a\":\"cut \\ud83d\"}\n{\"b\":\"\\ude00";
        let lines: Vec<RecordedLine> =
            of_lines(&Source::of_bytes(text, "r.jsonl"), &mut notes).unwrap();
        assert_eq!(lines[0].object["a"], "cut \u{fffd}");
        assert_eq!(lines.len(), 1);
        assert!(notes.warnings[0].contains("the last line breaks off"), "{:?}", notes.warnings);
    }

    #[test]
    fn lines_stand_by_their_times() {
        let at = |s: u32, n: &str| {
            format!("{{\"n\":\"{n}\",\"timestamp\":\"2026-01-01T00:00:{s:02}.000Z\"}}")
        };
        let main = [at(1, "ask"), "{\"n\":\"untimed\"}".into(), at(9, "result")].join("\n");
        let agent = [at(3, "x1"), at(2, "x2 by another clock"), at(9, "x3")].join("\n");
        let objects = |text: &String| {
            of_lines(&Source::of_bytes(text.as_bytes(), "x"), &mut Recording::default()).unwrap()
        };
        let all = merged([main, agent].iter().map(objects));
        let order: Vec<&str> = all.iter().map(|l| str_of(&l.object, "n").unwrap()).collect();
        assert!(all.iter().map(|l| l.number).eq(1..=6));
        assert_eq!(order, ["ask", "untimed", "x1", "x2 by another clock", "result", "x3"]);
    }
}
