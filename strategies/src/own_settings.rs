//! What people's own settings files in JSON say of compaction: where a setting stands, what it is
//! called here, and what it must be.

use serde_json::Value;

use crate::descriptor::Named;

/// Place in the file, name of ours, and what must stand there.
pub(crate) type Own = (&'static [&'static str], &'static str, Shape);

/// What a value must be.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Flag,
    Number,
    /// The same, or a word that leaves it to the product.
    NumberOr(&'static str),
    /// A share from 0 to 1.
    Share,
    /// A number in a text, as variables of the shell have it.
    Quoted,
    /// A variable that turns off what the setting turns on.
    Disabled,
    /// PROVIDER/MODEL; what stands before the last stroke is the way to it.
    Model,
}

impl Shape {
    /// `None` = what stands there is no setting.
    fn read(self, value: &Value) -> Result<Option<String>, &'static str> {
        let number = || value.as_i64().map(|n| n.to_string());
        match self {
            Shape::Flag => value.as_bool().map(|b| Some(b.to_string())).ok_or("true or false"),
            Shape::Number => number().map(Some).ok_or("a whole number without quotes"),
            Shape::NumberOr(word) if value.as_str() == Some(word) => Ok(None),
            Shape::NumberOr(_) => number().map(Some).ok_or("a whole number, or \"auto\""),
            Shape::Quoted => {
                let text = value.as_str().filter(|t| t.parse::<f64>().is_ok());
                text.map(|t| Some(t.into())).ok_or("a number in quotes such as \"60\"")
            }
            Shape::Disabled => {
                let text = value.as_str().map(str::to_lowercase);
                let disabled = |t: String| matches!(&*t, "1" | "true" | "yes" | "on");
                text.map(|t| disabled(t).then(|| "false".into())).ok_or("a text such as \"1\"")
            }
            Shape::Share => {
                value.as_f64().map(|f| Some(f.to_string())).ok_or("a number such as 0.5")
            }
            Shape::Model => {
                let name = value.as_str().map(|m| m.rsplit('/').next().unwrap_or(m).to_string());
                name.map(Some).ok_or("a text such as \"provider/model\"")
            }
        }
    }
}

/// The settings of ours that a file gives. Of several places for one, the first decides.
pub(crate) fn named(settings: &Value, own: &[Own]) -> Result<Named, String> {
    let mut out = Named::new();
    for (place, ours, shape) in own {
        let Some(value) = at(settings, place)? else { continue };
        let value = shape
            .read(value)
            .map_err(|e| format!("{}: expected {e}, not {}", place.join("."), short(value)))?;
        if let Some(value) = value.filter(|_| out.iter().all(|(known, _)| known != ours)) {
            out.push((*ours, value));
        }
    }
    Ok(out)
}

/// What stands at a place; `None` = nothing. What should hold it must be an object.
fn at<'a>(settings: &'a Value, place: &[&str]) -> Result<Option<&'a Value>, String> {
    let mut value = settings;
    for (depth, name) in place.iter().enumerate() {
        if !value.is_object() {
            let what = if depth == 0 { "the file".to_string() } else { place[..depth].join(".") };
            return Err(format!("{what}: expected an object {{…}}, not {}", short(value)));
        }
        match value.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(inner) => value = inner,
        }
    }
    Ok(Some(value))
}

/// A value for an error.
fn short(value: &Value) -> String {
    const MOST: usize = 40;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
