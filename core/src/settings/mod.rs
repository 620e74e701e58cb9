//! Settings of strategies: rows with name, unit, default and source, and the values that a user
//! gives.
//!
//! The rows are data. A strategy reads the values as a struct with a field for each row.

mod pairs;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use thiserror::Error;

pub use self::pairs::{split_pair, split_pairs};
use ctxbench_util::quantity::parse_quantity;

/// Unit and range of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SettingKind {
    /// A number of tokens up to [`MAX_AMOUNT`], multiplied by a scenario's `scale`, or a percentage
    /// of the model's context window.
    Tokens,
    /// [`SettingKind::Tokens`] above 0. A percentage is at least [`MIN_PERCENT`].
    Limit,
    /// A number of bytes or characters that estimates tokens, up to [`MAX_AMOUNT`]; multiplied by a
    /// scenario's `scale`.
    Bytes,
    /// A count up to [`MAX_COUNT`], never scaled.
    Count,
    /// A whole number up to [`MAX_COUNT`]; negative numbers mean 0.
    Whole,
    /// A whole number from 0 to 100, with or without `%`.
    Percent,
    /// A share between 0 and 1.
    Share,
    /// Milliseconds, up to [`MAX_AMOUNT`].
    Millis,
    /// `true` or `false`.
    Flag,
    /// One of the listed values.
    Choice(#[serde(deserialize_with = "leaked")] &'static [&'static str]),
    /// Any text.
    Text,
    /// Name of a model in the catalogue; a recorded case may use other names.
    Model,
}

/// Smallest percentage of the window for a [`SettingKind::Limit`]: less is below one token of a window of
/// 5,000.
pub const MIN_PERCENT: f64 = 0.01;

/// Largest [`SettingKind::Count`]. Strategies may store one as `u32`.
pub const MAX_COUNT: u64 = u32::MAX as u64;

/// Largest number of tokens, bytes or milliseconds. Strategies may multiply one by 1,000,000 without
/// overflow.
pub const MAX_AMOUNT: u64 = 1_000_000_000_000;

impl SettingKind {
    fn is_scaled(self) -> bool {
        matches!(self, SettingKind::Tokens | SettingKind::Limit | SettingKind::Bytes)
    }
}

/// Reads words that are kept until the program ends.
fn leaked<'de, D: Deserializer<'de>>(d: D) -> Result<&'static [&'static str], D::Error> {
    let words = Vec::<String>::deserialize(d)?;
    let words: Vec<&'static str> = words.into_iter().map(|w| &*w.leak()).collect();
    Ok(words.leak())
}

/// A value of a setting. [`AUTO`] is a word: the product derives the value.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Value {
    Int(u64),
    Flag(bool),
    /// A share between 0 and 1.
    Real(f64),
    /// A percentage of the model's context window, from 0 to 100.
    #[serde(skip_deserializing)]
    OfWindow(f64),
    /// A word or other text.
    Word(Cow<'static, str>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::OfWindow(pct) => write!(f, "{pct}%"),
            Value::Real(x) => write!(f, "{x}"),
            Value::Flag(b) => write!(f, "{b}"),
            Value::Word(w) => f.write_str(&pairs::quote(w)),
        }
    }
}

impl Value {
    /// The default of a setting that the product derives; the help of the setting says how.
    pub const AUTO: Value = Value::Word(Cow::Borrowed(AUTO));
}

/// The value for which the product's own rule decides.
pub const AUTO: &str = "auto";

/// A row: a setting of a strategy.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Name on the command line, and of the strategy's field.
    pub name: &'static str,
    /// Unit and range.
    pub kind: SettingKind,
    pub default: Value,
    /// Effect of the setting, for lists and `--help`.
    pub help: &'static str,
    /// Source of the default.
    pub source: &'static str,
    /// Versions that read the setting; empty = all.
    #[serde(default)]
    pub versions: Vec<&'static str>,
    /// Settings of the product that set this one. The first one that is given counts.
    #[serde(default)]
    pub keys: Vec<UserSetting>,
}

/// A setting in the settings file of a product's user.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserSetting {
    /// Path in the file, with dots.
    pub key: &'static str,
    pub kind: UserKind,
    /// Values worth trying, as on the command line, of a setting that the product's documentation
    /// describes. Amounts use the unit of the product's own settings and are never shares of a
    /// window, because one line serves sessions of every model.
    #[serde(default)]
    pub values: Vec<&'static str>,
    /// Page of the documentation, if it is not that of the file.
    pub documented: Option<&'static str>,
    /// Limits of the figures for this setting, as a sentence; empty = none.
    #[serde(default)]
    pub caveat: &'static str,
}

/// Form of a value in a settings file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserKind {
    Flag,
    Number,
    /// A number, or `"auto"`, which leaves the value to the product.
    NumberOrAuto,
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

