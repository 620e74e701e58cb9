//! Settings files of products: how their values are read, and the line that changes one.

use ctxbench_core::settings::{self, Setting, UserKind, UserSetting};
use ctxbench_kit::memory::parse_jsonc;
use ctxbench_util::cut::cut;
use serde::Deserialize;
use serde_json::Value;

/// Settings by name, each value as on the command line.
pub type Named = Vec<(&'static str, String)>;

/// The file in which users keep their settings of a product.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SettingsFile {
    /// Folder of the file. It distinguishes products that use the same file name.
    pub folder: &'static str,
    /// Possible endings of the file's name.
    pub names: Vec<&'static str>,
    pub format: SettingsFormat,
    /// File or shell in which a line of [`SettingsFile::line`] is written.
    pub place: &'static str,
    /// Page of the product's documentation.
    pub documented: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingsFormat {
    /// JSON with comments and trailing commas.
    Jsonc,
    Toml,
}

/// Converts a value to our notation; `None` = the value does not set anything.
fn convert(kind: UserKind, value: &Value) -> Result<Option<String>, &'static str> {
    let number = || value.as_i64().map(|n| n.to_string());
    let text = || value.as_str().map(str::to_string);
    match kind {
        UserKind::Flag => value.as_bool().map(|b| Some(b.to_string())).ok_or("true or false"),
        UserKind::Number => number().map(Some).ok_or("a whole number without quotes"),
        UserKind::NumberOrAuto if value == "auto" => Ok(None),
        UserKind::NumberOrAuto => number().map(Some).ok_or("a whole number, or \"auto\""),
        UserKind::Quoted => {
            let text = text().filter(|t| t.parse::<f64>().is_ok());
            text.map(Some).ok_or("a number in quotes such as \"60\"")
        }
        UserKind::Disabled => {
            let disabled = |t: String| matches!(&*t, "1" | "true" | "yes" | "on");
            let off = |t: String| disabled(t.to_lowercase()).then(|| "false".into());
            text().map(off).ok_or("a text such as \"1\"")
        }
        UserKind::Share => {
            value.as_f64().map(|f| Some(f.to_string())).ok_or("a number such as 0.5")
        }
        UserKind::Text => text().map(Some).ok_or("a text in quotes"),
        UserKind::Model => {
            let name = text().map(|m| m.rsplit('/').next().map_or(m.clone(), str::to_string));
            name.map(Some).ok_or("a text such as \"provider/model\"")
        }
    }
}

impl SettingsFile {
    /// Extracts values of our settings from the file's text. The error names the place and the
    /// fault.
    pub fn read(&self, settings: &[Setting], text: &str) -> Result<Named, String> {
        let given = match self.format {
            SettingsFormat::Jsonc => parse_jsonc(text)?,
            SettingsFormat::Toml => toml::from_str(text).map_err(|e| e.to_string())?,
        };
        let wrong = |key: &str, expected: &str, value: &Value| {
            format!("{key}: expected {expected}, not {}", cut(&value.to_string(), 40))
        };
        let mut out = Named::new();
        for setting in settings {
            let mut set = None;
            for UserSetting { key, kind, .. } in &setting.keys {
                let Some(value) = lookup(&given, key)? else { continue };
                let value = convert(*kind, value).map_err(|e| wrong(key, e, value))?;
                set = set.or(value);
            }
            out.extend(set.map(|value| (setting.name, value)));
        }
        Ok(out)
    }

    pub fn line(&self, setting: &UserSetting, value: &settings::Value) -> String {
        let path: Vec<&str> = setting.key.split('.').collect();
        let value = match setting.kind {
            UserKind::Text | UserKind::Model => format!("\"{value}\""),
            _ => value.to_string(),
        };
        match (&path[..], self.format) {
            (["env", variable], _) if setting.kind == UserKind::Disabled => {
                format!("export {variable}=1")
            }
            (["env", variable], _) => format!("export {variable}={value}"),
            ([name], SettingsFormat::Toml) => format!("{name} = {value}"),
            (path, _) => {
                let member = |inner: Option<String>, name: &&str| {
                    let inner = inner.map_or(value.clone(), |inner| format!("{{ {inner} }}"));
                    Some(format!("\"{name}\": {inner}"))
                };
                path.iter().rev().fold(None, member).unwrap_or_default()
            }
        }
    }
}

/// Returns the value at a path with dots, if any. Every value on the way must be an object.
fn lookup<'a>(settings: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let (mut value, mut place) = (settings, "the file".to_string());
    for name in path.split('.') {
        if !value.is_object() {
            return Err(format!(
                "{place}: expected an object {{…}}, not {}",
                cut(&value.to_string(), 40)
            ));
        }
        match value.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(inner) => value = inner,
        }
        place = if place == "the file" { name.to_string() } else { format!("{place}.{name}") };
    }
    Ok(Some(value))
}
