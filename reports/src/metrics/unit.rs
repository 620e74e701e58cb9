//! Units of columns, and their display.

use serde::Serialize;

use crate::fmt;

/// Unit of the numbers in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Unit {
    Tokens,
    Usd,
    Percent,
    /// A value between 0 and 1, displayed unchanged.
    Ratio,
    /// A value between 0 and 1, displayed in per cent.
    Share,
    /// Milliseconds, displayed as seconds.
    Millis,
    /// Number of items.
    Count,
}

impl Unit {
    /// Maximum value of a column in this unit.
    pub(super) fn most(self) -> f64 {
        match self {
            Unit::Percent => 100.0,
            Unit::Ratio | Unit::Share => 1.0,
            Unit::Tokens | Unit::Usd | Unit::Millis | Unit::Count => f64::INFINITY,
        }
    }

    /// Converts a number of the column to the displayed unit.
    pub(crate) fn converted(self, x: f64) -> f64 {
        match self {
            Unit::Share => x * 100.0,
            Unit::Millis => x / 1_000.0,
            _ => x,
        }
    }

    /// Formats a number of the column, without its unit.
    pub(crate) fn format_value(self, x: f64) -> String {
        let x = self.converted(x);
        match self {
            Unit::Tokens => fmt::tokens(x),
            Unit::Usd => fmt::usd(x),
            Unit::Percent | Unit::Share => fmt::pct(x),
            Unit::Ratio => fmt::ratio(x),
            Unit::Millis => fmt::seconds(x),
            Unit::Count => fmt::count(x),
        }
    }

    /// Rounds a number of the column, converted, as it is printed.
    pub(crate) fn printed(self, x: f64) -> f64 {
        self.format_value(x).parse().unwrap_or(x)
    }

    /// Suffix of a formatted number, or of a heading over such numbers.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Unit::Usd => " $",
            Unit::Percent | Unit::Share => " %",
            Unit::Millis => " s",
            Unit::Tokens | Unit::Ratio | Unit::Count => "",
        }
    }

    /// Suffix of a formatted change in this unit.
    pub(crate) fn of_change(self) -> &'static str {
        match self {
            Unit::Percent | Unit::Share => " points",
            _ => self.suffix(),
        }
    }

    /// Formats a number with its unit, for a sentence.
    pub(crate) fn describe(self, x: f64) -> String {
        match self {
            Unit::Usd => format!("${}", self.format_value(x)),
            _ => format!("{}{}", self.format_value(x), self.suffix()),
        }
    }

    /// True if a change is more meaningful in per cent than in the unit itself.
    pub(crate) fn is_relative(self) -> bool {
        matches!(self, Unit::Tokens | Unit::Usd | Unit::Millis)
    }
}
