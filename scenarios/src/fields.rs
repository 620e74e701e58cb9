//! Conversion of a session line or a scenario's step to an [`Entry`].

use ctxbench_session::{Entry, ToolEntry, UserEntry};
use ctxbench_util::{serde_error, toml_file};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::bounds;
use crate::error::InputError;

/// Reads the JSON object at `line`.
pub(crate) fn entry(object: Map<String, Value>, line: usize) -> Result<Entry, InputError> {
    let tag = object.get("type").and_then(Value::as_str).map(str::to_string);
    let kind = tag.map_or("an entry".to_string(), |tag| format!("an entry of type {tag:?}"));
    let mut entry: Entry = fitted(object, line, &kind)?;
    let lacking = match &entry {
        Entry::User(UserEntry { text: None, parts: None, .. }) => Some("\"text\" or \"parts\""),
        Entry::Tool(ToolEntry { output: None, parts: None, .. }) => Some("\"output\" or \"parts\""),
        _ => None,
    };
    if let Some(lacking) = lacking {
        let what = format!("missing field {lacking} of {kind}");
        return Err(InputError::new(line, what, "one of them", "add it"));
    }
    if let Entry::Rewind { mode, instructions: Some(_), .. } = &entry
        && !mode.summarises()
    {
        let what = format!("\"instructions\" in a rewind of mode {:?}", mode.word());
        let fix = "no summary is written here; leave them out";
        return Err(InputError::new(line, what, "mode summarize_from or summarize_to", fix));
    }
    bounds::check(bounds::of_entry(&mut entry), line)?;
    Ok(entry)
}

/// Converts an object to a type. `whose` names the object in an error.
pub(crate) fn fitted<T: DeserializeOwned>(
    object: Map<String, Value>,
    line: usize,
    whose: &str,
) -> Result<T, InputError> {
    serde_json::from_value(object.into()).map_err(|e| {
        let why = e.to_string();
        let why = toml_file::unknown(&why).unwrap_or_else(|| {
            let why = serde_error::describe(&why, "an object");
            format!("{why}; docs/sessions.md describes its fields")
        });
        let what = format!("{whose} does not fit: {why}");
        InputError { file: String::new(), line, what }
    })
}

/// Returns the path of the first member of `given` that `read`, the same object written again, lacks.
/// Defaults may not be written again.
pub(crate) fn ignored(given: &Value, read: &Value) -> Option<String> {
    let defaults = [json!(false), json!(0), json!([]), json!("")];
    match (given, read) {
        (Value::Object(given), Value::Object(read)) => {
            given.iter().find_map(|(key, value)| match read.get(key) {
                Some(read) => Some(format!("{key}.{}", ignored(value, read)?)),
                None => (!defaults.contains(value)).then(|| key.clone()),
            })
        }
        (Value::Array(given), Value::Array(read)) => {
            given.iter().zip(read).find_map(|(given, read)| ignored(given, read))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::host::RewindMode;

    use super::*;

    #[test]
    fn a_rewind_that_summarizes_may_have_instructions() {
        let read = |json: &str| entry(serde_json::from_str(json).unwrap(), 3);
        for mode in RewindMode::ALL {
            let text = format!(
                r#"{{"type":"rewind","to":"m1","mode":"{}","instructions":"keep x"}}"#,
                mode.word()
            );
            assert_eq!(read(&text).is_ok(), mode.summarises(), "{text}");
        }
        assert!(read(r#"{"type":"user","id":"a","text":"x","mood":"good"}"#).is_ok());
    }
}
