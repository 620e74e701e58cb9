//! Kinds of session lines with their fields, and conversion of a line or step to an [`Entry`].

use std::fmt;

use ctxbench_core::host::RewindMode;
use ctxbench_session::Entry;
use ctxbench_util::{nearest, serde_error};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::{Map, Value};

use crate::bounds;
use crate::error::LineFault;

/// Fields of a kind of line: its `type`, the required fields in groups of alternatives, and the
/// optional fields.
pub(crate) struct KindFields {
    pub(crate) tag: &'static str,
    pub(crate) required: &'static [&'static [&'static str]],
    optional: &'static [&'static str],
}

/// All kinds of lines after the header.
pub(crate) const KINDS: &[KindFields] = &[
    KindFields { tag: "system", required: &[&["text"]], optional: &["agent"] },
    KindFields { tag: "tools", required: &[&["definitions"]], optional: &["agent"] },
    KindFields { tag: "memory", required: &[&["path"], &["text"]], optional: &[] },
    KindFields { tag: "repo_map", required: &[&["text"]], optional: &[] },
    KindFields { tag: "file", required: &[&["path"], &["text"]], optional: &["mode"] },
    KindFields { tag: "disk_file", required: &[&["path"], &["text"]], optional: &[] },
    KindFields {
        tag: "user",
        required: &[&["id"], &["text", "parts"]],
        optional: &["at", "agent"],
    },
    KindFields {
        tag: "assistant",
        required: &[&["id"]],
        optional: &["text", "parts", "reasoning", "calls", "usage", "model", "at", "agent"],
    },
    KindFields {
        tag: "tool",
        required: &[&["call_id"], &["output", "parts"]],
        optional: &["name", "is_error", "effects", "at", "agent"],
    },
    KindFields { tag: "compact", required: &[], optional: &["instructions", "at"] },
    KindFields { tag: "rewind", required: &[&["to"]], optional: &["mode", "instructions"] },
    KindFields { tag: "clear", required: &[], optional: &[] },
    KindFields { tag: "new_session", required: &[], optional: &[] },
    KindFields { tag: "restart", required: &[], optional: &[] },
    KindFields { tag: "idle", required: &[&["ms"]], optional: &[] },
    KindFields {
        tag: "recorded_compaction",
        required: &[],
        optional: &[
            "pre_tokens",
            "post_tokens",
            "summary",
            "trigger",
            "instructions",
            "model",
            "usage",
            "at",
        ],
    },
    KindFields {
        tag: "recorded_call",
        required: &[&["usage"]],
        optional: &["model", "at", "agent"],
    },
    KindFields {
        tag: "fact",
        required: &[&["id"], &["kind"], &["tokens", "words"], &["arises"]],
        optional: &["needs", "superseded_by"],
    },
];

impl KindFields {
    /// Returns all field names of the kind, including `type`.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let required = self.required.iter().flat_map(|g| g.iter().copied());
        std::iter::once("type").chain(required).chain(self.optional.iter().copied()).collect()
    }
}

/// Returns the kind with this tag.
pub(crate) fn kind(tag: &str, line: usize) -> Result<&'static KindFields, LineFault> {
    KINDS.iter().find(|k| k.tag == tag).ok_or_else(|| {
        let fix = nearest::hint(tag, &tags());
        LineFault::new(line, format!("unknown type {tag:?}"), "one of the entry types", fix)
    })
}

fn tags() -> Vec<&'static str> {
    KINDS.iter().map(|k| k.tag).collect()
}

pub(crate) fn one_of_the_types() -> String {
    format!("one of {}", tags().join(", "))
}

/// Describes a field that is missing or has the wrong type.
pub(crate) fn absent(object: &Map<String, Value>, field: &str) -> String {
    match object.get(field) {
        None => format!("missing field {field:?}"),
        Some(other) => format!("field {field:?} is {other}"),
    }
}

/// Reads the JSON object at `line`; `again` as for [`fitted`].
pub(crate) fn entry(
    object: Map<String, Value>,
    line: usize,
    again: impl Fn() -> Map<String, Value>,
) -> Result<Entry, LineFault> {
    let Some(tag) = object.get("type").and_then(Value::as_str).map(str::to_string) else {
        let fix = "name the kind of entry there";
        return Err(LineFault::new(line, absent(&object, "type"), one_of_the_types(), fix));
    };
    let kind = kind(&tag, line)?;
    for group in kind.required {
        if !group.iter().any(|f| object.get(*f).is_some_and(|v| !v.is_null())) {
            let names = group.iter().map(|f| format!("{f:?}")).collect::<Vec<_>>().join(" or ");
            let all = kind.names().join(", ");
            return Err(LineFault::new(
                line,
                format!("missing field {names} of an entry of type {tag:?}"),
                format!("the fields {all}"),
                "add it",
            ));
        }
    }
    if tag == "rewind" {
        rewind(&object, line)?;
    }
    let mut entry = fitted(object, again).map_err(|why| {
        let all = kind.names().join(", ");
        LineFault::new(
            line,
            format!("an entry of type {tag:?} does not fit: {why}"),
            format!("the fields {all}"),
            "correct the field",
        )
    })?;
    bounds::check(bounds::of_entry(&mut entry), line)?;
    Ok(entry)
}

