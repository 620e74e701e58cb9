//! Absolute limits from the command line.

use std::str::FromStr;

use crate::metrics;

/// An absolute bound on a column of `summary.csv`. It applies to products; hypothetical and control
/// rows are exempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub metric: String,
    /// The bound, in the unit of the column.
    pub bound: f64,
}

/// Error in a limit, with the remedy.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LimitError(String);

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Limit, LimitError> {
        let Some((metric, value)) = text.split_once('=') else {
            return Err(LimitError(format!(
                "`{text}` is not of the form METRIC=NUMBER, for example needs_kept_pct=80"
            )));
        };
        let (metric, value) = (metric.trim(), value.trim());
        let metric = metrics::find(metric)
            .map_err(|hint| LimitError(format!("there is no metric `{metric}`; {hint}")))?;
        let Some(bound) = value.parse().ok().filter(|x: &f64| x.is_finite()) else {
            return Err(LimitError(format!(
                "`{value}` in `{text}` is not a number; expected METRIC=NUMBER, for example \
                 cost_usd=0.5"
            )));
        };
        let range = metric.range();
        if !range.contains(&bound) {
            return Err(LimitError(format!(
                "`{text}`: {} is {}, so this decides nothing; correct the number",
                metric.column,
                metrics::in_words(&range)
            )));
        }
        Ok(Limit { metric: metric.column.into(), bound })
    }
}

/// Absolute limits of the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateOptions {
    /// Ceilings (`--max`). A limit on a gated metric replaces its tolerance.
    pub max: Vec<Limit>,
    /// Floors (`--min`). A limit on a gated metric replaces its tolerance.
    pub min: Vec<Limit>,
}

impl GateOptions {
    /// Parses the arguments of `--max` and `--min`.
    pub fn parse<S: AsRef<str>>(max: &[S], min: &[S]) -> Result<GateOptions, LimitError> {
        let all = |texts: &[S]| {
            texts.iter().map(|t| t.as_ref().parse()).collect::<Result<Vec<Limit>, _>>()
        };
        Ok(GateOptions { max: all(max)?, min: all(min)? })
    }

    pub(super) fn limited(&self, metric: &str) -> bool {
        self.max.iter().chain(&self.min).any(|l| l.metric == metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_where_they_decide_something() {
        assert_eq!("cost_usd = 0.5".parse(), Ok(Limit { metric: "cost_usd".into(), bound: 0.5 }));
        assert!("cost_usd=NaN".parse::<Limit>().is_err());
        assert!("status=1".parse::<Limit>().is_err());
        assert!("saved_pct=-20".parse::<Limit>().is_ok());
        assert!("cache_read_ratio=0.95".parse::<Limit>().is_ok());
        let error = |text: &str| text.parse::<Limit>().unwrap_err().to_string();
        assert_eq!(
            error("needs_kept_pct=500"),
            "`needs_kept_pct=500`: needs_kept_pct is from 0 to 100, so this decides nothing; correct \
             the number"
        );
        assert!(error("cache_read_ratio=95").contains("cache_read_ratio is from 0 to 1"));
        assert!(error("cost_usd=-1").contains("cost_usd is at least 0, so this"));
        assert!(error("saved_pct=101").contains("saved_pct is at most 100"));
        assert!("trigger_error_tokens=-500".parse::<Limit>().is_ok());
    }
}
