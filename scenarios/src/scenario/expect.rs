//! Expected results of a scenario, from its `[expect]` table.
//!
//! Only the harness knows the strategies and columns. Line numbers are kept for its error messages.

use std::fmt;

use ctxbench_util::nearest;
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use super::ScenarioReader;
use crate::error::InputError;

/// Checks of a scenario's outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    /// File of the expectations, as the user named it.
    pub file: String,
    /// Number of model requests of the reference.
    pub requests: Option<u64>,
    /// Number of steps of the recorded path.
    pub steps: Option<u64>,
    pub strategies: Vec<ExpectedRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedRow {
    /// Label of the strategy's row.
    pub label: String,
    /// Line number of the label.
    pub line: usize,
    /// Expected values, one per column.
    pub cells: Vec<ExpectedCell>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCell {
    pub column: String,
    /// Line number of the column name.
    pub line: usize,
    pub value: Expected,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Expected {
    /// Exactly this number.
    Number(f64),
    /// Exactly this text. `n/a` = no value.
    Word(String),
    /// A number in this inclusive range. Each bound is optional.
    #[serde(deserialize_with = "range")]
    Within(Option<f64>, Option<f64>),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Number(n) => write!(f, "{n}"),
            Expected::Word(w) => f.write_str(w),
            Expected::Within(Some(least), Some(most)) => write!(f, "from {least} to {most}"),
            Expected::Within(Some(least), None) => write!(f, "at least {least}"),
            Expected::Within(None, Some(most)) => write!(f, "at most {most}"),
            Expected::Within(None, None) => f.write_str("any number"),
        }
    }
}

/// Checks of the outcome; a table named after a strategy has checks of its row.
#[derive(Deserialize)]
pub(crate) struct ExpectTable {
    /// Model requests of the reference.
    requests: Option<u64>,
    /// Steps of the recorded path.
    steps: Option<u64>,
}

/// Keys of `[expect]` other than tables of strategies.
const CHECKS: &[&str] = &["requests", "steps"];

fn range<'de, D: Deserializer<'de>>(from: D) -> Result<(Option<f64>, Option<f64>), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Range {
        min: Option<f64>,
        max: Option<f64>,
    }
    Range::deserialize(from).map(|Range { min, max }| (min, max))
}

impl ScenarioReader<'_> {
    pub(super) fn expect(&self, checks: Option<ExpectTable>) -> Result<Expect, InputError> {
        let mut out = Expect { file: self.file.to_string(), ..Expect::default() };
        (out.requests, out.steps) = checks.map_or((None, None), |c| (c.requests, c.steps));
        let table = self.tree.get("expect").and_then(|v| v.get_ref().as_table());
        for (key, check) in table.into_iter().flatten() {
            let (name, line) = (key.get_ref().as_ref(), self.lines.line_at(key.span().start));
            match check.get_ref().as_table() {
                _ if CHECKS.contains(&name) => {}
                Some(cells) => {
                    let cells = cells.iter().map(|(key, value)| {
                        let line = self.lines.line_at(key.span().start);
                        cell(key.get_ref(), value, line)
                    });
                    let cells = cells.collect::<Result<_, _>>()?;
                    out.strategies.push(ExpectedRow { label: name.into(), line, cells });
                }
                None => {
                    let expected = "a known check or a table named after a strategy";
                    let what = format!("unknown check {name:?}");
                    return Err(InputError::new(line, what, expected, nearest::hint(name, CHECKS)));
                }
            }
        }
        Ok(out)
    }
}

fn cell(
    column: &str,
    value: &Spanned<DeValue<'_>>,
    line: usize,
) -> Result<ExpectedCell, InputError> {
    let is_sound = |value: &Expected| match value {
        Expected::Number(n) => n.is_finite(),
        Expected::Word(_) => true,
        Expected::Within(Some(min), Some(max)) => min <= max,
        Expected::Within(min, max) => min.or(*max).is_some(),
    };
    let value = Expected::deserialize(ValueDeserializer::from(value.clone()));
    let value = value.ok().filter(is_sound);
    let column = column.to_string();
    value.map(|value| ExpectedCell { column: column.clone(), line, value }).ok_or_else(|| {
        let expected =
            "a number, a word, or a range such as { min = 1, max = 2 } with one bound or both";
        InputError::new(line, format!("{column:?} does not fit"), expected, "correct the value")
    })
}
