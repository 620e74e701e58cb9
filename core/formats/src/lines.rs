//! Files with a JSON object on each line.

use std::collections::{BTreeSet, HashMap};

use ctxbench_util::escapes;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// JSON object of a file, or the part of it that a reader needs.
#[derive(Clone, Debug)]
pub struct ObjectLine<T = Map<String, Value>> {
    /// Line number, from 1.
    pub number: usize,
    pub object: T,
}

/// Maximum number of places in a torn line at which another object is searched for.
const MAX_PLACES: usize = 64;

/// Reader of the objects of lines.
#[derive(Debug, Default)]
pub struct LineReader {
    /// Beginnings of the objects so far, up to the first name.
    beginnings: BTreeSet<String>,
}

impl LineReader {
    /// Reads a line that is a single whole object.
    pub fn single_object<T: DeserializeOwned>(&mut self, text: &str) -> Option<T> {
        let beginning = text.starts_with('{').then(|| beginning(text))?;
        let object = serde_json::from_str(text).ok()?;
        if let Some(beginning) = beginning.filter(|b| !self.beginnings.contains(*b)) {
            self.beginnings.insert(beginning.to_string());
        }
        Some(object)
    }

    /// Reads the objects of a line. A line holds several objects if writers did not end their lines,
    /// and a torn object loses only itself: what follows it begins like another line. Returns the
    /// error of a text that is not an object.
    pub fn objects(&mut self, text: &str) -> (Vec<Map<String, Value>>, Option<serde_json::Error>) {
        if let Some(object) = self.single_object(text) {
            return (vec![object], None);
        }
        let beginning = beginning(text);
        let text = escapes::replace_lone_surrogates(text);
        let (mut out, torn) = leading_objects(&text);
        let Some(TornObject { at, error }) = torn else { return (out, None) };
        let torn = text[at..].trim_start();
        let beginnings = self.beginnings.iter().map(String::as_str).chain(beginning);
        let places: BTreeSet<usize> =
            beginnings.flat_map(|b| torn.match_indices(b)).map(|(place, _)| place).collect();
        let places = places.into_iter().filter(|place| *place > 0).take(MAX_PLACES);
        let rest =
            places.map(|place| leading_objects(&torn[place..])).find(|(_, torn)| torn.is_none());
        out.extend(rest.map(|(rest, _)| rest).unwrap_or_default());
        (out, Some(error))
    }
}

/// Returns the beginning of an object, up to its first name.
fn beginning(text: &str) -> Option<&str> {
    let name = text.strip_prefix("{\"")?;
    Some(&text[..2 + name.find('"')? + 1])
}

/// Text that is not an object: its position after the objects before it, and the error in it.
struct TornObject {
    at: usize,
    error: serde_json::Error,
}

/// Returns the objects at the beginning of a text, and what follows them.
fn leading_objects(text: &str) -> (Vec<Map<String, Value>>, Option<TornObject>) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter();
    let (mut out, mut end) = (Vec::new(), 0);
    loop {
        match stream.next() {
            Some(Ok(object)) => out.push(object),
            Some(Err(error)) => return (out, Some(TornObject { at: end, error })),
            None => return (out, None),
        }
        end = stream.byte_offset();
    }
}

/// Returns the positions of the entries on the way from the root to the last entry, in order. An
/// entry is its id and the id of its parent. A parent that is not in the file, because its line was
/// lost, is replaced by the entry before.
pub fn path_to_last(entries: &[(&str, Option<&str>)]) -> Vec<usize> {
    let place: HashMap<&str, usize> =
        entries.iter().enumerate().map(|(i, (id, _))| (*id, i)).collect();
    let mut out = Vec::new();
    let mut next = entries.len().checked_sub(1);
    while let Some(at) = next {
        out.push(at);
        next = entries[at].1.and_then(|parent| match place.get(parent) {
            // A parent precedes its entry. This prevents endless loops.
            Some(found) => Some(*found).filter(|found| *found < at),
            None => at.checked_sub(1),
        });
    }
    out.reverse();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_object_loses_only_itself() {
        let read = |text: &str| {
            let (objects, error) = LineReader::default().objects(text);
            (
                Value::from(objects.into_iter().map(Value::Object).collect::<Vec<_>>()),
                error.is_some(),
            )
        };
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        for (text, expected, is_torn) in [
            (r#"{"t":1}"#, r#"[{"t":1}]"#, false),
            (r#"{"t":1}{"t":2} {"t":3}"#, r#"[{"t":1},{"t":2},{"t":3}]"#, false),
            (r#"{"t":1,"a":"cu{"t":2}"#, r#"[{"t":2}]"#, true),
            (r#"{"t":1}{"t":2,"a":[{"t":3},{"t":4,"b":"cu{"t":4}"#, r#"[{"t":1},{"t":4}]"#, true),
            (r#"{"t":1}{"t":2,"a"#, r#"[{"t":1}]"#, true),
            (r#"{"t":"cut \ud83d"}"#, "[{\"t\":\"cut \u{fffd}\"}]", false),
            ("noise", "[]", true),
            ("7", "[]", true),
            ("", "[]", false),
        ] {
            assert_eq!(read(text), (value(expected), is_torn), "{text}");
        }
    }

    #[test]
    fn a_lost_parent_is_the_entry_before() {
        let tree = [("a", None), ("b", Some("a")), ("c", Some("lost")), ("d", Some("a"))];
        assert_eq!(path_to_last(&tree), [0, 3]);
        assert_eq!(path_to_last(&tree[..3]), [0, 1, 2]);
        assert_eq!(path_to_last(&[("a", Some("b")), ("b", Some("b"))]), [1]);
        assert!(path_to_last(&[]).is_empty());
    }
}
