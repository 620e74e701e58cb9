//! Facts that each compaction leaves in the context, of those established so far and needed later.

use super::facts::Sighting;
use super::known::Known;

/// What one compaction left of the facts: a point of the curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Kept {
    /// Facts that left the verbatim context.
    pub(super) lost: u64,
    /// Of these, how many a summary or restoration carries.
    pub(super) carried: u64,
    /// Facts established so far and needed later.
    pub(super) needed_later: u64,
    /// Share of these in the context afterwards, per cent.
    pub(super) retained_pct: Option<f64>,
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
            retained_pct: share(new[0]),
        }
    }
}