impl Setting {
    /// Returns true if the product derives the value by default.
    fn is_derived(&self) -> bool {
        let named = matches!(self.kind, SettingKind::Choice(words) if words.contains(&AUTO));
        self.default == Value::AUTO && !named
    }

    pub fn is_read_by(&self, version: &str) -> bool {
        self.versions.is_empty() || self.versions.contains(&version)
    }

    /// Parses a value; the error says what the setting takes.
    pub fn parse(&self, given: &str) -> Result<Value, String> {
        if given == AUTO && self.default == Value::AUTO {
            return Ok(Value::AUTO);
        }
        parse_value(self.kind, given)
    }
}

/// A setting that cannot be used.
#[derive(Debug, Error, PartialEq)]
pub enum SettingError {
    /// The strategy has no setting of this name.
    #[error("strategy `{strategy}` has no setting `{name}`; {hint}")]
    Unknown {
        strategy: String,
        name: String,
        /// Similar names, or all of them.
        hint: String,
    },
    /// The value has another type or is out of range.
    #[error("setting `{name}` of `{strategy}` takes {expected}, not `{given}`")]
    BadValue { strategy: String, name: String, given: String, expected: String },
    /// A pair without `=`.
    #[error(
        "`{0}` is not a setting; write name=value, separated by commas, and quote a value that \
         contains one: name=\"a, b\""
    )]
    NotAPair(String),
    /// A quoted value that does not end in a quote.
    #[error("`{0}` is not a quoted value; write name=\"text\", and \"\" for a quote in the text")]
    Quote(String),
}

/// Values of one strategy's settings: the user's over the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    table: &'static [Setting],
    values: BTreeMap<&'static str, Value>,
    given: BTreeMap<&'static str, Value>,
}

impl Settings {
    pub fn defaults(table: &'static [Setting]) -> Self {
        let values = table.iter().map(|s| (s.name, s.default.clone())).collect();
        Settings { table, values, given: BTreeMap::new() }
    }

    /// Parses `name=value,name=value` over the defaults; see [`split_pairs`] for quoting.
    pub fn parse(
        strategy: &str,
        table: &'static [Setting],
        text: &str,
    ) -> Result<Self, SettingError> {
        let mut out = Settings::defaults(table);
        for pair in split_pairs(text)?.into_iter().filter(|p| !p.is_empty()) {
            let (name, value) = split_pair(pair)?;
            out.set(strategy, name, &value)?;
        }
        Ok(out)
    }

    /// Sets a value unless the user gave one. Checks it against the table.
    pub fn fill(&mut self, strategy: &str, name: &str, value: &str) -> Result<(), SettingError> {
        if self.given.contains_key(name) { Ok(()) } else { self.set(strategy, name, value) }
    }

    /// Sets a value and replaces one that the user gave. Checks it against the table.
    pub fn set(&mut self, strategy: &str, name: &str, given: &str) -> Result<(), SettingError> {
        let Some(setting) = self.table.iter().find(|s| s.name == name) else {
            let names = self.table.iter().map(|s| s.name).collect::<Vec<_>>();
            let hint = if names.is_empty() {
                "it has none".to_string()
            } else {
                ctxbench_util::nearest::hint(name, &names)
            };
            return Err(SettingError::Unknown {
                strategy: strategy.into(),
                name: name.into(),
                hint,
            });
        };
        let value = setting.parse(given).map_err(|expected| SettingError::BadValue {
            strategy: strategy.into(),
            name: name.into(),
            given: given.into(),
            expected,
        })?;
        self.values.insert(setting.name, value.clone());
        self.given.insert(setting.name, value);
        Ok(())
    }

    /// Returns the values as a strategy's struct, with a field for each row. A row with the default
    /// [`AUTO`] is an `Option`, unless `auto` is one of its choices.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let json = |s: &Setting| match &self.values[s.name] {
            value if *value == Value::AUTO && s.is_derived() => serde_json::Value::Null,
            value => serde_json::json!(value),
        };
        let all = self.table.iter().map(|s| (s.name.to_string(), json(s)));
        serde_json::from_value(serde_json::Value::Object(all.collect()))
    }

    pub fn models(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.table.iter().filter(|s| matches!(s.kind, SettingKind::Model)).filter_map(
            |s| match self.values.get(s.name) {
                Some(Value::Word(w)) if w != AUTO => Some((s.name, &**w)),
                _ => None,
            },
        )
    }

    /// Returns the settings with the defaults of those that a version does not read.
    pub fn limited_to(&self, version: &str) -> Self {
        let mut out = self.clone();
        for s in self.table.iter().filter(|s| !s.is_read_by(version)) {
            out.values.insert(s.name, s.default.clone());
        }
        out
    }

    /// Returns the settings for a model with a window of `window` tokens: multiplies absolute token
    /// and byte values by `scale`, and converts percentages of the window to tokens. A limit stays
    /// above 0.
    pub fn applied(&self, scale: f64, window: u64) -> Self {
        let mut out = self.clone();
        for s in self.table.iter().filter(|s| s.kind.is_scaled()) {
            let Some(value) = out.values.get_mut(s.name) else { continue };
            let tokens = match *value {
                Value::Int(n) => scale_tokens(n, scale),
                Value::OfWindow(pct) => scale_tokens(window, pct / 100.0),
                _ => continue,
            };
            *value = Value::Int(tokens.max(u64::from(s.kind == SettingKind::Limit)));
        }
        out
    }

    /// Returns the values that the user set, by name.
    pub fn explicit(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.given.iter().map(|(k, v)| (*k, v))
    }

    /// Formats the values that the user set so that [`Settings::parse`] reads them back.
    pub fn given_text(&self) -> String {
        self.given.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
    }

    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(k, v)| (*k, v))
    }
}

