//! Selects the figures in the table of strategies.

use crate::metrics::{self, Metric};

/// Headline figures, for narrow terminals.
const DECIDE: [&str; 6] =
    ["compactions", "saved_pct", "cost_usd", "cost_saved_pct", "blocked_ms", "needs_kept_pct"];

/// Minimum width for all figures, characters.
const ROOM: usize = 100;

/// Columns of the tables of strategies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// All standard columns, or only the six headline figures if the terminal is narrower than 100
    /// characters.
    #[default]
    Fitting,
    /// Columns of `summary.csv`, in this order.
    Named(Vec<&'static str>),
}

/// Error in a list of columns.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ColumnsError(String);

impl std::str::FromStr for Columns {
    type Err = ColumnsError;

    /// Parses a comma-separated list of names.
    fn from_str(text: &str) -> Result<Columns, ColumnsError> {
        let mut out: Vec<&'static str> = Vec::new();
        for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let column = metrics::find(name).map(|m| m.column).map_err(|hint| {
                ColumnsError(format!("there is no column of figures `{name}`; {hint}"))
            })?;
            if out.contains(&column) {
                return Err(ColumnsError(format!("`{column}` stands twice")));
            }
            out.push(column);
        }
        if out.is_empty() {
            let advice = "name at least one column of summary.csv, such as cost_usd,needs_kept_pct";
            return Err(ColumnsError(advice.into()));
        }
        Ok(Columns::Named(out))
    }
}

/// A column with its heading.
pub(super) struct Column {
    pub(super) metric: &'static Metric,
    pub(super) head: [String; 2],
}

impl Columns {
    /// Columns that fit into lines of this width.
    pub(super) fn at(&self, width: usize) -> Vec<Column> {
        match self {
            Columns::Fitting if width < ROOM => DECIDE.iter().filter_map(|n| named(n)).collect(),
            Columns::Fitting => metrics::scores().into_iter().map(column).collect(),
            Columns::Named(names) => names.iter().filter_map(|n| named(n)).collect(),
        }
    }
}

fn named(name: &str) -> Option<Column> {
    metrics::find(name).ok().map(column)
}

/// Creates a column with the heading of the metric, or else its name in two lines.
fn column(metric: &'static Metric) -> Column {
    let head = match &metric.scored {
        Some((_, head)) => head.map(String::from),
        None => halves(metric.column),
    };
    Column { metric, head }
}

/// Splits a name at the underscore nearest to its middle.
fn halves(name: &str) -> [String; 2] {
    let from_middle = |(at, _): &(usize, &str)| (2 * at).abs_diff(name.len());
    match name.match_indices('_').min_by_key(from_middle) {
        Some((at, _)) => [format!("{}_", &name[..at]), name[at + 1..].into()],
        None => [String::new(), name.into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_has_the_six_that_decide() {
        let shown = |width| Columns::Fitting.at(width).len();
        assert_eq!((shown(80), shown(99)), (6, 6));
        assert_eq!(shown(100), metrics::scores().len());
        // Each column has its own heading.
        let scored: Vec<&str> = metrics::scores().iter().map(|m| m.column).collect();
        assert!(DECIDE.iter().all(|c| scored.contains(c)));
    }

    #[test]
    fn columns_are_named_in_order_or_refused_with_a_hint() {
        let named = |text: &str| text.parse::<Columns>();
        let columns = named("needs_kept_pct, input_tokens").unwrap();
        let heads: Vec<[String; 2]> = columns.at(80).into_iter().map(|c| c.head).collect();
        assert_eq!(heads[1], ["input_", "tokens"]);
        assert_eq!(columns, Columns::Named(vec!["needs_kept_pct", "input_tokens"]));
        let error = |text: &str| named(text).unwrap_err().to_string();
        assert_eq!(error("cost_usd,cost_usd"), "`cost_usd` stands twice");
        assert!(error(" ,").starts_with("name at least one column"));
        let error = error("cost");
        assert!(error.contains("no column of figures `cost`; did you mean cost_"), "{error}");
        assert!(named("status").is_err());
    }
}
