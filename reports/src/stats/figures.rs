//! The figures that are compared over sessions, and what is known of each.

use ctxbench_core::record::{RunRecord, Status};
use serde::Serialize;

use super::PLAN;
use super::bootstrap::{self, Interval};
use super::verdict::{self, Verdict};
use crate::direction;
use crate::{fmt, view};

/// A figure that is compared.
pub(crate) struct Metric {
    /// Column of `summary.csv`; its direction stands in [`direction::better`].
    pub(crate) column: &'static str,
    /// Heading, with the unit of what [`Metric::show`] writes.
    pub(crate) head: &'static str,
    value: fn(&RunRecord) -> Option<f64>,
    /// Writes a size in the unit of the heading.
    pub(crate) show: fn(f64) -> String,
    /// Whether a change in per cent of the baseline helps; not for what is a percentage itself.
    pub(crate) relative: bool,
}

/// In reading order.
pub(crate) const METRICS: [Metric; 4] = [
    Metric { column: "cost_usd", head: "cost $", value: |r| Some(r.summary.cost_usd), show: fmt::usd, relative: true },
    Metric { column: "input_tokens", head: "tokens in", value: |r| Some(r.summary.input_tokens as f64), show: fmt::tokens, relative: true },
    Metric { column: "retention_pct", head: "facts kept %", value: |r| r.summary.retention_pct, show: fmt::pct, relative: false },
    Metric {
        column: "blocked_ms",
        head: "waited s",
        value: |r| Some(r.summary.blocked_ms as f64),
        show: |ms| fmt::seconds(ms / 1000.0),
        relative: true,
    },
];

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

/// A run whose figures measure the whole session as it could have happened.
///
/// One that died measures less work, and one that broke a rule measures what no provider would have answered.
fn whole(run: &RunRecord) -> bool {
    run.status == Status::Completed && view::integrity(run) == 0
}

/// Every figure of every strategy, judged together: a list of pairs per strategy in, a list of figures per strategy out.
pub(crate) fn figures(strategies: &[Vec<Pair<'_>>]) -> Vec<Vec<Figure>> {
    let mut out: Vec<Vec<Figure>> = strategies.iter().map(|_| Vec::new()).collect();
    for metric in &METRICS {
        let values: Vec<Vec<(f64, f64)>> = strategies.iter().map(|pairs| pairs.iter().filter_map(|p| both(metric, p)).collect()).collect();
        let differences: Vec<Vec<f64>> = values.iter().map(|v| v.iter().map(|(base, own)| difference(*base, *own)).collect()).collect();
        let intervals: Vec<Option<Interval>> = differences.iter().map(|d| bootstrap::interval(d, &PLAN)).collect();
        let judged = verdict::judge(&differences, |i| intervals[i], direction::better(metric.column), &PLAN);
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
    let value = |r: &RunRecord| if whole(r) { (metric.value)(r).filter(|x| x.is_finite()) } else { None };
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
