//! JSON of the wires: texts and arguments that are copied unchanged.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use ctxbench_core::prelude::*;

/// Limits a token count so that sums cannot overflow.
pub(crate) fn sane(tokens: u64) -> u64 {
    tokens.min(1 << 48)
}

pub(crate) fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("bodies have text keys and cannot fail to serialise")
}

/// Start of arguments that are not a JSON object, on wires that require one.
const WRAP: &str = "{\"_raw\":";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wrapped<'a> {
    #[serde(borrow, rename = "_raw")]
    text: Cow<'a, str>,
}

/// Returns a call's arguments unchanged if they are a JSON object, else wrapped.
pub(crate) fn object(text: &str) -> Cow<'_, RawValue> {
    let braces = text.starts_with('{') && text.ends_with('}') && !text.starts_with(WRAP);
    match braces.then(|| serde_json::from_str(text)) {
        Some(Ok(given)) => Cow::Borrowed(given),
        _ => {
            let wrapped = to_raw_value(&Wrapped { text: text.into() });
            Cow::Owned(wrapped.expect("a string always serialises"))
        }
    }
}

/// Returns the arguments of a call's block like [`object`].
pub(crate) fn object_of(block: &Block) -> Cow<'_, RawValue> {
    Cow::Borrowed(block.json_arguments(|text| object(text).into_owned()))
}

/// Reads the arguments that [`object`] wrote.
pub(crate) fn unwrapped(input: Option<&RawValue>) -> Arc<str> {
    let given = input.map_or("{}", RawValue::get);
    let wrapped = given.starts_with(WRAP).then(|| serde_json::from_str::<Wrapped<'_>>(given));
    wrapped.and_then(Result::ok).map_or_else(|| given.into(), |w| w.text.into())
}

#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    /// Text that was decoded into shared memory.
    Shared(Arc<str>),
    Plain(&'a str),
    /// The text of a block, whose JSON is already known.
    Block(&'a Block),
}

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Text::Shared(text) => text,
            Text::Plain(text) => text,
            Text::Block(block) => &block.text,
        }
    }

    pub(crate) fn into_shared(self) -> Arc<str> {
        match self {
            Text::Shared(text) => text,
            Text::Plain(text) => text.into(),
            Text::Block(block) => block.text.clone(),
        }
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Text::Plain(text)
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Text::Shared(text) => s.serialize_str(text),
            Text::Plain(text) => s.serialize_str(text),
            Text::Block(block) => block.json_text().serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Text<'_> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Text::Shared(<Arc<str>>::deserialize(d)?))
    }
}

/// Returns an optional string; `None` if empty.
pub(crate) fn opt(t: Option<Text<'_>>) -> Option<Arc<str>> {
    t.map(Text::into_shared).filter(|t| !t.is_empty())
}

/// Returns an optional string, empty if absent.
pub(crate) fn or_empty(t: Option<Text<'_>>) -> Arc<str> {
    t.map_or_else(|| "".into(), Text::into_shared)
}

/// Content that is a string or a list of parts.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany<'a, T> {
    One(Text<'a>),
    Many(Vec<T>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<'_, T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<'a, T>(std::marker::PhantomData<(&'a (), T)>);
        impl<'de, 'a, T: Deserialize<'de>> Visitor<'de> for V<'a, T> {
            type Value = OneOrMany<'a, T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content parts")
            }
            fn visit_str<E: serde::de::Error>(self, s: &str) -> Result<Self::Value, E> {
                Ok(OneOrMany::One(Text::Shared(s.into())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(OneOrMany::Many)
            }
        }
        d.deserialize_any(V(std::marker::PhantomData))
    }
}

/// UTF-8 is checked once for the whole body, not string by string.
pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        serde_json::Error::custom(format!("not UTF-8 after byte {}", e.valid_up_to()))
    })?;
    serde_json::from_str(text)
}
