//! Typed settings of strategies: name, unit, default and source of the default.
//!
//! [`settings!`](crate::settings!) generates two things from one table, so that they cannot
//! disagree: the rows that the command line, the lists and the reports show, and the struct that the
//! strategy reads.

mod pairs;
mod table;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

pub use self::pairs::{split_pair, split_pairs};
#[doc(hidden)]
pub use self::table::FromValue;
pub use self::table::SettingsTable;
use ctxbench_util::quantity::parse_quantity;

/// Unit and range of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    Choice(&'static [&'static str]),
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

/// A value of a setting. [`AUTO`] is a word: the product derives the value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Int(u64),
    /// A percentage of the model's context window, from 0 to 100.
    OfWindow(f64),
    /// A share between 0 and 1.
    Real(f64),
    Flag(bool),
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

#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Name on the command line.
    pub name: &'static str,
    /// Unit and range.
    pub kind: SettingKind,
    pub default: Value,
    /// Effect of the setting, for lists and `--help`.
    pub help: &'static str,
    /// Source of the default.
    pub source: &'static str,
}

impl Setting {
    /// Parses a value; the error says what the setting takes.
    fn parse(&self, given: &str) -> Result<Value, String> {
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

/// Values of one strategy's settings: the user's over the defaults. A strategy reads them as the
/// struct that [`settings!`](crate::settings!) generates from its table.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    table: &'static [Setting],
    values: BTreeMap<&'static str, Value>,
    given: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// Returns the defaults of a table.
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

    /// Returns a value as the type of its row. For [`settings!`](crate::settings!) only.
    #[doc(hidden)]
    pub fn read<T: FromValue>(&self, name: &str) -> T {
        self.values
            .get(name)
            .and_then(T::from_value)
            .expect("the struct and the values were made from one table")
    }

    /// Returns each setting that names a model, with the name.
    pub fn models(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.table.iter().filter(|s| matches!(s.kind, SettingKind::Model)).filter_map(
            |s| match self.values.get(s.name) {
                Some(Value::Word(w)) if w != AUTO => Some((s.name, &**w)),
                _ => None,
            },
        )
    }

    /// Returns the settings with the defaults of those that `reads` rejects.
    pub fn limited_to(&self, reads: impl Fn(&str) -> bool) -> Self {
        let mut out = self.clone();
        for s in self.table.iter().filter(|s| !reads(s.name)) {
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

    /// Returns all values by name.
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

    crate::settings! {
        struct TestSettings {
            /// tokens to keep
            protect: tokens = 40_000, "a";
            /// newest results to keep,
            /// of any tool
            keep: count = 3, "b";
            /// largest context
            limit: limit = auto, "c";
            /// mode
            mode: choice Mode { First = "a", Second = "b" } = First, "d";
            /// turns
            turns: whole = auto, "e";
            /// model
            model: model = auto, "f";
            /// share
            share: share = 0.5, "g";
            /// per cent
            part: percent = 100, "j";
            /// on or off
            on: flag = true, "h";
            /// tools
            tools: text = "none", "i";
        }
    }

    fn parse(text: &str) -> Result<TestSettings, SettingError> {
        Settings::parse("x", TestSettings::TABLE, text).map(|s| TestSettings::read(&s))
    }

    #[test]
    fn settings_row_makes_field_and_table_entry() {
        let s = parse("").unwrap();
        assert_eq!((s.share, s.on, &*s.tools, s.model), (0.5, true, "none", None));
        let row = |name: &str| TestSettings::TABLE.iter().find(|s| s.name == name).unwrap();
        assert_eq!(
            *row("keep"),
            Setting {
                name: "keep",
                kind: SettingKind::Count,
                default: Value::Int(3),
                help: "newest results to keep, of any tool",
                source: "b",
            }
        );
        assert_eq!(row("mode").kind, SettingKind::Choice(&["a", "b"]));
        assert_eq!(row("mode").default, Value::Word("a".into()));
    }

    #[test]
    fn models_lists_named_models_only() {
        let s = Settings::parse("x", TestSettings::TABLE, "model=claude-haiku-4-5").unwrap();
        assert_eq!(s.models().collect::<Vec<_>>(), [("model", "claude-haiku-4-5")]);
        assert_eq!(Settings::defaults(TestSettings::TABLE).models().count(), 0);
    }

    #[test]
    fn parse_overrides_defaults() {
        let values = Settings::parse("x", TestSettings::TABLE, "protect=10k, mode=b").unwrap();
        let s = TestSettings::read(&values);
        assert_eq!((s.protect, s.keep, s.limit, s.mode), (10_000, 3, None, Mode::Second));
        assert_eq!(values.given_text(), "mode=b,protect=10000");
    }

    #[test]
    fn applied_scales_tokens_only() {
        let values =
            Settings::parse("x", TestSettings::TABLE, "limit=1001").unwrap().applied(0.05, 0);
        let s = TestSettings::read(&values);
        assert_eq!((s.protect, s.keep, s.limit), (2_000, 3, Some(50)));
    }

    #[test]
    fn applied_converts_percent_of_window_to_tokens() {
        let given = Settings::parse("x", TestSettings::TABLE, "limit=62.5%").unwrap();
        assert_eq!(given.given_text(), "limit=62.5%");
        // The caller scales the window.
        assert_eq!(TestSettings::read(&given.applied(0.05, 10_000)).limit, Some(6_250));
        for wrong in ["limit=101%", "limit=-1%", "limit=%", "keep=50%", "limit=0%", "limit=0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limit_stays_above_zero() {
        let e = parse("limit=0.0000001%").unwrap_err().to_string();
        assert!(e.contains("above 0 such as 40k, or 0.01% to 100% of the window"), "{e}");
        for (given, scale, window) in [("limit=0.01%", 1.0, 1_000), ("limit=5", 0.05, 10_000)] {
            let given = Settings::parse("x", TestSettings::TABLE, given).unwrap();
            assert_eq!(TestSettings::read(&given.applied(scale, window)).limit, Some(1));
        }
    }

    #[test]
    fn percent_parses_with_and_without_sign() {
        for text in ["part=60", "part=60%"] {
            let values = Settings::parse("x", TestSettings::TABLE, text).unwrap();
            assert_eq!(
                (TestSettings::read(&values).part, values.given_text()),
                (60, "part=60".into())
            );
        }
        for wrong in ["part=101%", "part=%", "part=6%%", "part=1.5%", "part=-1%"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_suggest_names_and_expected_values() {
        let e = parse("protct=1").unwrap_err().to_string();
        assert!(e.contains("protct") && e.contains("protect"), "{e}");
        let e = parse("mode=c").unwrap_err().to_string();
        assert!(e.contains("one of a, b"), "{e}");
        assert!(parse("protect").unwrap_err().to_string().contains("name=value"));
        assert!(parse("protect=-1").is_err());
    }

    #[test]
    fn whole_below_zero_is_zero() {
        let value = |text: &str| parse(text).map(|s| s.turns);
        assert_eq!(
            (value("turns=-1"), value("turns=2"), value("turns=auto")),
            (Ok(Some(0)), Ok(Some(2)), Ok(None))
        );
        assert!(value("turns=two").is_err());
    }

    #[test]
    fn number_out_of_range_is_refused_with_the_range() {
        let e = parse("keep=4294967296").unwrap_err().to_string();
        assert!(e.contains("from 0 to 4294967295"), "{e}");
        assert_eq!(parse("keep=4294967295").unwrap().keep, u64::from(u32::MAX));
        let e = parse("protect=1000000000001").unwrap_err().to_string();
        assert!(e.contains("from 0 to 1000000000000"), "{e}");
        assert!(parse("turns=4294967296").is_err());
    }

    #[test]
    fn quoted_value_may_contain_commas_and_quotes() {
        for (text, tools) in [
            (r#"tools="a, b",keep=4"#, "a, b"),
            (r#"tools = "a ""b"", c" , keep=4"#, r#"a "b", c"#),
            (r#"keep=4,tools="limit=1,keep=2""#, "limit=1,keep=2"),
            (r#"keep=4,tools="""#, ""),
            (r#"keep=4,tools=say "hi""#, r#"say "hi""#),
        ] {
            let values = Settings::parse("x", TestSettings::TABLE, text).unwrap();
            let s = TestSettings::read(&values);
            assert_eq!((&*s.tools, s.keep), (tools, 4), "{text}");
            let again = Settings::parse("x", TestSettings::TABLE, &values.given_text()).unwrap();
            assert_eq!(again, values, "{text}");
        }
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for text in [r#"tools="a"#, r#"tools="a" b"#, r#"tools="a"",keep=4"#, r#"tools="a"b"c""#] {
            assert!(matches!(parse(text), Err(SettingError::Quote(_))), "{text}");
        }
    }
}
