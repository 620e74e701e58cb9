//! What is left after each compaction: of the facts established so far and needed later, and of the
//! first goal.

use ctxbench_reports::record::CompactionRecord;

use super::facts::Sighting;
use super::known::Known;

/// Compactions from which a curve says something about drift.
const LONG_ENOUGH: usize = 5;

/// What one compaction left of the facts: a point of the curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept {
    /// Facts that left the verbatim context.
    pub(super) lost: u64,
    /// Of these, how many a summary or restoration carries.
    pub(super) carried: u64,
    /// Facts established so far and needed later.
    pub(super) needed_later: u64,
    /// Share of these in the context before and after, per cent.
    pub(super) before_pct: Option<f64>,
    pub(super) after_pct: Option<f64>,
    /// Whether the first goal is there afterwards; `None` before there was one.
    pub(super) goal: Option<bool>,
}

/// Which facts of a run were established.
pub(super) struct Drift {
    established: Vec<bool>,
}

type Seen<'a> = &'a [Option<Sighting>];

impl Drift {
    pub(super) fn new(facts: usize) -> Self {
        Drift { established: vec![false; facts] }
    }

    /// A request showed these facts.
    pub(super) fn shown(&mut self, seen: Seen<'_>) {
        self.established.iter_mut().zip(seen).for_each(|(e, s)| *e |= s.is_some());
    }

    /// A message or result was said.
    pub(super) fn said(&mut self, known: &Known, key: &str) {
        known.arising(key).iter().for_each(|&i| self.established[i] = true);
    }

    /// A compaction, with the facts in all of the context and in its verbatim part (`old`, `new`),
    /// before and after.
    pub(super) fn compacted(
        &mut self,
        known: &Known,
        later: &[bool],
        old: [Seen<'_>; 2],
        new: [Seen<'_>; 2],
    ) -> Kept {
        self.shown(old[0]);
        let n = known.measured;
        let lost: Vec<usize> =
            (0..n).filter(|&i| old[1][i].is_some() && new[1][i].is_none()).collect();
        let wanted: Vec<usize> = (0..n).filter(|&i| self.established[i] && later[i]).collect();
        let share = |seen: Seen<'_>| {
            let there = wanted.iter().filter(|&&i| seen[i].is_some()).count();
            (!wanted.is_empty()).then(|| 100.0 * there as f64 / wanted.len() as f64)
        };
        Kept {
            lost: lost.len() as u64,
            carried: lost.iter().filter(|&&i| new[0][i].is_some()).count() as u64,
            needed_later: wanted.len() as u64,
            before_pct: share(old[0]),
            after_pct: share(new[0]),
            goal: known.goal.filter(|&g| self.established[g]).map(|g| new[0][g].is_some()),
        }
    }
}

/// `clamp(1 + mean(r_k − r_0), 0, 1)` with shares from 0 to 1; r_0 = before the first compaction of
/// the curve.
pub(super) fn resistance<'a>(curve: impl Iterator<Item = &'a Kept>) -> Option<f64> {
    let mut r0 = None;
    let mut r: Vec<f64> = Vec::new();
    for point in curve {
        r0 = r0.or(point.before_pct);
        r.extend(point.after_pct);
    }
    let r0 = r0?;
    let mean = r.iter().map(|r| (r - r0) / 100.0).sum::<f64>() / r.len() as f64;
    (r.len() >= LONG_ENOUGH).then(|| (1.0 + mean).clamp(0.0, 1.0))
}

/// The first compaction, from 1, after which less than half of what was established and needed was
/// there.
pub(super) fn cliff(compactions: &[CompactionRecord]) -> Option<u64> {
    compactions.iter().find(|c| c.retained_pct.is_some_and(|r| r < 50.0)).map(|c| c.seq + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(Option<f64>, Option<f64>)]) -> Option<f64> {
        let point = |&(before_pct, after_pct): &(Option<f64>, Option<f64>)| Kept {
            before_pct,
            after_pct,
            ..Kept::default()
        };
        resistance(points.iter().map(point).collect::<Vec<_>>().iter())
    }

    #[test]
    fn resistance_by_hand() {
        // r_0 = 1, r = 1, 0.8, 0.6, 0.4, 0.2: mean(r_k − r_0) = −0.4.
        let rows: Vec<_> = [100.0, 80.0, 60.0, 40.0, 20.0].map(|r| (Some(100.0), Some(r))).to_vec();
        assert!((curve(&rows).unwrap() - 0.6).abs() < 1e-12);
        assert_eq!(curve(&rows[..4]), None, "four compactions are no curve");
        let gaps: Vec<_> = rows.iter().flat_map(|r| [(None, None), *r]).collect();
        assert!(
            (curve(&gaps).unwrap() - 0.6).abs() < 1e-12,
            "where nothing is needed nothing is measured"
        );
    }
}
