//! Typed settings of strategies: name, unit, default and where the default comes from.
//!
//! [`settings!`](crate::settings!) turns one table into two things that cannot disagree: the rows
//! that the command line, the lists and the reports show, and the struct that the strategy reads.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// Unit and range of a setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number of tokens, multiplied by a scenario's `scale`, or per cent of the model's context
    /// window.
    Tokens,
    /// The same, but above 0: what every request has at once limits nothing. A share is at least
    /// [`LEAST_SHARE`].
    Limit,
    /// A number of bytes or characters standing for tokens; multiplied by a scenario's `scale`.
    Bytes,
    /// A count that is never scaled.
    Count,
    /// A whole number; one below zero means the same as zero.
    Whole,
    /// A whole number from 0 to 100, with or without its sign.
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

/// Per cent of the window that a limit is at least: less is no token of a window of 5,000.
pub const LEAST_SHARE: f64 = 0.01;

impl Kind {
    fn is_scaled(self) -> bool {
        matches!(self, Kind::Tokens | Kind::Limit | Kind::Bytes)
    }
}

/// A value of a setting. `Auto` means that the product derives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Whole number.
    Int(u64),
    /// Per cent of the model's context window, from 0 to 100.
    OfWindow(f64),
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
            Value::OfWindow(pct) => write!(f, "{pct}%"),
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
pub enum DefaultValue {
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

impl From<DefaultValue> for Value {
    fn from(default: DefaultValue) -> Value {
        match default {
            DefaultValue::Int(n) => Value::Int(n),
            DefaultValue::Real(x) => Value::Real(x),
            DefaultValue::Flag(b) => Value::Flag(b),
            DefaultValue::Word(w) => Value::Word(w.to_string()),
            DefaultValue::Auto => Value::Word(AUTO.to_string()),
        }
    }
}

/// One setting of a strategy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Name on the command line.
    pub name: &'static str,
    /// Unit and range.
    pub kind: Kind,
    /// Default.
    pub default: DefaultValue,
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
    #[error("`{0}` is not a setting; write name=value, separated by commas (no value holds one)")]
    NotAPair(String),
}

/// The values of one strategy's settings as given by a user, defaults filled in. A strategy gets
/// them as the struct that [`settings!`](crate::settings!) makes of its table.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    table: &'static [Setting],
    values: BTreeMap<&'static str, Value>,
    given: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// Defaults of a strategy.
    pub fn defaults(table: &'static [Setting]) -> Self {
        let values = table.iter().map(|s| (s.name, s.default.into())).collect();
        Settings { table, values, given: BTreeMap::new() }
    }

    /// Settings from `k=v,k=v` over the defaults.
    pub fn parse(
        strategy: &str,
        table: &'static [Setting],
        text: &str,
    ) -> Result<Self, SettingError> {
        let mut out = Settings::defaults(table);
        for pair in text.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (name, value) =
                pair.split_once('=').ok_or_else(|| SettingError::NotAPair(pair.to_string()))?;
            out.set(strategy, name.trim(), value.trim())?;
        }
        Ok(out)
    }

    /// Sets one value unless it is given already, checked against the table.
    pub fn fill(&mut self, strategy: &str, name: &str, value: &str) -> Result<(), SettingError> {
        if self.given.contains_key(name) { Ok(()) } else { self.set(strategy, name, value) }
    }

    /// Sets one value, whatever was given before, checked against the table.
    pub fn set(&mut self, strategy: &str, name: &str, given: &str) -> Result<(), SettingError> {
        let Some(setting) = self.table.iter().find(|s| s.name == name) else {
            let names = self.table.iter().map(|s| s.name).collect::<Vec<_>>();
            let hint = if names.is_empty() {
                "it has none".to_string()
            } else {
                crate::nearest::hint(name, &names)
            };
            return Err(SettingError::Unknown {
                strategy: strategy.into(),
                name: name.into(),
                hint,
            });
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

    /// One value as its row types it. For [`settings!`](crate::settings!) only.
    #[doc(hidden)]
    pub fn read<T: FromValue>(&self, name: &str) -> T {
        self.values
            .get(name)
            .and_then(T::from_value)
            .expect("the struct and the values were made from one table")
    }

    /// Names of models among the values, with the setting that names each.
    pub fn models(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.table.iter().filter(|s| matches!(s.kind, Kind::Model)).filter_map(|s| {
            match self.values.get(s.name) {
                Some(Value::Word(w)) if w != AUTO => Some((s.name, w.as_str())),
                _ => None,
            }
        })
    }

    /// As they hold for a model with a window of so many tokens, scale applied: every absolute
    /// token or byte constant is multiplied by the scale, per cent of the window become tokens. A
    /// limit stays above 0, however small scale and window are.
    pub fn applied(&self, scale: f64, window: u64) -> Self {
        let mut out = self.clone();
        for s in self.table.iter().filter(|s| s.kind.is_scaled()) {
            let Some(value) = out.values.get_mut(s.name) else { continue };
            let tokens = match *value {
                Value::Int(n) => scale_tokens(n, scale),
                Value::OfWindow(pct) => scale_tokens(window, pct / 100.0),
                _ => continue,
            };
            *value = Value::Int(tokens.max(u64::from(s.kind == Kind::Limit)));
        }
        out
    }

    /// What was set.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.given.iter().map(|(k, v)| (*k, v))
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

/// A struct made of a table of settings by [`settings!`](crate::settings!).
pub trait SettingsTable {
    /// The rows, one for each field.
    const TABLE: &'static [Setting];

    /// The values, which must have been made from [`SettingsTable::TABLE`].
    fn read(values: &Settings) -> Self;
}

/// For strategies without settings.
impl SettingsTable for () {
    const TABLE: &'static [Setting] = &[];

    fn read(_values: &Settings) -> Self {}
}

/// A type that a row of [`settings!`](crate::settings!) can have.
#[doc(hidden)]
pub trait FromValue: Sized {
    /// The value; `None` if it is of another type.
    fn from_value(value: &Value) -> Option<Self>;
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Int(n) = value { Some(*n) } else { None }
    }
}

impl FromValue for f64 {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Real(x) = value { Some(*x) } else { None }
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Flag(b) = value { Some(*b) } else { None }
    }
}