/// Reason why an object does not fit a type.
#[derive(Debug)]
pub(crate) struct Unfit {
    /// Invalid field, `outer.inner` for a nested one, if it is known.
    pub(crate) field: Option<String>,
    pub(crate) why: String,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field:?}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// Converts an object to a type. `again` parses the object a second time and is called only for an
/// error, because a line may have megabytes.
pub(crate) fn fitted<T: DeserializeOwned>(
    object: Map<String, Value>,
    again: impl Fn() -> Map<String, Value>,
) -> Result<T, Unfit> {
    let read = |object: Map<String, Value>| serde_json::from_value::<T>(Value::Object(object));
    let e = match read(object) {
        Ok(fits) => return Ok(fits),
        Err(e) => e.to_string(),
    };
    let is_it =
        |others: Map<String, Value>| read(others).map_or_else(|f| f.to_string() != e, |_| true);
    let field = wrong_field(&again(), &is_it);
    Err(Unfit { field, why: serde_error::describe(&e, "an object") })
}

/// Returns the name of the invalid field, `outer.inner` for nested ones. A field is invalid if the
/// object without it has no error or a different one. `type` is not tried, because nothing is valid
/// without it.
fn wrong_field(
    object: &Map<String, Value>,
    is_it: &dyn Fn(Map<String, Value>) -> bool,
) -> Option<String> {
    let name = object.keys().filter(|name| *name != "type").find(|name| {
        let mut others = object.clone();
        others.remove(*name);
        is_it(others)
    })?;
    let within = object[name].as_object().and_then(|inner| {
        wrong_field(inner, &|inner| {
            let mut whole = object.clone();
            whole.insert(name.clone(), Value::Object(inner));
            is_it(whole)
        })
    });
    Some(within.map_or_else(|| name.clone(), |inner| format!("{name}.{inner}")))
}

/// Checks that a rewind has a known mode, and has instructions only if it writes a summary.
fn rewind(object: &Map<String, Value>, line: usize) -> Result<(), LineFault> {
    let mode = object.get("mode").and_then(Value::as_str).unwrap_or_default();
    let read: Result<RewindMode, serde::de::value::Error> =
        RewindMode::deserialize(mode.into_deserializer());
    let Ok(found) = read else {
        let known = RewindMode::ALL.map(RewindMode::word);
        let hint = nearest::hint(mode, &known);
        return Err(LineFault::new(
            line,
            format!("unknown rewind mode {mode:?}"),
            format!("one of {}", known.join(", ")),
            hint,
        ));
    };
    if !found.summarises() && object.contains_key("instructions") {
        let what = format!("\"instructions\" in a rewind of mode {:?}", found.word());
        return Err(LineFault::new(
            line,
            what,
            "mode summarize_from or summarize_to",
            "no summary is written here; leave them out",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Entry, LineFault> {
        let object = || serde_json::from_str(json).unwrap();
        entry(object(), 3, object)
    }

    #[test]
    fn faults_say_what_is_missing_and_what_was_meant() {
        let f = read(r#"{"type":"assistent","id":"a"}"#).unwrap_err();
        assert_eq!((f.line, f.fix.as_str()), (3, "did you mean assistant?"));
        let text = |field, text| {
            format!("{field:?}: it is the text {text:?}; expected a whole number from 0 on")
        };
        for (json, told) in [
            (r#"{"id":"a"}"#, "missing field \"type\""),
            (r#"{"type":"idle","ms":"long"}"#, &*text("ms", "long")),
            (r#"{"type":"tool","call_id":"c","output":"x","at":"soon"}"#, &text("at", "soon")),
            (
                r#"{"type":"assistant","id":"a","text":"x","usage":{"input":-1}}"#,
                "\"usage.input\": it is -1; expected a whole number",
            ),
        ] {
            let what = read(json).unwrap_err().what;
            assert!(what.contains(told), "{what}");
        }
        let f = read(r#"{"type":"rewind","to":"m1","mode":"summarise_from"}"#).unwrap_err();
        assert!(f.fix.contains("summarize_from"), "{}", f.fix);
        for mode in RewindMode::ALL {
            let text = format!(
                r#"{{"type":"rewind","to":"m1","mode":"{}","instructions":"keep x"}}"#,
                mode.word()
            );
            assert_eq!(read(&text).is_ok(), mode.summarises(), "{text}");
        }
        assert!(read(r#"{"type":"rewind","to":"m1","instructions":"keep x"}"#).is_err());
    }

    #[test]
    fn unknown_fields_of_messages_are_kept() {
        let Entry::User(u) = read(r#"{"type":"user","id":"a","text":"x","mood":"good"}"#).unwrap()
        else {
            panic!("not a user entry")
        };
        assert_eq!(u.extra["mood"], "good");
        assert!(!u.extra.contains_key("type"));
    }
}
