//! Checks of the names, types and bounds of a case's members before it runs.
//!
//! Without these checks, a misspelled member would count as absent, and the case would pass without
//! checking it. Shapes shared by all cases are in `format.rs`, and settings of a program on its
//! descriptor.

use ctxbench_strategies::conform::shape::{MemberKind, Shape};
use ctxbench_strategies::conform::text::{MAX_BYTES, expand};
use serde_json::{Map, Value};

use super::case::CaseError;

/// Maximum number of tokens, calls or retries in a case. It is far above real numbers, and sums of
/// such numbers do not overflow.
const MAX_COUNT: u64 = 1_000_000_000_000;
/// Maximum number of tools in a case.
const MAX_TOOLS: u64 = 10_000;

/// Returns an error for an invalid member.
pub(super) fn odd(
    at: &str,
    expected: impl Into<String>,
    found: impl std::fmt::Display,
) -> CaseError {
    let found = found.to_string();
    let cut: String = found.chars().take(120).collect();
    CaseError::Member {
        at: at.to_string(),
        expected: expected.into(),
        found: if cut.len() < found.len() { cut + "…" } else { cut },
    }
}

/// Checks a case recursively and adds up the sizes of its generated texts.
#[derive(Default)]
pub(super) struct Checker {
    made: u64,
}

impl Checker {
    /// Checks an object with a shape and no other members.
    pub(super) fn closed(&mut self, at: &str, v: &Value, shape: Shape) -> Result<(), CaseError> {
        let o = v.as_object().ok_or_else(|| odd(at, "an object", v))?;
        if let Some(name) = o.keys().find(|k| !shape.iter().any(|m| m.name == *k)) {
            let known: Vec<&str> = shape.iter().map(|m| m.name).collect();
            return Err(odd(
                &format!("{at}.{name}"),
                format!("one of the members {}", known.join(", ")),
                format!("unknown member `{name}`"),
            ));
        }
        self.open(at, o, shape)
    }

    /// Checks the members of a shape in an object that may have others.
    pub(super) fn open(
        &mut self,
        at: &str,
        o: &Map<String, Value>,
        shape: Shape,
    ) -> Result<(), CaseError> {
        for m in shape {
            let at = format!("{at}.{}", m.name);
            match o.get(m.name) {
                None if m.required => {
                    return Err(odd(&at, format!("{}, required", name_of(m.kind)), "nothing"));
                }
                None => {}
                Some(Value::Null) if m.nullable => {}
                Some(v) => self.value(&at, v, m.kind)?,
            }
        }
        Ok(())
    }

    /// Checks a string or a recipe.
    pub(super) fn text(&mut self, at: &str, v: &Value) -> Result<(), CaseError> {
        self.value(at, v, MemberKind::Text)
    }

    fn value(&mut self, at: &str, v: &Value, kind: MemberKind) -> Result<(), CaseError> {
        let wrong = || odd(at, name_of(kind), v);
        let fits = |fits: bool| if fits { Ok(()) } else { Err(wrong()) };
        let within = |most: u64| move |n: &Value| n.as_u64().is_some_and(|n| n <= most);
        match kind {
            MemberKind::Any => Ok(()),
            MemberKind::Text => {
                if !v.is_string() && !v.is_object() {
                    return Err(wrong());
                }
                let text = expand(v).map_err(|e| odd(at, "a text that can be read", e))?;
                if v.is_object() { self.makes(at, text.len() as u64) } else { Ok(()) }
            }
            MemberKind::Word => fits(v.is_string()),
            MemberKind::OneOf(words) => fits(v.as_str().is_some_and(|w| words.contains(&w))),
            MemberKind::Words => fits(v.as_array().is_some_and(|l| l.iter().all(Value::is_string))),
            MemberKind::Count => fits(within(MAX_COUNT)(v)),
            MemberKind::Tools => fits(within(MAX_TOOLS)(v)),
            MemberKind::Bytes | MemberKind::Filler => {
                let sizes = v.as_array().map_or(std::slice::from_ref(v), Vec::as_slice);
                fits(!sizes.is_empty() && sizes.iter().all(within(MAX_BYTES)))?;
                let sum = sizes.iter().filter_map(Value::as_u64).sum();
                if matches!(kind, MemberKind::Filler) { self.makes(at, sum) } else { Ok(()) }
            }
            MemberKind::Flag => fits(v.is_boolean()),
            MemberKind::True => fits(*v == true),
            MemberKind::Object => fits(v.is_object()),
            MemberKind::One(shape) => self.closed(at, v, shape),
            MemberKind::Either(shape) => {
                self.closed(at, v, shape)?;
                exactly_one(at, v, &shape.iter().map(|m| m.name).collect::<Vec<_>>())
            }
            MemberKind::Many(shape) => {
                let list = v.as_array().ok_or_else(wrong)?;
                list.iter()
                    .enumerate()
                    .try_for_each(|(i, one)| self.closed(&format!("{at}[{i}]"), one, shape))
            }
        }
    }

    fn makes(&mut self, at: &str, bytes: u64) -> Result<(), CaseError> {
        self.made += bytes;
        if self.made > MAX_BYTES {
            return Err(odd(
                at,
                format!("a case with recipes and fillers of at most {MAX_BYTES} bytes"),
                format!("{} bytes", self.made),
            ));
        }
        Ok(())
    }
}

fn name_of(kind: MemberKind) -> String {
    match kind {
        MemberKind::Text => "a string or a recipe".into(),
        MemberKind::Word => "a string".into(),
        MemberKind::OneOf(words) => format!("one of {}", words.join(", ")),
        MemberKind::Words => "a list of strings".into(),
        MemberKind::Count => format!("a whole number from 0 to {MAX_COUNT}"),
        MemberKind::Tools => format!("a whole number from 0 to {MAX_TOOLS}"),
        MemberKind::Bytes | MemberKind::Filler => {
            format!("a size in bytes from 0 to {MAX_BYTES}, or a list of such sizes")
        }
        MemberKind::Flag => "true or false".into(),
        MemberKind::True => "true".into(),
        MemberKind::Object | MemberKind::One(_) | MemberKind::Either(_) => "an object".into(),
        MemberKind::Any => "a value".into(),
        MemberKind::Many(_) => "a list".into(),
    }
}

/// Checks that an object has exactly one of these members.
pub(super) fn exactly_one(at: &str, v: &Value, names: &[&str]) -> Result<(), CaseError> {
    let found: Vec<&str> = names.iter().copied().filter(|n| v.get(n).is_some()).collect();
    if found.len() == 1 {
        return Ok(());
    }
    Err(odd(
        at,
        format!("exactly one of {}", names.join(", ")),
        if found.is_empty() { "none".into() } else { found.join(", ") },
    ))
}
