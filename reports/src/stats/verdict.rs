//! Derives verdicts from differences.

use serde::Serialize;

use super::bootstrap::Interval;
use super::{Sampling, signflip};
use crate::metrics::Better;

/// Minimum number of recordings *in which a strategy compacted* for a verdict: ten differences of
/// one sign have p = 2/1024, which is significant in a family of up to 25 strategies.
pub(crate) const MIN_SESSIONS: usize = 10;

/// Family-wise error rate.
pub(crate) const ALPHA: f64 = 0.05;

/// Smallest number of recordings whose changes, all of one sign, give a verdict in a family of this
/// many tests.
pub(crate) fn sessions_needed(family: usize) -> usize {
    let mut sessions = MIN_SESSIONS;
    let mut p = 2.0 / (1 << sessions) as f64;
    while p * family as f64 > ALPHA {
        sessions += 1;
        p /= 2.0;
    }
    sessions
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better than the baseline, beyond the chance of the sample of sessions.
    Better,
    /// Worse than the baseline, beyond the chance of the sample of sessions.
    Worse,
    /// Not decided by these sessions.
    Unresolved,
    /// No change: the mean change is too small to matter, whatever a test says (see `figures.rs`).
    Equal,
    /// Only the difference is reported: the strategy compacted in fewer than ten recordings, or the
    /// metric has no direction.
    DifferenceOnly,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    /// p-value of this test alone; `None` without a test.
    pub(crate) p: Option<f64>,
    /// p-value after Holm's correction over the family.
    pub(crate) p_holm: Option<f64>,
}

/// Changes of one strategy in one figure.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample {
    /// One change per session.
    pub(crate) changes: Vec<f64>,
    /// Number of recordings in which the strategy compacted.
    pub(crate) exposed: usize,
    /// Interval of the mean of `changes`.
    pub(crate) interval: Option<Interval>,
}

/// Judges one figure of several strategies.
///
/// A verdict needs the corrected test and, if there is an interval, the same sign of both its ends,
/// so that it never contradicts the printed interval. The interval rarely decides. Neither detects
/// tails that the sessions lack: the test assumes symmetric differences, and skewed differences
/// with mean 0 give too many verdicts (`simulation_tests.rs`).
///
/// A strategy without any difference is not a member of the family. Membership depends only on the
/// sizes of the differences, which are fixed in the test, so leaving it out does not weaken the
/// test. `family` is the number of tests if these were picked from more by their result.
pub(crate) fn judge(
    strategies: &[Sample],
    better: Better,
    family: usize,
    plan: &Sampling,
) -> Vec<Judged> {
    let equal = |d: &[f64]| !d.is_empty() && d.iter().all(|x| *x == 0.0);
    let tested =
        |s: &Sample| s.exposed >= MIN_SESSIONS && better != Better::Neither && !equal(&s.changes);
    let members: Vec<usize> = (0..strategies.len()).filter(|i| tested(&strategies[*i])).collect();
    let ps: Vec<f64> =
        members.iter().map(|i| signflip::p_value(&strategies[*i].changes, plan)).collect();
    let corrected = adjusted(&ps, family);
    let untested = |s: &Sample| Judged {
        verdict: if equal(&s.changes) { Verdict::Equal } else { Verdict::DifferenceOnly },
        p: None,
        p_holm: None,
    };
    let mut out: Vec<Judged> = strategies.iter().map(untested).collect();
    for ((i, p), p_holm) in members.into_iter().zip(ps).zip(corrected) {
        let falls = strategies[i].changes.iter().sum::<f64>() < 0.0;
        let same_side = |ends: Interval| if falls { ends.high < 0.0 } else { ends.low > 0.0 };
        let real = p_holm <= ALPHA && strategies[i].interval.is_none_or(same_side);
        let verdict = match (real, falls == (better == Better::Lower)) {
            (false, _) => Verdict::Unresolved,
            (true, true) => Verdict::Better,
            (true, false) => Verdict::Worse,
        };
        out[i] = Judged { verdict, p: Some(p), p_holm: Some(p_holm) };
    }
    out
}

/// Holm's step-down correction for comparing many strategies at once: adjusted p-values in the given
/// order: the i-th smallest of m times `m − i + 1`, at most 1, and never below the adjusted value of
/// a smaller one. m is at least `family`.
///
/// If adjusted values up to 5 % are significant, the family-wise error rate is at most 5 %, for any
/// dependence between the strategies.
fn adjusted(ps: &[f64], family: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..ps.len()).collect();
    order.sort_by(|a, b| ps[*a].total_cmp(&ps[*b]));
    let mut out = vec![1.0; ps.len()];
    let mut so_far = 0.0_f64;
    for (done, i) in order.into_iter().enumerate() {
        so_far = so_far.max(ps[i] * (ps.len().max(family) - done) as f64).min(1.0);
        out[i] = so_far;
    }
    out
}

