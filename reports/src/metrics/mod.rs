//! Metrics of a run. [`METRICS`] has an entry for each, with all data that reports need: the
//! columns of `summary.csv`, `--max` and `--min`, tables, the gate and comparisons are derived from
//! it.

mod table;
mod unit;

use std::ops::RangeInclusive;
use std::sync::Arc;

use ctxbench_core::strategy::Standing;
use serde::Serialize;

use crate::record::{RunRecord, Status};

pub(crate) use table::METRICS;
pub(crate) use unit::Unit;

/// A cell of `summary.csv`.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Int(u64),
    Real(f64),
    Word(String),
    /// Not applicable or unknown.
    Na,
}

/// A column of `summary.csv`, and the other views that show it.
///
/// Each view sorts its metrics by their rank in it. Ranks are ten apart, so that a new metric fits
/// between two others.
pub(crate) struct Metric {
    /// Name of the column, also for `--max` and `--min`.
    pub(crate) column: &'static str,
    kind: ColumnKind,
    read: fn(&RunRecord) -> Cell,
    pub(crate) unit: Unit,
    /// True if the value can be below 0.
    signed: bool,
    /// True if only a replay can measure the metric; a recording does not contain it.
    replayed: bool,
    pub(crate) better: Better,
    /// Name for people, without the unit.
    pub(crate) name: &'static str,
    /// Explanation for new readers; empty for text columns.
    pub(crate) help: &'static str,
    /// Heading in the tables of strategies, with line breaks.
    pub(crate) scored: Rank<&'static str>,
    /// True for an axis of the Pareto front. Requires [`Metric::judged`].
    pub(crate) on_front: bool,
    /// True for metrics that are displayed where there is little room: plots of swept settings and
    /// narrow tables of differences. Requires [`Metric::judged`].
    pub(crate) headline: bool,
    /// Set if differences over sessions are judged.
    pub(crate) judged: Rank<()>,
    /// Weight in `ctxbench compare` of one unit of change, or of one per cent; used to sort rows.
    pub(crate) compared: Rank<f64>,
    /// Set if the metric is in the rows of a baseline, and compared with them.
    pub(crate) gated: Rank<Gate>,
}

/// Rank of a metric in a view, with the data that the view needs.
pub(crate) type Rank<T> = Option<(u16, T)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnKind {
    /// Identifies the run; known even if nothing ran.
    Key,
    Word,
    Number,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Better {
    Lower,
    Higher,
    /// Neutral: no best value and no verdict.
    Neither,
}

pub(crate) struct Gate {
    pub(crate) name: &'static str,
    pub(crate) slack: Slack,
}

/// Amount by which a figure may be worse than its baseline.
#[derive(Clone, Copy)]
pub(crate) enum Slack {
    /// Absolute, in the unit of the column.
    By(f64),
    /// Per cent of the baseline.
    Percent(f64),
}

impl Better {
    /// Improvement of `new` over `base`.
    pub(crate) fn gain(self, base: f64, new: f64) -> f64 {
        if self == Better::Lower { base - new } else { new - base }
    }
}

impl Slack {
    /// Tolerance in the unit of the column.
    pub(crate) fn allowance(self, base: f64) -> f64 {
        match self {
            Slack::By(x) => x,
            Slack::Percent(p) => base.abs() * p / 100.0,
        }
    }
}

impl Metric {
    /// Measured value, even if the pair cannot exist.
    pub(crate) fn measured(&self, r: &RunRecord) -> Cell {
        // A recording does not show which pause belongs to a compaction and which text was shown
        // again.
        match r.strategy.standing {
            Standing::Recorded if self.replayed => Cell::Na,
            _ => (self.read)(r),
        }
    }

    fn cell(&self, r: &RunRecord) -> Cell {
        if r.status == Status::NotApplicable && self.kind != ColumnKind::Key {
            // Nothing ran, so the value is unknown and not 0.
            Cell::Na
        } else {
            self.measured(r)
        }
    }

    /// The number in the unit of the column; `None` = not applicable or unknown.
    pub(crate) fn value(&self, r: &RunRecord) -> Option<f64> {
        self.cell(r).number().filter(|x| x.is_finite())
    }

    /// Range of valid numbers.
    pub(crate) fn range(&self) -> RangeInclusive<f64> {
        (if self.signed { f64::NEG_INFINITY } else { 0.0 })..=self.unit.most()
    }

    /// Formats the value for people; `n/a` if there is none.
    pub(crate) fn text(&self, r: &RunRecord) -> String {
        self.value(r).map_or("n/a".into(), |x| self.unit.format_value(x))
    }

    /// Heading of the tables of strategies, with line breaks, or the name.
    pub(crate) fn score_head(&self) -> &'static str {
        self.scored.map_or(self.name, |(_, head)| head)
    }

    /// This heading in one line.
    pub(crate) fn score_title(&self) -> String {
        self.score_head().replace(['_', '\n'], " ")
    }

    /// This heading without the unit.
    pub(crate) fn title(&self) -> String {
        let title = self.score_title();
        let unit = [" $", "%", " s"].iter().find_map(|unit| title.strip_suffix(unit));
        unit.map_or(title.clone(), str::to_string)
    }

    pub(crate) fn heading(&self) -> String {
        format!("{}{}", self.name, self.unit.suffix())
    }
}

