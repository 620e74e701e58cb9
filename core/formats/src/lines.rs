//! Files with a JSON object on each line.

use ctxbench_core::escapes;
use serde_json::{Map, Value};

/// JSON object of a file.
#[derive(Clone, Debug)]
pub struct ObjectLine {
    /// Line number, from 1.
    pub number: usize,
    pub object: Map<String, Value>,
}

/// Maximum number of places in a torn line at which another object is searched for.
const MAX_PLACES: usize = 64;

/// Reads the objects of a line. A line holds several objects if writers did not end their lines, and
/// a torn object loses only itself. Returns the error of a text that is not an object.
pub fn objects(text: &str) -> (Vec<Map<String, Value>>, Option<serde_json::Error>) {
    if let Ok(object) = escapes::from_str(text) {
        return (vec![object], None);
    }
    let text = escapes::replace_lone_surrogates(text);
    let (mut out, torn) = whole(&text);
    let Some((at, error)) = torn else { return (out, None) };
    // The objects of a file begin with the same member. What follows the torn one is whole.
    let torn = text[at..].trim_start();
    let beginning = text.split_inclusive(':').next().filter(|b| b.starts_with('{'));
    let places = beginning.into_iter().flat_map(|b| torn.match_indices(b)).skip(1);
    let mut rests = places.take(MAX_PLACES).map(|(place, _)| whole(&torn[place..]));
    out.extend(rests.find(|(_, torn)| torn.is_none()).map(|(rest, _)| rest).unwrap_or_default());
    (out, Some(error))
}

/// Returns the objects at the beginning of a text, and the position after them with the error there.
fn whole(text: &str) -> (Vec<Map<String, Value>>, Option<(usize, serde_json::Error)>) {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter();
    let (mut out, mut end) = (Vec::new(), 0);
    loop {
        match stream.next() {
            Some(Ok(object)) => out.push(object),
            Some(Err(e)) => return (out, Some((end, e))),
            None => return (out, None),
        }
        end = stream.byte_offset();
    }
}

/// Returns the positions of the entries on the way from the root to the last entry, in order. An
/// entry is its id and the id of its parent. A parent that is not in the file, because its line was
/// lost, is replaced by the entry before.
pub fn way(entries: &[(&str, Option<&str>)]) -> Vec<usize> {
    let place: std::collections::HashMap<&str, usize> =
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
            let (objects, error) = objects(text);
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
        assert_eq!(way(&tree), [0, 3]);
        assert_eq!(way(&tree[..3]), [0, 1, 2]);
        assert_eq!(way(&[("a", Some("b")), ("b", Some("b"))]), [1]);
        assert!(way(&[]).is_empty());
    }
}
