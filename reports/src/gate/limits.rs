//! Absolute limits from the command line.

use crate::error::ReportError;
use crate::metrics::{self, Metric};

/// An absolute bound on a column of `summary.csv`. It applies to products; hypothetical and control
/// rows are exempt.
pub(super) struct Limit {
    pub(super) metric: &'static Metric,
    /// The bound, in the unit of the column.
    pub(super) bound: f64,
    /// True for the highest allowed value, false for the lowest.
    pub(super) is_ceiling: bool,
}

impl Limit {
    fn parse(text: &str, is_ceiling: bool) -> Result<Limit, ReportError> {
        let refused = |why: String| Err(ReportError::Refused(why));
        let Some((metric, value)) = text.split_once('=') else {
            return refused(format!(
                "`{text}` is not of the form METRIC=NUMBER, for example recall_pct=80"
            ));
        };
        let (metric, value) = (metric.trim(), value.trim());
        let metric = match metrics::find(metric) {
            Ok(metric) => metric,
            Err(hint) => return refused(format!("there is no metric `{metric}`; {hint}")),
        };
        let Some(bound) = value.parse().ok().filter(|x: &f64| x.is_finite()) else {
            return refused(format!(
                "`{value}` in `{text}` is not a number; expected METRIC=NUMBER, for example \
                 cost_usd=0.5"
            ));
        };
        let range = metric.range();
        if !range.contains(&bound) {
            return refused(format!(
                "`{text}`: {} is {}, so this decides nothing; correct the number",
                metric.column,
                metrics::in_words(&range)
            ));
        }
        Ok(Limit { metric, bound, is_ceiling })
    }
}

/// Absolute limits of the gate, in addition to the comparison with the baseline.
#[derive(Default)]
pub struct GateOptions {
    pub(super) limits: Vec<Limit>,
    /// True if no figure may get worse at all.
    pub(super) is_exact: bool,
}

impl GateOptions {
    /// Parses the arguments of `--max` and `--min`.
    pub fn parse<S: AsRef<str>>(max: &[S], min: &[S]) -> Result<GateOptions, ReportError> {
        let ceilings = max.iter().map(|text| Limit::parse(text.as_ref(), true));
        let floors = min.iter().map(|text| Limit::parse(text.as_ref(), false));
        let limits = ceilings.chain(floors).collect::<Result<_, _>>()?;
        Ok(GateOptions { limits, is_exact: false })
    }

    /// Returns options without tolerances, for replacing a baseline: small steps would add up.
    pub fn exact() -> GateOptions {
        GateOptions { limits: Vec::new(), is_exact: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_where_they_decide_something() {
        let parse = |text: &str| Limit::parse(text, true);
        let limit = parse("cost_usd = 0.5").unwrap();
        assert_eq!((limit.metric.column, limit.bound), ("cost_usd", 0.5));
        assert!(parse("saved_pct=-20").is_ok());
        assert!(parse("cache_read_ratio=0.95").is_ok());
        assert!(parse("trigger_error_tokens=-500").is_ok());
        assert!(parse("cost_usd=NaN").is_err());
        assert!(parse("status=1").is_err());
        let error = |text: &str| parse(text).err().unwrap().to_string();
        assert_eq!(
            error("recall_pct=500"),
            "`recall_pct=500`: recall_pct is from 0 to 100, so this decides nothing; correct \
             the number"
        );
        assert!(error("cache_read_ratio=95").contains("cache_read_ratio is from 0 to 1"));
        assert!(error("cost_usd=-1").contains("cost_usd is at least 0, so this"));
        assert!(error("saved_pct=101").contains("saved_pct is at most 100"));
    }
}