impl Cell {
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Cell::Int(n) => Some(*n as f64),
            Cell::Real(x) => Some(*x),
            Cell::Word(_) | Cell::Na => None,
        }
    }
}

pub(crate) trait ToCell {
    fn cell(&self) -> Cell;
}

/// Implements [`ToCell`]: one expression per type.
macro_rules! cells {
    ($($kind:ty: $x:ident => $cell:expr;)*) => {
        $(impl ToCell for $kind {
            fn cell(&self) -> Cell {
                let $x = self;
                $cell
            }
        })*
    };
}

cells! {
    u64: n => Cell::Int(*n);
    f64: x => Cell::Real(*x);
    bool: yes => Cell::Word(yes.to_string());
    str: text => Cell::Word(text.into());
    String: text => Cell::Word(text.clone());
    Cell: cell => cell.clone();
    Status: status => status.word().cell();
}

impl<T: ToCell + ?Sized> ToCell for Arc<T> {
    fn cell(&self) -> Cell {
        (**self).cell()
    }
}

impl<T: ToCell> ToCell for Option<T> {
    fn cell(&self) -> Cell {
        self.as_ref().map_or(Cell::Na, T::cell)
    }
}

impl RunRecord {
    /// The columns of `summary.csv` in their order.
    pub fn columns(&self) -> impl Iterator<Item = (&'static str, Cell)> {
        METRICS.iter().map(|m| (m.column, m.cell(self)))
    }
}

/// Metrics of a view, in the order of the view.
pub(crate) fn sorted_columns<T>(
    place: impl Fn(&'static Metric) -> &'static Rank<T>,
) -> Vec<(&'static Metric, &'static T)> {
    let mut found: Vec<(u16, &Metric, &T)> =
        METRICS.iter().filter_map(|m| place(m).as_ref().map(|(at, how)| (*at, m, how))).collect();
    found.sort_by_key(|(at, ..)| *at);
    found.into_iter().map(|(_, m, how)| (m, how)).collect()
}

/// The columns of the tables of strategies.
pub(crate) fn scores() -> Vec<&'static Metric> {
    sorted_columns(|m| &m.scored).into_iter().map(|(m, _)| m).collect()
}

/// All numeric metrics.
pub(crate) fn numbers() -> impl Iterator<Item = &'static Metric> + Clone {
    METRICS.iter().filter(|m| m.kind == ColumnKind::Number)
}

/// Finds a numeric metric by name; the error suggests similar names.
pub(crate) fn find(name: &str) -> Result<&'static Metric, String> {
    numbers().find(|m| m.column == name).ok_or_else(|| {
        let known: Vec<&str> = numbers().map(|m| m.column).collect();
        ctxbench_util::nearest::hint_or(
            name,
            &known,
            "docs/results.md and the head of summary.csv name them all",
        )
    })
}

/// Describes a range of numbers.
pub(crate) fn in_words(range: &RangeInclusive<f64>) -> String {
    match (*range.start(), *range.end()) {
        (f64::NEG_INFINITY, f64::INFINITY) => "any number".into(),
        (f64::NEG_INFINITY, most) => format!("at most {most}"),
        (least, f64::INFINITY) => format!("at least {least}"),
        (least, most) => format!("from {least} to {most}"),
    }
}

/// Compared metrics, in reading order.
pub(crate) fn judged() -> impl Iterator<Item = &'static Metric> {
    sorted_columns(|m| &m.judged).into_iter().map(|(m, ())| m)
}

#[cfg(test)]
mod tests;
