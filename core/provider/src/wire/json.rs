//! Writes and reads provider JSON without building trees.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

use ctxbench_core::block::{Block, is_json_object};

/// Appends raw bytes.
pub(crate) fn raw(out: &mut Vec<u8>, s: &str) {
    out.extend_from_slice(s.as_bytes());
}

/// Appends a JSON string with its quotes.
pub(crate) fn string(out: &mut Vec<u8>, s: &str) {
    // Most strings are ids and names without escapes.
    if s.bytes().all(|b| b >= b' ' && b != b'"' && b != b'\\') {
        out.push(b'"');
        raw(out, s);
        return out.push(b'"');
    }
    serde_json::to_writer(out, s).expect("a string always serialises");
}

/// Appends `key` unchanged and a JSON string.
pub(crate) fn field(out: &mut Vec<u8>, key: &str, value: &str) {
    raw(out, key);
    string(out, value);
}

/// Appends a whole number.
pub(crate) fn number(out: &mut Vec<u8>, n: u64) {
    use std::io::Write;
    write!(out, "{n}").expect("writing to memory does not fail");
}

/// Appends `items`, separated by commas.
pub(crate) fn list<T>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Vec<u8>, T),
) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(out, item);
    }
}

/// Limits a token count so that sums cannot overflow.
pub(crate) fn sane(tokens: u64) -> u64 {
    tokens.min(1 << 48)
}

/// Allocates a buffer for a body, rounded up so that growing conversations reuse memory.
pub(crate) fn buffer(blocks: &[Arc<Block>], tools: usize) -> Vec<u8> {
    let payload = |b: &Block| {
        b.json_text().len()
            + b.opaque.as_ref().map_or(0, |o| o.len())
            + b.media.as_ref().map_or(0, |m| m.url.len())
    };
    let bytes = blocks.iter().map(|b| payload(b) + 160).sum::<usize>() + tools + 512;
    Vec::with_capacity(bytes.next_power_of_two())
}

/// Key for arguments that are not a JSON object, on wires that require one.
const WRAP: &str = "{\"_raw\":";

/// Writes a call's arguments unchanged if they are a JSON object, else wrapped.
pub(crate) fn object(o: &mut Vec<u8>, text: &str) {
    object_or(o, text, is_json_object(text), |o| string(o, text));
}

/// Like [`object`], for the call of a block.
pub(crate) fn block_object(o: &mut Vec<u8>, b: &Block) {
    object_or(o, &b.text, b.is_json_object(), |o| raw(o, b.json_text()));
}

fn object_or(o: &mut Vec<u8>, text: &str, is_object: bool, quoted: impl Fn(&mut Vec<u8>)) {
    if is_object && !text.starts_with(WRAP) {
        return raw(o, text);
    }
    raw(o, WRAP);
    quoted(o);
    o.push(b'}');
}

/// Reads the arguments that [`object`] wrote.
pub(crate) fn unwrapped(input: Option<&RawValue>) -> Arc<str> {
    let given = input.map_or("{}", RawValue::get);
    let wrapped = given.strip_prefix(WRAP).and_then(|rest| rest.strip_suffix('}'));
    match wrapped.and_then(|w| serde_json::from_str::<Text>(w).ok()) {
        Some(t) => t.0,
        None => given.into(),
    }
}

/// A string deserialised directly into shared memory.
#[derive(Clone, Debug)]
pub(crate) struct Text(pub(crate) Arc<str>);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl Visitor<'_> for TextVisitor {
            type Value = Text;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E>(self, s: &str) -> Result<Text, E> {
                Ok(Text(s.into()))
            }
        }
        d.deserialize_str(TextVisitor)
    }
}

/// Returns an optional string; `None` if empty.
pub(crate) fn opt(t: Option<Text>) -> Option<Arc<str>> {
    t.map(|t| t.0).filter(|t| !t.is_empty())
}

/// Returns an optional string, empty if absent.
pub(crate) fn or_empty(t: Option<Text>) -> Arc<str> {
    t.map_or_else(|| "".into(), |t| t.0)
}

/// Content that is a string or a list of parts.
#[derive(Debug)]
pub(crate) enum OneOrMany<T> {
    One(Text),
    Many(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content parts")
            }
            fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<Self::Value, E> {
                Ok(OneOrMany::One(Text(s.into())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut parts = Vec::new();
                while let Some(p) = seq.next_element()? {
                    parts.push(p);
                }
                Ok(OneOrMany::Many(parts))
            }
        }
        d.deserialize_any(V(std::marker::PhantomData))
    }
}

/// `"5m"` or `"1h"` inside a breakpoint.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct CacheControl {
    #[serde(default)]
    ttl: ctxbench_core::request::Ttl,
}

impl CacheControl {
    pub(crate) fn ttl(self) -> ctxbench_core::request::Ttl {
        self.ttl
    }
}

/// UTF-8 is checked once for the whole body, not string by string.
pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        serde_json::Error::custom(format!("not UTF-8 after byte {}", e.valid_up_to()))
    })?;
    serde_json::from_str(text)
}