/// Multiplies a number of tokens by a scale and rounds to the nearest whole number.
pub fn scale_tokens(n: u64, scale: f64) -> u64 {
    if scale == 1.0 { n } else { (n as f64 * scale).round() as u64 }
}

fn parse_value(kind: SettingKind, given: &str) -> Result<Value, String> {
    match kind {
        SettingKind::Limit => match parse_value(SettingKind::Tokens, given) {
            Ok(Value::Int(n)) if n > 0 => Ok(Value::Int(n)),
            Ok(Value::OfWindow(pct)) if pct >= MIN_PERCENT => Ok(Value::OfWindow(pct)),
            _ => Err(format!(
                "a number of tokens above 0 such as 40k, or {MIN_PERCENT}% to 100% of the window"
            )),
        },
        SettingKind::Tokens if given.ends_with('%') => {
            match given.trim_end_matches('%').parse::<f64>() {
                Ok(pct) if (0.0..=100.0).contains(&pct) => Ok(Value::OfWindow(pct)),
                _ => Err("a number of tokens such as 40k, or 0% to 100% of the window".to_string()),
            }
        }
        SettingKind::Tokens | SettingKind::Bytes | SettingKind::Millis => {
            parse_up_to(given, MAX_AMOUNT)
        }
        SettingKind::Count => parse_up_to(given, MAX_COUNT),
        SettingKind::Whole => match given.parse::<i64>().map(|n| n.max(0).unsigned_abs()) {
            Ok(n) if n <= MAX_COUNT => Ok(Value::Int(n)),
            _ => Err(format!("a whole number up to {MAX_COUNT}; below 0 means 0")),
        },
        SettingKind::Percent => match given.strip_suffix('%').unwrap_or(given).parse::<u64>() {
            Ok(n) if n <= 100 => Ok(Value::Int(n)),
            _ => Err("a whole number from 0 to 100".to_string()),
        },
        SettingKind::Share => {
            let (number, of) = given.strip_suffix('%').map_or((given, 1.0), |n| (n, 100.0));
            match number.parse::<f64>() {
                Ok(x) if (0.0..=of).contains(&x) => Ok(Value::Real(x / of)),
                _ => Err("a share between 0 and 1, or 0% to 100%".to_string()),
            }
        }
        SettingKind::Flag => {
            given.parse::<bool>().map(Value::Flag).map_err(|_| "true or false".to_string())
        }
        SettingKind::Choice(words) if words.contains(&given) => {
            Ok(Value::Word(given.to_string().into()))
        }
        SettingKind::Choice(words) => Err(format!("one of {}", words.join(", "))),
        SettingKind::Text | SettingKind::Model => Ok(Value::Word(given.to_string().into())),
    }
}