#[cfg(test)]
impl Sample {
    /// Sample of recordings only, with compactions in each.
    pub(crate) fn exposed(changes: Vec<f64>, plan: &Sampling) -> Sample {
        let interval = super::bootstrap::interval(&changes, plan);
        Sample { exposed: changes.len(), interval, changes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::PLAN;

    fn judged(samples: &[Sample], better: Better) -> Vec<Verdict> {
        judge(samples, better, 0, &PLAN).into_iter().map(|j| j.verdict).collect()
    }

    fn verdicts(strategies: &[Vec<f64>], better: Better) -> Vec<Verdict> {
        let samples: Vec<Sample> =
            strategies.iter().map(|d| Sample::exposed(d.clone(), &PLAN)).collect();
        judged(&samples, better)
    }

    fn falling(n: i32) -> Vec<f64> {
        (1..=n).map(|i| -f64::from(i)).collect()
    }

    #[test]
    fn the_direction_of_the_figure_decides_the_word() {
        let rising: Vec<f64> = falling(10).iter().map(|d| -d).collect();
        let mixed: Vec<f64> =
            falling(10).iter().enumerate().map(|(i, d)| if i % 2 == 0 { *d } else { -d }).collect();
        let all = [falling(10), rising, mixed, vec![0.0; 10]];
        let (good, bad, open, equal) =
            (Verdict::Better, Verdict::Worse, Verdict::Unresolved, Verdict::Equal);
        assert_eq!(verdicts(&all, Better::Lower), [good, bad, open, equal]);
        assert_eq!(verdicts(&all, Better::Higher), [bad, good, open, equal]);
        assert_eq!(verdicts(&all, Better::Neither)[..3], [Verdict::DifferenceOnly; 3]);
    }

    #[test]
    fn an_interval_that_holds_zero_keeps_the_verdict_back() {
        let across = Interval { low: -9.0, high: 0.5 };
        let sample = Sample { interval: Some(across), ..Sample::exposed(falling(10), &PLAN) };
        let found = judge(&[sample], Better::Lower, 0, &PLAN);
        assert_eq!((found[0].verdict, found[0].p), (Verdict::Unresolved, Some(2.0 / 1024.0)));
        // Ten equal differences have no spread and no interval; the test alone decides.
        assert_eq!(verdicts(&[vec![-5.0; 10]], Better::Lower), [Verdict::Better]);
    }

    #[test]
    fn nine_sessions_are_too_few_whatever_they_say() {
        assert_eq!(verdicts(&[falling(9), vec![]], Better::Lower), [Verdict::DifferenceOnly; 2]);
    }

    #[test]
    fn ten_of_them_must_be_recordings_in_which_it_compacted() {
        let of = |exposed| Sample { exposed, ..Sample::exposed(falling(21), &PLAN) };
        let (better, none) = (Verdict::Better, Verdict::DifferenceOnly);
        assert_eq!(
            judged(&[of(4), of(9), of(10), of(0)], Better::Lower),
            [none, none, better, none]
        );
    }

    #[test]
    fn a_larger_family_needs_more() {
        // 2/1024 × 25 = 0.0488 is enough, × 26 = 0.0508 is not.
        let family = |n| verdicts(&vec![falling(10); n], Better::Lower);
        assert_eq!(family(25), [Verdict::Better; 25]);
        assert_eq!(family(26), [Verdict::Unresolved; 26]);
        assert_eq!((sessions_needed(25), sessions_needed(26)), (10, 11));
        // 14 rows are 182 tests in two figures: 182 ÷ 4096 = 0.044.
        assert_eq!(sessions_needed(182), 13);
        // Strategies without a difference do not enlarge the family.
        let mut with_idle = vec![falling(10); 25];
        with_idle.extend(vec![vec![0.0; 10]; 9]);
        let found = verdicts(&with_idle, Better::Lower);
        assert_eq!(found.iter().filter(|v| **v == Verdict::Better).count(), 25);
    }

    #[test]
    fn holms_correction_by_hand() {
        // Sorted 0.01, 0.02, 0.03, 0.04 × 4, 3, 2, 1 = 0.04, 0.06, 0.06, 0.04 → the last may not
        // fall below 0.06.
        let found = adjusted(&[0.04, 0.01, 0.03, 0.02], 0);
        let expected = [0.06, 0.04, 0.06, 0.06];
        assert!(found.iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-12), "{found:?}");
        assert_eq!(adjusted(&[0.6, 0.7], 0), [1.0, 1.0]);
        assert_eq!(adjusted(&[], 0), Vec::<f64>::new());
        assert_eq!(adjusted(&[0.03], 0), [0.03]);
        // One of four tests, picked.
        assert_eq!(adjusted(&[0.03], 4), [0.12]);
    }
}
