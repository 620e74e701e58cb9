//! Parsing of a case, rules between its members, and bounds of its numbers and texts.

use ctxbench_core::block::BlockKind;
use ctxbench_util::cut::cut;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Replay;
use crate::case::{
    Case, CaseError, CaseEvent, CaseItem, CaseRequest, Constant, Constants, FixedPiece, Listed,
    Outcome, read,
};
use crate::text::{MAX_BYTES, expand, is_recipe};

/// Maximum number of tokens, calls or retries in a case. It is far above real numbers, and sums of
/// such numbers do not overflow.
const MAX_COUNT: u64 = 1_000_000_000_000;
/// Maximum number of tools in a case.
const MAX_TOOLS: usize = 10_000;

/// Fields of a request that a case may leave out of its comparison.
const LEAVABLE: &[&str] = &["phase", "model", "max_tokens", "tokens_after"];

/// Items with implementation-defined text. The text of all other items is compared.
const CONSTANT_KINDS: &[BlockKind] = &[
    BlockKind::Base,
    BlockKind::Context,
    BlockKind::SummaryPrompt,
    BlockKind::Marker,
    BlockKind::Continue,
    BlockKind::CompactionTrigger,
    BlockKind::Ack,
];

fn odd(at: &str, expected: impl Into<String>, found: impl std::fmt::Display) -> CaseError {
    let found = cut(&found.to_string(), 120);
    CaseError::Value { at: at.to_string(), expected: expected.into(), found }
}

impl Case {
    /// Parses a case. `name` appears in errors.
    pub fn parse(text: &str, name: &str) -> Result<Case, CaseError> {
        let mut case: Value = serde_json::from_str(text).map_err(|e| CaseError::shape(name, &e))?;
        prepare("", &mut case, &mut 0)?;
        read::<Option<Constants>>("constants", case["constants"].clone())?;
        read::<Option<Outcome>>("outcome", case["outcome"].clone())?;
        read_list::<FixedPiece>(&case, "fixed")?;
        read_list::<CaseEvent>(&case, "events")?;
        read_list::<CaseItem>(&case, "items")?;
        read_list::<CaseRequest>(&case, "requests")?;
        read("case", case)
    }

    /// Checks the rules between members. Returns an error for members that contradict each other.
    pub fn check(&self, product: &Replay) -> Result<(), CaseError> {
        let known = |name: &&String| product.constants.contains(&name.as_str());
        if let Some(name) = self.constants.keys().find(|name| !known(name)) {
            let expected = format!("one of {}", product.constants.join(", "));
            return Err(odd("constants", expected, format!("unknown member `{name}`")));
        }
        let left_out = |name: &&String| LEAVABLE.contains(&name.as_str());
        if let Some(name) = self.not_compared.iter().find(|name| !left_out(name)) {
            return Err(odd("not_compared", format!("some of {}", LEAVABLE.join(", ")), name));
        }
        let mut fillers: usize = self.constants.values().map(Constant::bytes).sum();
        for piece in &self.fixed {
            fillers += match piece {
                FixedPiece::Base(t) | FixedPiece::Context(t) if t.bytes.sizes().is_empty() => {
                    return Err(odd("fixed", "at least one size in `bytes`", "none"));
                }
                FixedPiece::Base(t) | FixedPiece::Context(t) => {
                    let chars = [t.json_bytes, t.json_utf16, t.ascii_chars, t.other_chars];
                    t.bytes.sum() + chars.into_iter().flatten().sum::<usize>()
                }
                FixedPiece::Tools(t) if t.count > MAX_TOOLS => {
                    return Err(odd("fixed", format!("at most {MAX_TOOLS} tools"), t.count));
                }
                FixedPiece::Tools(t) => t.json_utf16.unwrap_or(0),
            }
        }
        if fillers as u64 > MAX_BYTES {
            let expected = format!("texts of at most {MAX_BYTES} bytes together");
            return Err(odd("constants and fixed", expected, fillers));
        }
        for (name, len) in [("events", self.events.len()), ("requests", self.requests.len())] {
            if len == 0 {
                return Err(odd(name, "at least one", "none"));
            }
        }
        for (i, item) in self.items.iter().enumerate() {
            check_item(&format!("items[{i}]"), item)?;
        }
        let items = self.items.len();
        for (i, request) in self.requests.iter().enumerate() {
            for (k, entry) in request.items.iter().enumerate() {
                let at = format!("requests[{i}].items[{k}]");
                match entry {
                    Listed::Item(item) => check_item(&at, item)?,
                    Listed::Number(n) if *n < items => {}
                    Listed::Numbers([first, last]) if first <= last && *last < items => {}
                    _ => {
                        return Err(odd(
                            &at,
                            format!("numbers below {items}"),
                            format!("{entry:?}"),
                        ));
                    }
                }
            }
        }
        self.check_outcome(product.ends)
    }

