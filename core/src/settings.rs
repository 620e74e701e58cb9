//! Typed settings of strategies: name, unit, default and where the default comes from.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Unit and range of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number of tokens; multiplied by a scenario's `scale`.
    Tokens,
    /// A number of bytes or characters standing for tokens; multiplied by a scenario's `scale`.
    Bytes,
    /// A count that is never scaled.
    Count,
    /// A whole number; one below zero means the same as zero.
    Whole,
    /// A whole number from 0 to 100.
    Percent,
    /// A share between 0 and 1.
    Share,
    /// Milliseconds.
    Millis,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A name or other text.
    Text,
    /// Name of a model of the catalogue; a recorded case may use a name of its own.
    Model,
}

/// A value of a setting. `Auto` means that the product derives it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// Whole number.
    Int(u64),
    /// Share.
    Real(f64),
    /// Flag.
    Flag(bool),
    /// Word.
    Word(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::Real(x) => write!(f, "{x}"),
            Value::Flag(b) => write!(f, "{b}"),
            Value::Word(w) => f.write_str(w),
        }
    }
}

/// The word that leaves a value to the product's own rule.
pub const AUTO: &str = "auto";

/// A default as a constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// Whole number.
    Int(u64),
    /// Share.
    Real(f64),
    /// Flag.
    Flag(bool),
    /// Word.
    Word(&'static str),
    /// Derived by the product; the text says how.
    Auto,
}

/// One setting of a strategy.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name on the command line.
    pub name: &'static str,
    /// Unit and range.
    pub kind: Kind,
    /// Default.
    pub default: Default,
    /// What it does.
    pub help: &'static str,
    /// Where the default comes from.
    pub source: &'static str,
}

/// A setting that cannot be used.
#[derive(Debug, Error, PartialEq)]
pub enum SettingError {
    /// No such setting.
    #[error("strategy `{strategy}` has no setting `{name}`; {hint}")]
    Unknown {
        /// Strategy.
        strategy: String,
        /// What was given.
        name: String,
        /// Nearest names, or all of them.
        hint: String,
    },
    /// A value that does not fit.
    #[error("setting `{name}` of `{strategy}` takes {expected}, not `{given}`")]
    BadValue {
        /// Strategy.
        strategy: String,
        /// Setting.
        name: String,
        /// What was given.
        given: String,
        /// What was expected.
        expected: String,
    },
    /// Not `name=value`.
    #[error("`{0}` is not a setting; write name=value, separated by commas")]
    NotAPair(String),
}

/// The values of one strategy's settings, defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Value>,
    given: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// Defaults of a strategy.
    pub fn defaults(table: &[Setting]) -> Self {
        let values = table
            .iter()
            .map(|s| {
                let v = match s.default {
                    Default::Int(n) => Value::Int(n),
                    Default::Real(x) => Value::Real(x),
                    Default::Flag(b) => Value::Flag(b),
                    Default::Word(w) => Value::Word(w.to_string()),
                    Default::Auto => Value::Word(AUTO.to_string()),
                };
                (s.name, v)
            })
            .collect();
        Settings { values, given: BTreeMap::new() }
    }

    /// Settings from `k=v,k=v` over the defaults.
    pub fn parse(strategy: &str, table: &'static [Setting], text: &str) -> Result<Self, SettingError> {
        let mut out = Settings::defaults(table);
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| SettingError::NotAPair(pair.to_string()))?;
            out.set(strategy, table, name.trim(), value.trim())?;
        }
        Ok(out)
    }

    /// Sets one value, checked against the table.
    pub fn set(&mut self, strategy: &str, table: &'static [Setting], name: &str, given: &str) -> Result<(), SettingError> {
        let Some(setting) = table.iter().find(|s| s.name == name) else {
            let names = table.iter().map(|s| s.name).collect::<Vec<_>>();
            let hint = if names.is_empty() { "it has none".to_string() } else { crate::nearest::hint(name, &names) };
            return Err(SettingError::Unknown { strategy: strategy.into(), name: name.into(), hint });
        };
        let value = parse_value(setting, given).map_err(|expected| SettingError::BadValue {
            strategy: strategy.into(),
            name: name.into(),
            given: given.into(),
            expected,
        })?;
        self.values.insert(setting.name, value.clone());
        self.given.insert(setting.name, value);
        Ok(())
    }

    /// A whole number; `None` where the product derives it.
    pub fn int(&self, name: &str) -> Option<u64> {
        match self.values.get(name) {
            Some(Value::Int(n)) => Some(*n),
            _ => None,
        }
    }

    /// A whole number that always has a default.
    pub fn num(&self, name: &str) -> u64 {
        self.int(name).unwrap_or_else(|| unreachable!("setting `{name}` has a numeric default"))
    }

    /// A share.
    pub fn real(&self, name: &str) -> Option<f64> {
        match self.values.get(name) {
            Some(Value::Real(x)) => Some(*x),
            _ => None,
        }
    }

    /// A flag.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.values.get(name), Some(Value::Flag(true)))
    }

    /// A flag whose default the product derives; `None` unless given.
    pub fn given_flag(&self, name: &str) -> Option<bool> {
        match self.values.get(name) {
            Some(Value::Flag(b)) => Some(*b),
            _ => None,
        }
    }

    /// A word; `auto` and absent are `None`.
    pub fn word(&self, name: &str) -> Option<&str> {
        match self.values.get(name) {
            Some(Value::Word(w)) if w != AUTO => Some(w),
            _ => None,
        }
    }

    /// Multiplies every absolute token or byte constant; used for scaled-down scenarios.
    pub fn scaled(&self, table: &[Setting], scale: f64) -> Self {
        let mut out = self.clone();
        for s in table.iter().filter(|s| matches!(s.kind, Kind::Tokens | Kind::Bytes)) {
            if let Some(Value::Int(n)) = out.values.get_mut(s.name) {
                *n = scale_tokens(*n, scale);
            }
        }
        out
    }

    /// Only what was set, as `k=v,k=v`; empty for pure defaults.
    pub fn given_text(&self) -> String {
        self.given.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(",")
    }

    /// All values in name order.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(k, v)| (*k, v))
    }
}

