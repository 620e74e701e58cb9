//! A whole reply as a stream of events. Each wire's events are made of the bytes of the whole reply, so the two cannot differ.

mod anthropic;
mod chat;
mod responses;

use ctxbench_core::provider::Wire;
use serde_json::Value;

use super::sse::Event;

/// The events of a reply; `usage` = a stream of Chat ends with the usage.
pub(super) fn events(wire: Wire, whole: &[u8], usage: bool) -> serde_json::Result<Vec<Event>> {
    match wire {
        Wire::AnthropicMessages => anthropic::events(whole),
        Wire::OpenaiResponses => responses::events(whole),
        Wire::OpenaiChat => chat::events(whole, usage),
    }
}

fn event(name: &'static str, data: &Value) -> Event {
    Event { name: Some(name), data: data.to_string() }
}

/// Least bytes of a piece of a text, so that streams have neither one event nor thousands.
const PIECE: usize = 16;

/// A text in pieces that end before a word or, where there are none, at a character.
fn pieces(text: &str) -> Vec<&str> {
    let least = PIECE.max(text.len() / 200);
    let (mut out, mut from) = (Vec::new(), 0);
    for (i, c) in text.char_indices() {
        let long = i - from;
        if long >= 2 * least || (long >= least && c == ' ') {
            out.push(&text[from..i]);
            from = i;
        }
    }
    if from < text.len() {
        out.push(&text[from..]);
    }
    out
}

/// A field of an object as text; empty where it is none.
fn text<'a>(of: &'a Value, key: &str) -> &'a str {
    of[key].as_str().unwrap_or("")
}

/// An object with one field changed.
fn with(of: &Value, key: &str, value: Value) -> Value {
    let mut of = of.clone();
    if let Some(fields) = of.as_object_mut() {
        fields.insert(key.into(), value);
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_text() {
        for t in ["", "a", "one two three four five six seven eight nine ten", &"ä".repeat(10_000), "  leading and trailing  "] {
            assert_eq!(pieces(t).concat(), t);
            assert!(pieces(t).iter().all(|p| !p.is_empty()));
        }
        assert!(pieces("one two three four five six seven eight").len() > 1);
        assert!(pieces(&"word ".repeat(100_000)).len() <= 200);
    }
}