    /// Checks that the outcome has the members that cases of the product require.
    fn check_outcome(&self, required: &[&str]) -> Result<(), CaseError> {
        let outcome = self.outcome.clone().unwrap_or_default();
        let given = json!(outcome);
        if let Some(name) = required.iter().find(|name| given[**name].is_null()) {
            let expected = format!("a value, required for {}", self.agent);
            return Err(odd(&format!("outcome.{name}"), expected, "nothing"));
        }
        let (last, error) = (outcome.last.is_some(), outcome.error.is_some());
        match outcome.requests.is_some() || last || error {
            true => exactly_one("outcome", &[("final", last), ("error", error)]),
            false => Ok(()),
        }
    }
}

/// Replaces every recipe by its text, and checks the bounds of numbers and the sizes of texts. `made` =
/// size of the texts of recipes so far, bytes.
fn prepare(at: &str, v: &mut Value, made: &mut u64) -> Result<(), CaseError> {
    match v {
        Value::Number(n) if n.as_f64().is_some_and(|n| n > MAX_COUNT as f64) => {
            Err(odd(at, format!("a number up to {MAX_COUNT}"), n))
        }
        Value::Array(list) => list
            .iter_mut()
            .enumerate()
            .try_for_each(|(i, one)| prepare(&format!("{at}[{i}]"), one, made)),
        Value::Object(o) if is_recipe(o) => {
            let text = expand(v).map_err(|expected| odd(at, expected, &*v))?;
            *made += text.len() as u64;
            if *made > MAX_BYTES {
                let expected = format!("recipes of at most {MAX_BYTES} bytes together");
                return Err(odd(at, expected, format!("{made} bytes")));
            }
            *v = Value::String(text);
            Ok(())
        }
        Value::Object(o) => {
            let inner = |k: &str| if at.is_empty() { k.to_string() } else { format!("{at}.{k}") };
            o.iter_mut().try_for_each(|(k, one)| prepare(&inner(k), one, made))?;
            // The size of an item also counts what is around its text.
            let size = if o.contains_key("kind") { "" } else { "bytes" };
            let pairs = [
                ("text", size),
                ("placeholder", "bytes"),
                ("output", "output_bytes"),
                ("encrypted", "encrypted_bytes"),
            ];
            pairs.into_iter().try_for_each(|(text, size)| {
                let (Some(Value::String(text)), Some(given)) = (o.get(text), o.get(size)) else {
                    return Ok(());
                };
                match given.as_u64() == Some(text.len() as u64) || given.is_null() {
                    true => Ok(()),
                    false => {
                        let expected = format!("{} bytes, the size of the text", text.len());
                        Err(odd(&inner(size), expected, given))
                    }
                }
            })
        }
        _ => Ok(()),
    }
}

/// Checks that exactly one of these members is given.
fn exactly_one(at: &str, members: &[(&str, bool)]) -> Result<(), CaseError> {
    let found: Vec<&str> = members.iter().filter(|(_, given)| *given).map(|(k, _)| *k).collect();
    if found.len() == 1 {
        return Ok(());
    }
    let all: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let found = if found.is_empty() { "none".into() } else { found.join(", ") };
    Err(odd(at, format!("exactly one of {}", all.join(", ")), found))
}

fn check_item(at: &str, item: &CaseItem) -> Result<(), CaseError> {
    let forms = [
        ("text", item.text.is_some()),
        ("sha256", item.sha256.is_some()),
        ("parts", !item.parts.is_empty()),
        ("transcript", item.transcript.is_some()),
        ("constant", item.constant),
        ("segments", !item.segments.is_empty()),
        ("unstable", item.unstable),
    ];
    exactly_one(at, &forms)?;
    if item.constant && !CONSTANT_KINDS.contains(&item.kind) {
        let what = format!("`constant` only in items of the kinds {CONSTANT_KINDS:?}");
        return Err(odd(at, what, format!("{:?}", item.kind)));
    }
    let sizes = item.bytes.sizes().len();
    if !item.parts.is_empty() && item.parts.len() != sizes {
        return Err(odd(at, format!("{sizes} parts, as `bytes` has sizes"), item.parts.len()));
    }
    Ok(())
}

/// Parses the elements of a list one by one, so that an error names the element.
fn read_list<T: DeserializeOwned>(case: &Value, name: &str) -> Result<(), CaseError> {
    for (i, one) in case[name].as_array().into_iter().flatten().enumerate() {
        read::<T>(&format!("{name}[{i}]"), one.clone())?;
    }
    Ok(())
}