/// A token constant multiplied by a scale, rounded to the nearest whole number.
pub fn scale_tokens(n: u64, scale: f64) -> u64 {
    if scale == 1.0 { n } else { (n as f64 * scale).round() as u64 }
}

fn parse_value(setting: &Setting, given: &str) -> Result<Value, String> {
    if given == AUTO && setting.default == Default::Auto {
        return Ok(Value::Word(AUTO.into()));
    }
    match setting.kind {
        Kind::Tokens | Kind::Bytes | Kind::Count | Kind::Millis => {
            let plain: String = given.chars().filter(|c| *c != '_').collect();
            let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
                Some(d) => (d.to_string(), 1_000),
                None => (plain, 1),
            };
            digits
                .parse::<u64>()
                .ok()
                .and_then(|n| n.checked_mul(factor))
                .map(Value::Int)
                .ok_or_else(|| "a whole number such as 40000 or 40k".to_string())
        }
        Kind::Whole => match given.parse::<i64>() {
            Ok(n) => Ok(Value::Int(n.max(0).unsigned_abs())),
            Err(_) => Err("a whole number".to_string()),
        },
        Kind::Percent => match given.parse::<u64>() {
            Ok(n) if n <= 100 => Ok(Value::Int(n)),
            _ => Err("a whole number from 0 to 100".to_string()),
        },
        Kind::Share => match given.parse::<f64>() {
            Ok(x) if (0.0..=1.0).contains(&x) => Ok(Value::Real(x)),
            _ => Err("a share between 0 and 1".to_string()),
        },
        Kind::Flag => given.parse::<bool>().map(Value::Flag).map_err(|_| "true or false".to_string()),
        Kind::Choice(words) if words.contains(&given) => Ok(Value::Word(given.to_string())),
        Kind::Choice(words) => Err(format!("one of {}", words.join(", "))),
        Kind::Text | Kind::Model => Ok(Value::Word(given.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Setting] = &[
        Setting { name: "protect", kind: Kind::Tokens, default: Default::Int(40_000), help: "", source: "" },
        Setting { name: "keep", kind: Kind::Count, default: Default::Int(3), help: "", source: "" },
        Setting { name: "limit", kind: Kind::Tokens, default: Default::Auto, help: "", source: "" },
        Setting { name: "mode", kind: Kind::Choice(&["a", "b"]), default: Default::Word("a"), help: "", source: "" },
    ];

    #[test]
    fn reads_pairs_over_defaults() {
        let s = Settings::parse("x", TABLE, "protect=10k, mode=b").unwrap();
        assert_eq!((s.num("protect"), s.num("keep"), s.int("limit"), s.word("mode")), (10_000, 3, None, Some("b")));
        assert_eq!(s.given_text(), "mode=b,protect=10000");
    }

    #[test]
    fn scale_touches_tokens_only() {
        let s = Settings::parse("x", TABLE, "limit=1001").unwrap().scaled(TABLE, 0.05);
        assert_eq!((s.num("protect"), s.num("keep"), s.int("limit")), (2_000, 3, Some(50)));
    }

    #[test]
    fn errors_name_what_is_near_and_what_is_expected() {
        let e = Settings::parse("x", TABLE, "protct=1").unwrap_err().to_string();
        assert!(e.contains("protct") && e.contains("protect"), "{e}");
        let e = Settings::parse("x", TABLE, "mode=c").unwrap_err().to_string();
        assert!(e.contains("one of a, b"), "{e}");
        assert!(Settings::parse("x", TABLE, "protect").unwrap_err().to_string().contains("name=value"));
        assert!(Settings::parse("x", TABLE, "protect=-1").is_err());
    }

    #[test]
    fn a_whole_number_below_zero_is_zero() {
        const TURNS: &[Setting] = &[Setting { name: "turns", kind: Kind::Whole, default: Default::Auto, help: "", source: "" }];
        let value = |text: &str| Settings::parse("x", TURNS, text).map(|s| s.int("turns"));
        assert_eq!((value("turns=-1"), value("turns=2"), value("turns=auto")), (Ok(Some(0)), Ok(Some(2)), Ok(None)));
        assert!(value("turns=two").is_err());
    }
}