fn parse_up_to(given: &str, max: u64) -> Result<Value, String> {
    match parse_quantity(given) {
        Some(n) if n <= max => Ok(Value::Int(n)),
        _ => Err(format!("a whole number from 0 to {max} such as 40000 or 40k")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct TestSettings {
        protect: u64,
        keep: u64,
        limit: Option<u64>,
        mode: Mode,
        turns: Option<u64>,
        model: Option<String>,
        share: f64,
        part: u64,
        on: bool,
        tools: String,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        A,
        B,
    }

    fn table() -> &'static [Setting] {
        let rows = serde_json::json!([
            ["protect", "tokens", 40_000],
            ["keep", "count", 3],
            ["limit", "limit", AUTO],
            ["mode", {"choice": ["a", "b"]}, "a"],
            ["turns", "whole", AUTO],
            ["model", "model", AUTO],
            ["share", "share", 0.5],
            ["part", "percent", 100],
            ["on", "flag", true],
            ["tools", "text", "none"],
        ]);
        let row = |row: &serde_json::Value| {
            let (name, kind, default) = (&row[0], &row[1], &row[2]);
            let json = serde_json::json!({
                "name": name, "kind": kind, "default": default, "help": "h", "source": "s"
            });
            Setting::deserialize(&*Box::leak(Box::new(json))).unwrap()
        };
        rows.as_array().unwrap().iter().map(row).collect::<Vec<_>>().leak()
    }

    fn values(text: &str) -> Result<Settings, SettingError> {
        Settings::parse("x", table(), text)
    }

    #[test]
    fn rows_are_read_as_a_struct() {
        let expected = TestSettings {
            protect: 40_000,
            keep: 3,
            limit: None,
            mode: Mode::A,
            turns: None,
            model: None,
            share: 0.5,
            part: 100,
            on: true,
            tools: "none".into(),
        };
        let read = |text| values(text).unwrap().read::<TestSettings>().unwrap();
        assert_eq!(read(""), expected);
        assert_eq!((read("mode=b").mode, read("turns=-1").turns), (Mode::B, Some(0)));
        assert!(values("").unwrap().read::<Mode>().is_err());
    }

    #[test]
    fn models_lists_named_models_only() {
        let s = values("model=claude-haiku-4-5").unwrap();
        assert_eq!(s.models().collect::<Vec<_>>(), [("model", "claude-haiku-4-5")]);
        assert_eq!(values("").unwrap().models().count(), 0);
    }

    #[test]
    fn values_are_parsed_or_refused_with_what_is_expected() {
        for (text, expected) in [
            ("protect=10k, mode=b", "mode=b,protect=10000"),
            ("limit=62.5%", "limit=62.5%"),
            ("part=60", "part=60"),
            ("part=60%", "part=60"),
            ("turns=-1", "turns=0"),
            ("turns=2", "turns=2"),
            ("turns=auto", "turns=auto"),
            ("keep=4294967295", "keep=4294967295"),
            // A text with commas or quotes is read back from its quoted form.
            (r#"tools="a, b",keep=4"#, r#"keep=4,tools="a, b""#),
            (r#"tools = "a ""b"", c" , keep=4"#, r#"keep=4,tools="a ""b"", c""#),
            (r#"keep=4,tools="limit=1,keep=2""#, r#"keep=4,tools="limit=1,keep=2""#),
            (r#"keep=4,tools="""#, "keep=4,tools="),
            (r#"keep=4,tools=say "hi""#, r#"keep=4,tools=say "hi""#),
        ] {
            let given = values(text).unwrap();
            assert_eq!(given.given_text(), expected);
            assert_eq!(values(expected).unwrap(), given, "{text}");
        }
        for (text, expected) in [
            ("protct=1", "no setting `protct`; did you mean protect"),
            ("mode=c", "one of a, b"),
            ("protect", "name=value"),
            ("protect=-1", "from 0 to 1000000000000"),
            ("protect=1000000000001", "from 0 to 1000000000000"),
            ("keep=50%", "from 0 to 4294967295"),
            ("keep=4294967296", "from 0 to 4294967295"),
            ("turns=two", "up to 4294967295; below 0 means 0"),
            ("turns=4294967296", "up to 4294967295; below 0 means 0"),
            ("limit=101%", "above 0 such as 40k, or 0.01% to 100% of the window"),
            ("limit=-1%", "above 0"),
            ("limit=%", "above 0"),
            ("limit=0%", "above 0"),
            ("limit=0", "above 0"),
            ("limit=0.0000001%", "above 0"),
            ("part=101%", "from 0 to 100"),
            ("part=%", "from 0 to 100"),
            ("part=6%%", "from 0 to 100"),
            ("part=1.5%", "from 0 to 100"),
            ("part=-1%", "from 0 to 100"),
            (r#"tools="a"#, "is not a quoted value"),
            (r#"tools="a" b"#, "is not a quoted value"),
            (r#"tools="a"",keep=4"#, "is not a quoted value"),
            (r#"tools="a"b"c""#, "is not a quoted value"),
        ] {
            let refused = values(text).unwrap_err().to_string();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }

    #[test]
    fn applied_scales_tokens_and_converts_percent_of_the_window() {
        for (text, scale, window, limit) in [
            ("limit=1001", 0.05, 0, 50),
            // The caller scales the window.
            ("limit=62.5%", 0.05, 10_000, 6_250),
            // A limit stays above 0.
            ("limit=0.01%", 1.0, 1_000, 1),
            ("limit=5", 0.05, 10_000, 1),
        ] {
            let s = values(text).unwrap().applied(scale, window).read::<TestSettings>().unwrap();
            assert_eq!((s.limit, s.keep), (Some(limit), 3), "{text}");
            assert_eq!(s.protect as f64, 40_000.0 * scale);
        }
    }
}
