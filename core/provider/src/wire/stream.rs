//! Streams of events, generated from the encoded reply so that both agree.

use serde_json::{Map, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct StreamEvent {
    /// Name; `None` for Chat.
    pub name: Option<&'static str>,
    /// Data on one line.
    pub data: String,
}

impl StreamEvent {
    pub fn bytes(&self) -> Vec<u8> {
        match self.name {
            Some(name) => format!("event: {name}\ndata: {}\n\n", self.data),
            None => format!("data: {}\n\n", self.data),
        }
        .into_bytes()
    }
}

/// Returns the data of the events of a stream, without an event that lacks the final blank line.
pub fn event_data(stream: &str) -> Vec<String> {
    let (mut out, mut open): (_, Option<String>) = (Vec::new(), None);
    let mut rest = stream.strip_prefix('\u{feff}').unwrap_or(stream);
    while let Some(end) = rest.find(['\r', '\n']) {
        let line = &rest[..end];
        let closed = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + closed..];
        if line.is_empty() {
            out.extend(open.take());
        } else if let Some(data) = line.strip_prefix("data:") {
            let data = data.strip_prefix(' ').unwrap_or(data);
            open = Some(match open.take() {
                Some(begun) => format!("{begun}\n{data}"),
                None => data.to_string(),
            });
        }
    }
    out
}

/// Creates an event with its name as the `type` of its data.
pub(super) fn event(name: &'static str, mut data: Value) -> StreamEvent {
    data["type"] = name.into();
    StreamEvent { name: Some(name), data: data.to_string() }
}

/// Minimum size of a piece of text in bytes, to limit the number of events.
const MIN_PIECE: usize = 16;

/// Splits text into pieces at the start of a word or, in text without spaces, between characters.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    let min = MIN_PIECE.max(text.len() / 200);
    let (mut out, mut from) = (Vec::new(), 0);
    for (i, c) in text.char_indices() {
        let long = i - from;
        if long >= 2 * min || (long >= min && c == ' ') {
            out.push(&text[from..i]);
            from = i;
        }
    }
    if from < text.len() {
        out.push(&text[from..]);
    }
    out
}

/// Returns a field of an object as text; empty if it is not text.
pub(super) fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or("")
}

/// Returns an object with one field changed.
pub(super) fn with(of: &Value, key: &str, value: Value) -> Value {
    let mut of = of.clone();
    if let Some(fields) = of.as_object_mut() {
        fields.insert(key.into(), value);
    }
    of
}

/// Adds a piece to a field: appends texts and lists, and replaces other values.
pub(super) fn grow(fields: &mut Map<String, Value>, key: &str, more: Value) {
    match (fields.get_mut(key), more) {
        (_, Value::Null) => {}
        (Some(Value::String(begun)), Value::String(more)) => begun.push_str(&more),
        (Some(Value::Array(begun)), Value::Array(more)) => begun.extend(more),
        (_, more) => drop(fields.insert(key.into(), more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_data_parses_streams() {
        let of = |s: &str| event_data(s);
        assert_eq!(of("event: a\ndata: 1\n\ndata:2\ndata: 3\n\n"), ["1", "2\n3"]);
        assert_eq!(of(": ping\r\n\r\ndata: x\r\n\r\ndata: y\r\r"), ["x", "y"]);
        // An incomplete event is ignored.
        assert_eq!(of("data: whole\n\ndata: half"), ["whole"]);
        assert_eq!(of("data: whole\n\ndata: half\n"), ["whole"]);
        assert_eq!(of("\u{feff}data: 1\n\n"), ["1"]);
        let event = event("a", serde_json::json!({"b": "c\n"}));
        assert_eq!(of(&String::from_utf8(event.bytes()).unwrap()), [event.data]);
    }

    #[test]
    fn pieces_join_to_the_text() {
        for t in [
            "",
            "a",
            "one two three four five six seven eight nine ten",
            &"ä".repeat(10_000),
            "  leading and trailing  ",
        ] {
            assert_eq!(pieces(t).concat(), t);
            assert!(pieces(t).iter().all(|p| !p.is_empty()));
        }
        assert!(pieces("one two three four five six seven eight").len() > 1);
        assert!(pieces(&"word ".repeat(100_000)).len() <= 200);
    }
}
