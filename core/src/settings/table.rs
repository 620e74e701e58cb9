//! The struct that a strategy reads its settings from, generated with its table.

use std::sync::Arc;

use super::{AUTO, Setting, Settings, Value};

/// A struct that [`settings!`](crate::settings!) generates from a table.
pub trait SettingsTable {
    /// The rows, one for each field.
    const TABLE: &'static [Setting];

    /// Reads the fields from values of [`SettingsTable::TABLE`]; panics for those of another table.
    fn read(values: &Settings) -> Self;
}

/// Empty table for strategies without settings.
impl SettingsTable for () {
    const TABLE: &'static [Setting] = &[];

    fn read(_values: &Settings) -> Self {}
}

/// A type that a row of [`settings!`](crate::settings!) can have.
#[doc(hidden)]
pub trait FromValue: Sized {
    /// Converts a value; `None` if it has another type.
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
        if let Value::Word(w) = value { Some((**w).into()) } else { None }
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

/// Generates a table of settings and the struct that a strategy reads them from.
///
/// A row is `name: kind = default, "source of the default";` below its help, a doc comment. Kinds
/// are those of [`SettingKind`](crate::settings::SettingKind) in lower case; `choice` names the
/// enum to generate and its values. With the default `auto` the strategy decides, and the field is
/// an `Option`.
///
/// ```
/// ctxbench_core::settings! {
///     /// Settings of a strategy.
///     pub struct ExampleSettings {
///         /// tokens from which it compacts; auto = 90 % of the window
///         limit: tokens = auto, "docs/sources/example.md";
///         /// first to be removed
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

    (@kind tokens) => { $crate::settings::SettingKind::Tokens };
    (@kind limit) => { $crate::settings::SettingKind::Limit };
    (@kind bytes) => { $crate::settings::SettingKind::Bytes };
    (@kind count) => { $crate::settings::SettingKind::Count };
    (@kind whole) => { $crate::settings::SettingKind::Whole };
    (@kind percent) => { $crate::settings::SettingKind::Percent };
    (@kind share) => { $crate::settings::SettingKind::Share };
    (@kind millis) => { $crate::settings::SettingKind::Millis };
    (@kind flag) => { $crate::settings::SettingKind::Flag };
    (@kind text) => { $crate::settings::SettingKind::Text };
    (@kind model) => { $crate::settings::SettingKind::Model };
    (@kind choice $choice:ident) => { $crate::settings::SettingKind::Choice($choice::WORDS) };

    (@default $kind:ident $($choice:ident)? = auto) => { $crate::settings::Value::AUTO };
    (@default choice $choice:ident = $default:ident) => {
        $crate::settings::Value::Word(std::borrow::Cow::Borrowed($choice::$default.word()))
    };
    (@default flag = $default:literal) => { $crate::settings::Value::Flag($default) };
    (@default share = $default:literal) => { $crate::settings::Value::Real($default) };
    (@default text = $default:literal) => { $crate::settings::Value::Word(std::borrow::Cow::Borrowed($default)) };
    (@default $number:ident = $default:literal) => {
        $crate::settings::Value::Int($default)
    };
}