impl FromValue for Arc<str> {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Word(w) = value { Some(w.as_str().into()) } else { None }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word(w) if w == AUTO => Some(None),
            given => T::from_value(given).map(Some),
        }
    }
}

/// Makes a table of settings and the struct that a strategy reads them from.
///
/// A row is `name: kind = default, "where the default comes from";` below its help, which is a doc
/// comment. Kinds are those of [`Kind`] in lower case; `choice` names the enum that it makes and
/// its words. The default `auto` leaves the value to the strategy: the field is an `Option` then.
///
/// ```
/// ctxbench_core::settings! {
///     /// Settings of a strategy.
///     pub struct ExampleSettings {
///         /// tokens from which it compacts; auto = 90 % of the window
///         limit: tokens = auto, "where this is written";
///         /// what goes first
///         order: choice Order { Oldest = "oldest", Largest = "largest" } = Oldest, "ours";
///     }
/// }
/// use ctxbench_core::settings::{Settings, SettingsTable};
/// let given = Settings::parse("example", ExampleSettings::TABLE, "limit=90k").unwrap();
/// let s = ExampleSettings::read(&given);
/// assert_eq!((s.limit, s.order), (Some(90_000), Order::Oldest));
/// ```
#[macro_export]
macro_rules! settings {
    (
        $(#[$of_struct:meta])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $help:literal])+
                $field:ident: $kind:ident
                    $($choice:ident {
                        $($(#[$of_variant:meta])* $variant:ident = $word:literal),+ $(,)?
                    })?
                    = $default:tt, $source:literal;
            )+
        }
    ) => {
        $(#[$of_struct])*
        #[derive(Clone, Debug)]
        $vis struct $name {
            $(
                $(#[doc = $help])+
                $vis $field: $crate::settings!(@type $kind $($choice)? = $default),
            )+
        }

        $($(
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            $vis enum $choice { $($(#[$of_variant])* $variant),+ }

            impl $choice {
                const WORDS: &'static [&'static str] = &[$($word),+];

                const fn word(self) -> &'static str {
                    match self { $(Self::$variant => $word),+ }
                }
            }

            impl $crate::settings::FromValue for $choice {
                fn from_value(value: &$crate::settings::Value) -> Option<Self> {
                    match value {
                        $($crate::settings::Value::Word(w) if w == $word => Some(Self::$variant),)+
                        _ => None,
                    }
                }
            }
        )?)+

        impl $crate::settings::SettingsTable for $name {
            const TABLE: &'static [$crate::settings::Setting] = &[
                $($crate::settings::Setting {
                    name: stringify!($field),
                    kind: $crate::settings!(@kind $kind $($choice)?),
                    default: $crate::settings!(@default $kind $($choice)? = $default),
                    help: concat!($($help),+).trim_ascii_start(),
                    source: $source,
                }),+
            ];

            fn read(values: &$crate::settings::Settings) -> Self {
                $name { $($field: values.read(stringify!($field))),+ }
            }
        }
    };

    (@type $kind:ident $($choice:ident)? = auto) => {
        Option<$crate::settings!(@type $kind $($choice)? = given)>
    };
    (@type choice $choice:ident = $default:tt) => { $choice };
    (@type flag = $default:tt) => { bool };
    (@type share = $default:tt) => { f64 };
    (@type text = $default:tt) => { std::sync::Arc<str> };
    (@type model = $default:tt) => { std::sync::Arc<str> };
    (@type $number:ident = $default:tt) => { u64 };

    (@kind tokens) => { $crate::settings::Kind::Tokens };
    (@kind limit) => { $crate::settings::Kind::Limit };
    (@kind bytes) => { $crate::settings::Kind::Bytes };
    (@kind count) => { $crate::settings::Kind::Count };
    (@kind whole) => { $crate::settings::Kind::Whole };
    (@kind percent) => { $crate::settings::Kind::Percent };
    (@kind share) => { $crate::settings::Kind::Share };
    (@kind millis) => { $crate::settings::Kind::Millis };
    (@kind flag) => { $crate::settings::Kind::Flag };
    (@kind text) => { $crate::settings::Kind::Text };
    (@kind model) => { $crate::settings::Kind::Model };
    (@kind choice $choice:ident) => { $crate::settings::Kind::Choice($choice::WORDS) };

    (@default $kind:ident $($choice:ident)? = auto) => { $crate::settings::DefaultValue::Auto };
    (@default choice $choice:ident = $default:ident) => {
        $crate::settings::DefaultValue::Word($choice::$default.word())
    };
    (@default flag = $default:literal) => { $crate::settings::DefaultValue::Flag($default) };
    (@default share = $default:literal) => { $crate::settings::DefaultValue::Real($default) };
    (@default text = $default:literal) => { $crate::settings::DefaultValue::Word($default) };
    (@default $number:ident = $default:literal) => {
        $crate::settings::DefaultValue::Int($default)
    };
}

/// A token constant multiplied by a scale, rounded to the nearest whole number.
pub fn scale_tokens(n: u64, scale: f64) -> u64 {
    if scale == 1.0 { n } else { (n as f64 * scale).round() as u64 }
}

fn parse_value(setting: &Setting, given: &str) -> Result<Value, String> {
    if given == AUTO && setting.default == DefaultValue::Auto {
        return Ok(Value::Word(AUTO.into()));
    }
    match setting.kind {
        Kind::Limit => match parse_value(&Setting { kind: Kind::Tokens, ..*setting }, given) {
            Ok(Value::Int(n)) if n > 0 => Ok(Value::Int(n)),
            Ok(Value::OfWindow(pct)) if pct >= LEAST_SHARE => Ok(Value::OfWindow(pct)),
            _ => Err(format!(
                "a number of tokens above 0 such as 40k, or {LEAST_SHARE}% to 100% of the window"
            )),
        },
        Kind::Tokens if given.ends_with('%') => match given.trim_end_matches('%').parse::<f64>() {
            Ok(pct) if (0.0..=100.0).contains(&pct) => Ok(Value::OfWindow(pct)),
            _ => Err("a number of tokens such as 40k, or 0% to 100% of the window".to_string()),
        },
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
        Kind::Percent => match given.strip_suffix('%').unwrap_or(given).parse::<u64>() {
            Ok(n) if n <= 100 => Ok(Value::Int(n)),
            _ => Err("a whole number from 0 to 100".to_string()),
        },
        Kind::Share => {
            let (number, of) = given.strip_suffix('%').map_or((given, 1.0), |n| (n, 100.0));
            match number.parse::<f64>() {
                Ok(x) if (0.0..=of).contains(&x) => Ok(Value::Real(x / of)),
                _ => Err("a share between 0 and 1, or 0% to 100%".to_string()),
            }
        }
        Kind::Flag => {
            given.parse::<bool>().map(Value::Flag).map_err(|_| "true or false".to_string())
        }
        Kind::Choice(words) if words.contains(&given) => Ok(Value::Word(given.to_string())),
        Kind::Choice(words) => Err(format!("one of {}", words.join(", "))),
        Kind::Text | Kind::Model => Ok(Value::Word(given.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::settings! {
        struct Given {
            /// tokens that stay
            protect: tokens = 40_000, "a";
            /// newest results that stay,
            /// of any tool
            keep: count = 3, "b";
            /// largest context
            limit: limit = auto, "c";
            /// what happens
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

    fn parse(text: &str) -> Result<Given, SettingError> {
        Settings::parse("x", Given::TABLE, text).map(|s| Given::read(&s))
    }

    #[test]
    fn a_row_makes_the_field_and_the_entry_of_the_table() {
        let s = parse("").unwrap();
        assert_eq!((s.share, s.on, &*s.tools, s.model), (0.5, true, "none", None));
        let row = |name: &str| *Given::TABLE.iter().find(|s| s.name == name).unwrap();
        assert_eq!(
            row("keep"),
            Setting {
                name: "keep",
                kind: Kind::Count,
                default: DefaultValue::Int(3),
                help: "newest results that stay, of any tool",
                source: "b",
            }
        );
        assert_eq!(row("mode").kind, Kind::Choice(&["a", "b"]));
        assert_eq!(row("mode").default, DefaultValue::Word("a"));
    }

    #[test]
    fn models_are_those_that_are_named() {
        let s = Settings::parse("x", Given::TABLE, "model=claude-haiku-4-5").unwrap();
        assert_eq!(s.models().collect::<Vec<_>>(), [("model", "claude-haiku-4-5")]);
        assert_eq!(Settings::defaults(Given::TABLE).models().count(), 0);
    }

    #[test]
    fn reads_pairs_over_defaults() {
        let values = Settings::parse("x", Given::TABLE, "protect=10k, mode=b").unwrap();
        let s = Given::read(&values);
        assert_eq!((s.protect, s.keep, s.limit, s.mode), (10_000, 3, None, Mode::Second));
        assert_eq!(values.given_text(), "mode=b,protect=10000");
    }

    #[test]
    fn scale_touches_tokens_only() {
        let values = Settings::parse("x", Given::TABLE, "limit=1001").unwrap().applied(0.05, 0);
        let s = Given::read(&values);
        assert_eq!((s.protect, s.keep, s.limit), (2_000, 3, Some(50)));
    }

    #[test]
    fn per_cent_of_the_window_become_tokens_of_the_window_that_is_met() {
        let given = Settings::parse("x", Given::TABLE, "limit=62.5%").unwrap();
        assert_eq!(given.given_text(), "limit=62.5%");
        // The window was scaled already.
        assert_eq!(Given::read(&given.applied(0.05, 10_000)).limit, Some(6_250));
        for wrong in ["limit=101%", "limit=-1%", "limit=%", "keep=50%", "limit=0%", "limit=0"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_limit_is_of_nothing() {
        let e = parse("limit=0.0000001%").unwrap_err().to_string();
        assert!(e.contains("above 0 such as 40k, or 0.01% to 100% of the window"), "{e}");
        for (given, scale, window) in [("limit=0.01%", 1.0, 1_000), ("limit=5", 0.05, 10_000)] {
            let given = Settings::parse("x", Given::TABLE, given).unwrap();
            assert_eq!(Given::read(&given.applied(scale, window)).limit, Some(1));
        }
    }

    #[test]
    fn per_cent_are_written_with_their_sign_or_without() {
        for text in ["part=60", "part=60%"] {
            let values = Settings::parse("x", Given::TABLE, text).unwrap();
            assert_eq!((Given::read(&values).part, values.given_text()), (60, "part=60".into()));
        }
        for wrong in ["part=101%", "part=%", "part=6%%", "part=1.5%", "part=-1%"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_name_what_is_near_and_what_is_expected() {
        let e = parse("protct=1").unwrap_err().to_string();
        assert!(e.contains("protct") && e.contains("protect"), "{e}");
        let e = parse("mode=c").unwrap_err().to_string();
        assert!(e.contains("one of a, b"), "{e}");
        assert!(parse("protect").unwrap_err().to_string().contains("name=value"));
        assert!(parse("protect=-1").is_err());
    }

    #[test]
    fn a_whole_number_below_zero_is_zero() {
        let value = |text: &str| parse(text).map(|s| s.turns);
        assert_eq!(
            (value("turns=-1"), value("turns=2"), value("turns=auto")),
            (Ok(Some(0)), Ok(Some(2)), Ok(None))
        );
        assert!(value("turns=two").is_err());
    }
}
