//! Figures that are compared over sessions.

use crate::record::RunRecord;
use serde::Serialize;

use super::PLAN;
use super::bootstrap::{self, Interval};
use super::runs::RunPair;
use super::verdict::{self, Sample, Verdict};
use crate::fmt;
use crate::metrics::{Metric, Unit, judged};

/// Tolerance for sums of the same dollars in another order.
const ROUNDING: f64 = 1e-9;

/// Dollars over all sessions up to which a change is none.
pub(crate) const CENT: f64 = 0.01;

/// Per cent, or percentage points of a share, below which a mean change is none.
const NOTHING: f64 = 0.5;

/// Scale of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Strategy ÷ baseline − 1, per cent. Averaged as logarithms, so that long and short sessions
    /// have equal weight and no mean or interval falls below −100 %.
    Ratio,
    /// Strategy − baseline, in the unit of the column: for shares, and for amounts that are 0 on
    /// one side.
    Difference,
}

/// Comparison of a strategy with its baseline in one figure, over sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Column name in `summary.csv`.
    pub column: &'static str,
    /// Scale of `mean`, `median` and `interval`.
    pub scale: Scale,
    /// Sessions with a number on both sides.
    pub sessions: usize,
    /// Sessions in which the strategy compacted. With none, the figure is not meaningful.
    pub compacted: usize,
    /// Arithmetic mean of the baseline over these sessions, in the unit of the column; `None`
    /// without a session.
    pub base_mean: Option<f64>,
    /// Arithmetic mean of the strategy; long sessions dominate it.
    pub own_mean: Option<f64>,
    /// Mean change per session; geometric mean for ratios.
    pub mean: Option<f64>,
    /// Median change per session.
    pub median: Option<f64>,
    /// 95 % bootstrap interval of the mean; from eight sessions on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// p-value of the two-sided sign-flip test of this comparison alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// p-value after Holm's correction over the compared strategies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_holm: Option<f64>,
    /// Conclusion that the data support.
    pub verdict: Verdict,
}

/// Judges every figure of every strategy. Takes a list of pairs per strategy and returns a list of
/// figures per strategy; `family` as for [`verdict::judge`].
pub(super) fn figures(strategies: &[Vec<RunPair<'_>>], family: usize) -> Vec<Vec<Figure>> {
    let mut out: Vec<Vec<Figure>> = strategies.iter().map(|_| Vec::new()).collect();
    for metric in judged() {
        let values: Vec<Vec<Values<'_>>> = strategies
            .iter()
            .map(|pairs| pairs.iter().filter_map(|p| Values::from_pair(metric, p)).collect())
            .collect();
        // All strategies use the same scale, so that they can be ordered.
        let relative = metric.unit.is_relative() && values.iter().flatten().all(Values::has_ratio);
        let scale = if relative { Scale::Ratio } else { Scale::Difference };
        let samples: Vec<Sample> = values.iter().map(|v| sample(scale, v)).collect();
        let judged = verdict::judge(&samples, metric.better, family, &PLAN);
        for (i, (row, judged)) in out.iter_mut().zip(judged).enumerate() {
            let (values, sample) = (&values[i], &samples[i]);
            let told = |x| scale.to_percent(x);
            let mut figure = Figure {
                column: metric.column,
                scale,
                sessions: values.len(),
                compacted: values.iter().filter(|v| v.pair.compacted()).count(),
                base_mean: mean(values.iter().map(|v| v.base)),
                own_mean: mean(values.iter().map(|v| v.own)),
                mean: mean(sample.changes.iter().copied()).map(told),
                median: middle(sample.changes.clone()).map(told),
                interval: sample
                    .interval
                    .map(|i| Interval { low: told(i.low), high: told(i.high) }),
                p: judged.p,
                p_holm: judged.p_holm,
                verdict: judged.verdict,
            };
            if figure.mean.is_some_and(|mean| figure.is_nothing(metric, mean, figure.base_mean)) {
                figure.verdict = Verdict::Equal;
            }
            row.push(figure);
        }
    }
    out
}

impl Figure {
    /// Returns true if a mean change is too small to matter, whatever a test says: below half a per
    /// cent, per session and of the sum, or half a point, or at most a cent over all sessions.
    /// `from` is the arithmetic mean before the change.
    pub(super) fn is_nothing(&self, metric: &Metric, mean: f64, from: Option<f64>) -> bool {
        let (from, to) = (from.unwrap_or(0.0), self.own_mean.unwrap_or(0.0));
        let usd = (to - from).abs() * self.sessions as f64;
        if metric.unit == Unit::Usd && usd <= CENT + ROUNDING {
            return true;
        }
        match (self.scale, metric.unit) {
            (Scale::Ratio, _) if from > 0.0 => {
                mean.abs().max((to / from - 1.0).abs() * 100.0) < NOTHING
            }
            (Scale::Difference, Unit::Percent) => mean.abs() < NOTHING,
            _ => format_change(self, metric, mean) == "±0",
        }
    }
}

/// Returns true if two values of one session differ by too little to matter: at most a cent, or less
/// than half a per cent or half a point.
pub(crate) fn is_same(metric: &Metric, from: f64, to: f64) -> bool {
    let apart = (to - from).abs();
    match metric.unit {
        Unit::Usd => apart <= CENT + ROUNDING || apart * 100.0 < NOTHING * from.max(to),
        _ => apart < NOTHING,
    }
}

/// Formats a change in the scale of a figure, with sign and unit.
pub(super) fn format_change(figure: &Figure, metric: &Metric, x: f64) -> String {
    let (text, unit) = match figure.scale {
        Scale::Ratio => (fmt::signed(x, fmt::pct), " %"),
        Scale::Difference => {
            (fmt::signed(x, |x| metric.unit.format_value(x)), metric.unit.of_change())
        }
    };
    if text == "±0" { text } else { text + unit }
}

/// Values of one metric in one session.
struct Values<'a> {
    pair: &'a RunPair<'a>,
    base: f64,
    own: f64,
}

