//! The figures that are compared over sessions, and what is known of each.

use crate::record::RunRecord;
use serde::Serialize;

use super::PLAN;
use super::bootstrap::{self, Interval};
use super::verdict::{self, Verdict};
use crate::metrics::{self, Metric};

/// The metrics that are compared, in reading order.
pub(crate) fn judged() -> impl Iterator<Item = &'static Metric> {
    metrics::shown(|m| &m.judged).into_iter().map(|(m, ())| m)
}

/// Sums of the same dollars in another order differ by less.
const ROUNDING: f64 = 1e-9;

/// A strategy against its baseline in one figure, over sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Column of `summary.csv`; means and intervals are in its unit.
    pub column: &'static str,
    /// Sessions with a number on both sides.
    pub sessions: usize,
    /// Mean of the baseline over them; `None` without a session.
    pub base_mean: Option<f64>,
    /// Mean of strategy − baseline.
    pub mean: Option<f64>,
    /// Bootstrap interval of the mean, 95 %; from eight sessions on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Sign-flip test, two-sided, this comparison alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// The same after Holm's correction over the strategies compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_holm: Option<f64>,
    /// What may be said.
    pub verdict: Verdict,
}

/// Baseline and strategy on one session.
pub(crate) type Pair<'a> = (&'a RunRecord, &'a RunRecord);

/// Every figure of every strategy, judged together: a list of pairs per strategy in, a list of
/// figures per strategy out.
pub(crate) fn figures(strategies: &[Vec<Pair<'_>>]) -> Vec<Vec<Figure>> {
    let mut out: Vec<Vec<Figure>> = strategies.iter().map(|_| Vec::new()).collect();
    for metric in judged() {
        let values: Vec<Vec<(f64, f64)>> = strategies
            .iter()
            .map(|pairs| pairs.iter().filter_map(|p| both(metric, p)).collect())
            .collect();
        let differences: Vec<Vec<f64>> = values
            .iter()
            .map(|v| v.iter().map(|(base, own)| difference(*base, *own)).collect())
            .collect();
        let intervals: Vec<Option<Interval>> =
            differences.iter().map(|d| bootstrap::interval(d, &PLAN)).collect();
        let judged = verdict::judge(&differences, |i| intervals[i], metric.better, &PLAN);
        for (i, (row, judged)) in out.iter_mut().zip(judged).enumerate() {
            row.push(Figure {
                column: metric.column,
                sessions: differences[i].len(),
                base_mean: mean(values[i].iter().map(|(base, _)| *base)),
                mean: mean(differences[i].iter().copied()),
                interval: intervals[i],
                p: judged.p,
                p_holm: judged.p_holm,
                verdict: judged.verdict,
            });
        }
    }
    out
}

fn both(metric: &Metric, (base, own): &Pair<'_>) -> Option<(f64, f64)> {
    let value = |r: &RunRecord| {
        if r.is_whole() { metric.value(r) } else { None }
    };
    Some((value(base)?, value(own)?))
}

fn difference(base: f64, own: f64) -> f64 {
    let d = own - base;
    if d.abs() < ROUNDING { 0.0 } else { d }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let n = values.len();
    (n > 0).then(|| values.sum::<f64>() / n as f64)
}
