//! Goals out of a file.

use ctxbench_core::toml_file::{self, Lines, Wrong};
use serde::Deserialize;
use toml::Spanned;

use crate::metrics::{self, Unit};
use crate::record::{About, Comparison, Goal};

/// The name that stands for the goals inside the program.
pub const DOCUMENTS: &str = "documents";

/// The figures of the four documents in docs/sources that describe what compaction should reach.
const SHIPPED: &str = include_str!("documents.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    goal: Vec<Spanned<Entry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    metric: Spanned<String>,
    is: Comparison,
    bound: Spanned<f64>,
    unit: Spanned<String>,
    scenario: Option<String>,
    tag: Option<String>,
    says: String,
    link: String,
}

/// The goals inside the program.
pub fn documents() -> Result<Vec<Goal>, Wrong> {
    read("goals of the documents", SHIPPED)
}

/// Reads a file of goals; `file` = its name, for errors.
pub fn read(file: &str, text: &str) -> Result<Vec<Goal>, Wrong> {
    let read: File = toml_file::read(file, text)?;
    let lines = Lines::new(text);
    let wrong =
        |at: usize, what: String| Wrong { file: file.into(), line: lines.line_at(at), what };
    if read.goal.is_empty() {
        return Err(wrong(0, "there is no [[goal]] in it".into()));
    }
    let mut goals: Vec<Goal> = Vec::new();
    for entry in read.goal {
        let at = entry.span().start;
        let e = entry.into_inner();
        let metric = metrics::find(e.metric.get_ref()).map_err(|hint| {
            let name = e.metric.get_ref();
            wrong(e.metric.span().start, format!("no metric is called `{name}`; {hint}"))
        })?;
        let bound =
            in_column(metric.unit, *e.bound.get_ref(), e.unit.get_ref()).ok_or_else(|| {
                let what = format!(
                    "`{}` is in {}, not in `{}`",
                    metric.column,
                    units(metric.unit).iter().map(|(u, _)| *u).collect::<Vec<_>>().join(" or "),
                    e.unit.get_ref()
                );
                wrong(e.unit.span().start, what)
            })?;
        if !bound.is_finite() {
            return Err(wrong(e.bound.span().start, "`bound` must be a finite number".into()));
        }
        let about = match (e.scenario, e.tag) {
            (Some(_), Some(_)) => {
                let both = "a goal is about a `scenario` or a `tag`; leave one of them out";
                return Err(wrong(at, both.into()));
            }
            (Some(id), None) => About::Scenario(id),
            (None, Some(tag)) => About::Tag(tag),
            (None, None) => About::Every,
        };
        if goals.iter().any(|g| g.name == e.name && g.about == about) {
            return Err(wrong(at, format!("two goals are called `{}`; rename one", e.name)));
        }
        let metric = metric.column.to_string();
        goals.push(Goal {
            name: e.name,
            metric,
            is: e.is,
            bound,
            about,
            says: e.says,
            link: e.link,
        });
    }
    Ok(goals)
}

/// The names under which a bound may be given, each with its worth in the unit of the column: that
/// of the column, then that which people read.
fn units(unit: Unit) -> Vec<(&'static str, f64)> {
    match unit {
        Unit::Share | Unit::Ratio => vec![("ratio", 1.0), ("%", 0.01)],
        Unit::Millis => vec![("ms", 1.0), ("s", 1_000.0)],
        other => vec![(other.name(), 1.0)],
    }
}

/// A bound in the unit of the column.
fn in_column(unit: Unit, bound: f64, named: &str) -> Option<f64> {
    units(unit).iter().find(|(u, _)| *u == named).map(|(_, worth)| bound * worth)
}
