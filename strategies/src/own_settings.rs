//! Reads compaction settings from users' own settings files in JSON.

use serde_json::Value;

use crate::descriptor::Named;

/// Path in the file, name of our setting, and the kind of value.
pub(crate) type UserSetting = (&'static [&'static str], &'static str, ValueKind);

/// Expected kind of a value.
#[derive(Clone, Copy)]
pub(crate) enum ValueKind {
    Flag,
    Number,
    /// A number, or a word that leaves the value to the product.
    NumberOr(&'static str),
    /// A share from 0 to 1.
    Share,
    /// A number in a string, as in shell variables.
    Quoted,
    /// A variable that switches the setting off.
    Disabled,
    /// PROVIDER/MODEL; the part before the last slash is dropped.
    Model,
}

impl ValueKind {
    /// Converts a value to our notation; `None` = the value does not set anything.
    fn read(self, value: &Value) -> Result<Option<String>, &'static str> {
        let number = || value.as_i64().map(|n| n.to_string());
        match self {
            ValueKind::Flag => value.as_bool().map(|b| Some(b.to_string())).ok_or("true or false"),
            ValueKind::Number => number().map(Some).ok_or("a whole number without quotes"),
            ValueKind::NumberOr(word) if value.as_str() == Some(word) => Ok(None),
            ValueKind::NumberOr(_) => number().map(Some).ok_or("a whole number, or \"auto\""),
            ValueKind::Quoted => {
                let text = value.as_str().filter(|t| t.parse::<f64>().is_ok());
                text.map(|t| Some(t.into())).ok_or("a number in quotes such as \"60\"")
            }
            ValueKind::Disabled => {
                let text = value.as_str().map(str::to_lowercase);
                let disabled = |t: String| matches!(&*t, "1" | "true" | "yes" | "on");
                text.map(|t| disabled(t).then(|| "false".into())).ok_or("a text such as \"1\"")
            }
            ValueKind::Share => {
                value.as_f64().map(|f| Some(f.to_string())).ok_or("a number such as 0.5")
            }
            ValueKind::Model => {
                let name = value.as_str().map(|m| m.rsplit('/').next().unwrap_or(m).to_string());
                name.map(Some).ok_or("a text such as \"provider/model\"")
            }
        }
    }
}

/// Extracts our settings from a file. If several paths give one setting, the first wins.
pub(crate) fn extract(settings: &Value, own: &[UserSetting]) -> Result<Named, String> {
    let mut out = Named::new();
    for (place, ours, shape) in own {
        let Some(value) = lookup(settings, place)? else { continue };
        let value = shape
            .read(value)
            .map_err(|e| format!("{}: expected {e}, not {}", place.join("."), truncate(value)))?;
        if let Some(value) = value.filter(|_| out.iter().all(|(known, _)| known != ours)) {
            out.push((*ours, value));
        }
    }
    Ok(out)
}

/// Returns the value at a path, if any. Every value on the way must be an object.
fn lookup<'a>(settings: &'a Value, place: &[&str]) -> Result<Option<&'a Value>, String> {
    let mut value = settings;
    for (depth, name) in place.iter().enumerate() {
        if !value.is_object() {
            let what = if depth == 0 { "the file".to_string() } else { place[..depth].join(".") };
            return Err(format!("{what}: expected an object {{…}}, not {}", truncate(value)));
        }
        match value.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(inner) => value = inner,
        }
    }
    Ok(Some(value))
}

/// Shortens a value for an error message.
fn truncate(value: &Value) -> String {
    const MAX_CHARS: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(MAX_CHARS) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
