//! Settings files of products: which of their settings change compaction, how each is read, and the
//! line that changes it.

use ctxbench_core::settings;
use ctxbench_kit::memory::parse_jsonc;
use serde_json::Value;

/// Settings by name, each value as on the command line.
pub type Named = Vec<(&'static str, String)>;

/// The file in which users keep their settings of a product.
#[derive(Clone, Copy, Debug)]
pub struct SettingsFile {
    /// Folder of the file. It distinguishes products that use the same file name.
    pub folder: &'static str,
    /// Possible endings of the file's name.
    pub names: &'static [&'static str],
    pub format: SettingsFormat,
    /// File or shell in which a line of [`SettingsFile::line`] is written.
    pub place: &'static str,
    /// Page of the product's documentation.
    pub documented: &'static str,
    /// Settings that affect compaction. If several give one of ours, the first one counts.
    pub settings: &'static [UserSetting],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingsFormat {
    /// JSON with comments and trailing commas.
    Jsonc,
    Toml,
}

/// A setting of a product.
#[derive(Clone, Copy, Debug)]
pub struct UserSetting {
    /// Path in the file.
    pub path: &'static [&'static str],
    /// Name of our setting.
    pub setting: &'static str,
    pub kind: ValueKind,
    /// Values worth trying, as on the command line. Amounts use the unit of the product's own
    /// settings and are never shares of a window, because one line serves sessions of every model.
    pub values: &'static [&'static str],
    /// Page of the documentation, if it is not that of the file.
    pub documented: Option<&'static str>,
    /// Limits of the figures for this setting, as a sentence; empty = none.
    pub caveat: &'static str,
}

impl UserSetting {
    pub(crate) const fn new(
        path: &'static [&'static str],
        setting: &'static str,
        kind: ValueKind,
    ) -> UserSetting {
        UserSetting { path, setting, kind, values: &[], documented: None, caveat: "" }
    }

    /// Adds values worth trying. The product's documentation must describe the setting.
    pub(crate) const fn trying(self, values: &'static [&'static str]) -> UserSetting {
        UserSetting { values, ..self }
    }
}

/// Expected kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    Flag,
    Number,
    /// A number above 0 that sets nothing here.
    Checked,
    /// A number, or a word that leaves the value to the product.
    NumberOr(&'static str),
    /// A share from 0 to 1.
    Share,
    /// A number in a string, as in shell variables.
    Quoted,
    /// A variable that switches the setting off.
    Disabled,
    Text,
    /// PROVIDER/MODEL; the part before the last slash is dropped.
    Model,
}

impl ValueKind {
    /// Converts a value to our notation; `None` = the value does not set anything.
    fn read(self, value: &Value) -> Result<Option<String>, &'static str> {
        let number = || value.as_i64().map(|n| n.to_string());
        let text = || value.as_str().map(str::to_string);
        match self {
            ValueKind::Flag => value.as_bool().map(|b| Some(b.to_string())).ok_or("true or false"),
            ValueKind::Number => number().map(Some).ok_or("a whole number without quotes"),
            ValueKind::Checked => match value.as_i64() {
                Some(1..) => Ok(None),
                _ => Err("a number of tokens above 0"),
            },
            ValueKind::NumberOr(word) if value.as_str() == Some(word) => Ok(None),
            ValueKind::NumberOr(_) => number().map(Some).ok_or("a whole number, or \"auto\""),
            ValueKind::Quoted => {
                let text = text().filter(|t| t.parse::<f64>().is_ok());
                text.map(Some).ok_or("a number in quotes such as \"60\"")
            }
            ValueKind::Disabled => {
                let disabled = |t: String| matches!(&*t, "1" | "true" | "yes" | "on");
                let off = |t: String| disabled(t.to_lowercase()).then(|| "false".into());
                text().map(off).ok_or("a text such as \"1\"")
            }
            ValueKind::Share => {
                value.as_f64().map(|f| Some(f.to_string())).ok_or("a number such as 0.5")
            }
            ValueKind::Text => text().map(Some).ok_or("a text in quotes"),
            ValueKind::Model => {
                let name = text().map(|m| m.rsplit('/').next().map_or(m.clone(), str::to_string));
                name.map(Some).ok_or("a text such as \"provider/model\"")
            }
        }
    }
}

impl SettingsFile {
    /// Extracts our settings from the file's text. The error names the place and the fault.
    pub fn read(&self, text: &str) -> Result<Named, String> {
        let given = match self.format {
            SettingsFormat::Jsonc => parse_jsonc(text)?,
            SettingsFormat::Toml => toml::from_str(text).map_err(|e| e.to_string())?,
        };
        let mut out = Named::new();
        for UserSetting { path, setting, kind, .. } in self.settings {
            let Some(value) = lookup(&given, path)? else { continue };
            let value = kind.read(value).map_err(|e| {
                format!("{}: expected {e}, not {}", path.join("."), truncate(value))
            })?;
            if let Some(value) = value.filter(|_| out.iter().all(|(known, _)| known != setting)) {
                out.push((*setting, value));
            }
        }
        Ok(out)
    }

    /// Returns the line that gives a setting this value.
    pub fn line(&self, setting: &UserSetting, value: &settings::Value) -> String {
        match (setting.path, self.format) {
            (["env", variable], _) if setting.kind == ValueKind::Disabled => {
                format!("export {variable}=1")
            }
            (["env", variable], _) => format!("export {variable}={value}"),
            ([name], SettingsFormat::Toml) => format!("{name} = {value}"),
            (path, _) => {
                let member = |inner: Option<String>, name: &&str| {
                    let inner = inner.map_or(value.to_string(), |inner| format!("{{ {inner} }}"));
                    Some(format!("\"{name}\": {inner}"))
                };
                path.iter().rev().fold(None, member).unwrap_or_default()
            }
        }
    }
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
