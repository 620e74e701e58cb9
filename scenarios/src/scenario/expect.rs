//! Expected results of a scenario, from its `[expect]` table.
//!
//! Only the harness knows the strategies and columns. Line numbers are kept for its error messages.

use std::fmt;

use ctxbench_core::nearest;
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

/// Keys of `[expect]` other than tables of strategies.
pub(crate) const CHECKS: &[&str] = &["requests", "steps"];

/// Keys of a range.
pub(crate) const BOUNDS: [&str; 2] = ["min", "max"];

impl ScenarioReader<'_> {
    pub(super) fn expect(&self, tree: &DeTable<'_>) -> Result<Expect, LineFault> {
        let mut out = Expect { file: self.file.to_string(), ..Expect::default() };
        let Some(value) = tree.get("expect") else { return Ok(out) };
        let DeValue::Table(checks) = value.get_ref() else {
            let line = self.line_of(tree, "expect");
            let what = "\"expect\" is not a table";
            return Err(LineFault::new(line, what, "[expect]", "write it as a table"));
        };
        for (key, check) in checks {
            let (name, line) = (key.get_ref().as_ref(), self.lines.line_at(key.span().start));
            match (name, check.get_ref()) {
                ("requests", n) => out.requests = Some(whole_number(name, n, line)?),
                ("steps", n) => out.steps = Some(whole_number(name, n, line)?),
                (_, DeValue::Table(cells)) => {
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
            let value = match (toml_tree::json(value.get_ref(), line)?, value.get_ref()) {
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
        self.known_keys(of, &BOUNDS, "a range")?;
        let bound = |key: &str| match of.get(key) {
            None => Ok(None),
            Some(v) => match toml_tree::json(v.get_ref(), line)?.as_f64() {
                None => Err(unfit(column, self.line_of(of, key))),
                bound => Ok(bound),
            },
        };
        match (bound("min")?, bound("max")?) {
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

fn whole_number(key: &str, value: &DeValue<'_>, line: usize) -> Result<u64, LineFault> {
    toml_tree::json(value, line)?.as_u64().ok_or_else(|| {
        let what = format!("{key:?} does not fit");
        LineFault::new(line, what, "a whole number from 0 on", "correct the number")
    })
}

fn unfit(column: &str, line: usize) -> LineFault {
    let expected =
        "a number, a word, or a range such as { min = 1, max = 2 } with one bound or both";
    LineFault::new(line, format!("{column:?} does not fit"), expected, "correct the value")
}
