//! Rules of products that recorded cases call by name: an input goes to the function that the
//! strategy itself uses.

use ctxbench_core::settings::Settings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// What a rule may need beside its input.
pub struct Context {
    /// Version as strategies name it.
    pub version: &'static str,
    /// The strategy's settings with their defaults.
    pub settings: Settings,
    /// Facts common to all cases of a file.
    pub facts: Map<String, Value>,
}

/// Why an input could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Input(String),
}

/// A rule by its name. It deserialises the input, calls what the strategy calls, and writes the
/// result down; members that it does not know, or misses, fail the case.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    pub name: &'static str,
    /// Versions in which it exists; none = all.
    pub versions: &'static [&'static str],
    pub call: fn(&Context, Value) -> Result<Value, Fault>,
}

/// An input as the type that a rule expects.
pub(crate) fn read<T: DeserializeOwned>(input: Value) -> Result<T, Fault> {
    Ok(serde_json::from_value(input)?)
}

/// A member that may be null but must be there.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(d)
}
