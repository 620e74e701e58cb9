//! Expected results of a scenario, from its `[expect]` table.
//!
//! Only the harness knows the strategies and columns. Line numbers are kept for its error messages.

use std::fmt;

use ctxbench_util::nearest;
use serde::Deserialize;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::ScenarioReader;
use crate::error::LineFault;
use crate::toml_tree;

/// Checks of a scenario's outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    /// File of the expectations, as the user named it.
    pub file: String,
    /// Number of model requests of the reference.
    pub requests: Option<u64>,
    /// Number of steps of the recorded path.
    pub steps: Option<u64>,
    /// Checks of the rows of strategies.
    pub strategies: Vec<ExpectedRow>,
}

/// Expected values in the row of a strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedRow {
    /// Label of the strategy's row.
    pub label: String,
    /// Line number of the label.
    pub line: usize,
    /// Expected values, one per column.
    pub cells: Vec<ExpectedCell>,
}

/// Expected value of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedCell {
    pub column: String,
    /// Line number of the column name.
    pub line: usize,
    pub value: Expected,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// Exactly this number.
    Number(f64),
    /// Exactly this text. `n/a` = no value.
    Word(String),
    /// A number in this inclusive range. Each bound is optional.
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("additionalProperties" = crate::schema::row())))]
pub(crate) struct ExpectTable {
    /// Model requests of the reference.
    requests: Option<u64>,
    /// Steps of the recorded path.
    steps: Option<u64>,
}

/// Keys of `[expect]` other than tables of strategies.
pub(crate) const CHECKS: &[&str] = &["requests", "steps"];

/// A range of numbers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    min: Option<f64>,
    max: Option<f64>,
}

impl ScenarioReader<'_> {
    pub(super) fn expect(
        &self,
        tree: &DeTable<'_>,
        checks: Option<ExpectTable>,
    ) -> Result<Expect, LineFault> {
        let mut out = Expect { file: self.file.to_string(), ..Expect::default() };
        (out.requests, out.steps) = checks.map_or((None, None), |c| (c.requests, c.steps));
        let rows = tree.get("expect").and_then(|v| v.get_ref().as_table()).into_iter().flatten();
        for (key, check) in rows {
            let (name, line) = (key.get_ref().as_ref(), self.lines.line_at(key.span().start));
            match check.get_ref() {
                _ if CHECKS.contains(&name) => {}
                DeValue::Table(cells) => {
                    let cells = self.cells(cells)?;
                    out.strategies.push(ExpectedRow { label: name.into(), line, cells });
                }
                _ => {
                    return Err(LineFault::new(
                        line,
                        format!("unknown check {name:?}"),
                        "a known check or a table named after a strategy",
                        nearest::hint(name, CHECKS),
                    ));
                }
            }
        }
        Ok(out)
    }

    fn cells(&self, of: &DeTable<'_>) -> Result<Vec<ExpectedCell>, LineFault> {
        let mut out = Vec::new();
        for (key, value) in of {
            let (column, line) = (key.get_ref().to_string(), self.lines.line_at(key.span().start));
            let value = match (toml_tree::json(value, &self.lines)?, value.get_ref()) {
                (_, DeValue::Table(range)) => self.range(&column, range, line)?,
                (Value::String(word), _) => Expected::Word(word),
                (other, _) => match other.as_f64() {
                    Some(n) => Expected::Number(n),
                    None => return Err(unfit(&column, line)),
                },
            };
            out.push(ExpectedCell { column, line, value });
        }
        Ok(out)
    }

    fn range(&self, column: &str, of: &DeTable<'_>, line: usize) -> Result<Expected, LineFault> {
        let Range { min, max } = self.fields(of, line, "a range")?;
        match (min, max) {
            (None, None) => Err(unfit(column, line)),
            (Some(least), Some(most)) if least > most => Err(LineFault::new(
                line,
                format!("{column:?} is from {least} to {most}, which no number is"),
                "a min that is not above the max",
                "correct one of them",
            )),
            (least, most) => Ok(Expected::Within(least, most)),
        }
    }
}

fn unfit(column: &str, line: usize) -> LineFault {
    let expected =
        "a number, a word, or a range such as { min = 1, max = 2 } with one bound or both";
    LineFault::new(line, format!("{column:?} does not fit"), expected, "correct the value")
}