impl<'a> Values<'a> {
    /// Returns `None` unless both runs are whole and have the figure.
    fn from_pair(metric: &Metric, pair: &'a RunPair<'a>) -> Option<Values<'a>> {
        let value = |r: &RunRecord| if r.is_whole() { metric.value(r) } else { None };
        Some(Values { pair, base: value(pair.base)?, own: value(pair.own)? })
    }

    fn has_ratio(&self) -> bool {
        self.base == self.own || (self.base > 0.0 && self.own > 0.0)
    }
}

fn sample(scale: Scale, values: &[Values<'_>]) -> Sample {
    let changes: Vec<f64> = values.iter().map(|v| scale.change(v.base, v.own)).collect();
    let informs = |v: &&Values<'_>| v.pair.own.scenario.recorded && v.pair.compacted();
    Sample {
        interval: bootstrap::interval(&changes, &PLAN),
        exposed: values.iter().filter(informs).count(),
        changes,
    }
}

impl Scale {
    /// Change of a session, in the form in which it is averaged and tested.
    fn change(self, base: f64, own: f64) -> f64 {
        match self {
            _ if (own - base).abs() < ROUNDING => 0.0,
            Scale::Ratio => (own / base).ln(),
            Scale::Difference => own - base,
        }
    }

    /// Converts such a change, or a mean of changes, for display.
    fn to_percent(self, change: f64) -> f64 {
        match self {
            Scale::Ratio => change.exp_m1() * 100.0,
            Scale::Difference => change,
        }
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> Option<f64> {
    let n = values.len();
    (n > 0).then(|| values.sum::<f64>() / n as f64)
}

/// Median; with an even number of values, the mean of the two middle ones.
pub(crate) fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    (n > 0).then(|| (values[(n - 1) / 2] + values[n / 2]) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::super::runs::Exposure;
    use super::*;
    use crate::record::Status;

    fn run(cost: f64, kept: f64, waited_ms: u64) -> RunRecord {
        let mut r = RunRecord { status: Status::Completed, ..RunRecord::default() };
        r.summary.cost_usd = cost;
        r.summary.input_tokens = (cost * 1e6) as u64;
        r.summary.recall_pct = Some(kept);
        r.summary.blocked_ms = waited_ms;
        r
    }

    fn of(runs: &[(RunRecord, RunRecord)]) -> Vec<Figure> {
        let pairs =
            runs.iter().map(|(base, own)| RunPair { base, own, seen: Exposure::Own }).collect();
        figures(&[pairs], 0).remove(0)
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|x| (x - expected).abs() < 1e-9)
    }

    #[test]
    fn one_long_session_does_not_decide_a_ratio() {
        // Ratios 2, ½ and ¼: their product is ¼, its cube root 0.62996; the middle one is ½. The
        // bill rises from 102 to 200.75.
        let found = of(&[
            (run(100.0, 100.0, 0), run(200.0, 90.0, 0)),
            (run(1.0, 100.0, 0), run(0.5, 100.0, 8_000)),
            (run(1.0, 90.0, 0), run(0.25, 60.0, 1_000)),
        ]);
        let (cost, kept, waited) = (&found[0], &found[2], &found[3]);
        assert_eq!((cost.column, cost.scale), ("cost_usd", Scale::Ratio));
        assert!(near(cost.mean, (0.25_f64.cbrt() - 1.0) * 100.0) && near(cost.median, -50.0));
        assert!(near(cost.base_mean, 34.0) && near(cost.own_mean, 200.75 / 3.0), "{cost:?}");
        // Shares change by points: −10, 0, −30.
        assert_eq!((kept.scale, kept.median), (Scale::Difference, Some(-10.0)));
        assert!(near(kept.mean, -40.0 / 3.0));
        // The baseline never waits, so a ratio is undefined. The waits are 0, 8 and 1 s.
        assert_eq!((waited.scale, waited.mean), (Scale::Difference, Some(3_000.0)));
        assert_eq!(waited.median, Some(1_000.0));
    }

    #[test]
    fn waiting_on_both_sides_is_a_ratio_and_an_even_median_lies_between() {
        // ½, 1 (neither waited) and 2, 8: logarithms −1, 0, 1, 3 to base 2; mean ¾, median ½.
        let found = of(&[
            (run(1.0, 9.0, 4_000), run(1.0, 9.0, 2_000)),
            (run(1.0, 9.0, 0), run(1.0, 9.0, 0)),
            (run(1.0, 9.0, 1_000), run(1.0, 9.0, 2_000)),
            (run(1.0, 9.0, 1_000), run(1.0, 9.0, 8_000)),
        ]);
        let waited = &found[3];
        assert_eq!(waited.scale, Scale::Ratio);
        assert!(near(waited.mean, (2_f64.powf(0.75) - 1.0) * 100.0), "{waited:?}");
        assert!(near(waited.median, (2_f64.sqrt() - 1.0) * 100.0), "{waited:?}");
    }

    #[test]
    fn a_change_of_nothing_is_no_change_with_any_number_of_sessions() {
        let verdicts = |n: usize, base: f64, own: f64, kept: f64| {
            let found = of(&vec![(run(base, 90.0, 0), run(own, kept, 40)); n]);
            [&found[0], &found[2], &found[3]].map(|f| f.verdict)
        };
        let (few, none) = (Verdict::DifferenceOnly, Verdict::Equal);
        for n in [1, 9, 40] {
            // Of $30 a session 0.4 %, 0.4 points and 0.04 s.
            assert_eq!(verdicts(n, 30.0, 30.12, 90.4), [none; 3]);
            // A cent in all is nothing, whatever it is in per cent.
            assert_eq!(verdicts(n, 0.01 / n as f64, 0.02 / n as f64, 90.0)[0], none);
            assert_eq!(verdicts(n, 30.0, 30.2, 90.6), [few, few, none]);
        }
        // A fifth more and a sixth less, in one of two long sessions: the mean is 0, the bill is not.
        let found =
            of(&[(run(30.0, 90.0, 0), run(36.0, 90.0, 0)), (run(3.0, 90.0, 0), run(2.5, 90.0, 0))]);
        assert!(near(found[0].mean, 0.0) && found[0].verdict == few, "{:?}", found[0]);
    }

    #[test]
    fn no_interval_leaves_what_is_possible() {
        // Nine sessions saved little, one long one nearly all of its tokens: the mean difference's
        // interval reached below the baseline's mean.
        let mut runs: Vec<(RunRecord, RunRecord)> = (1..10)
            .map(|i| (run(1.0, 100.0, 0), run(1.0 - f64::from(i) / 100.0, 99.0, 0)))
            .collect();
        runs.push((run(120.0, 100.0, 0), run(1.0, 0.0, 0)));
        let found = of(&runs);
        let ends = found[1].interval.unwrap();
        assert!(-100.0 < ends.low && ends.high < 0.0, "{ends:?}");
        let kept = found[2].interval.unwrap();
        assert!(-100.0 <= kept.low && kept.high <= -1.0, "{kept:?}");
    }
}
