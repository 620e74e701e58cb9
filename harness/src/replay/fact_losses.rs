//! Counts the facts that each compaction leaves in the context, among those that were established
//! and are needed later.

use super::facts::Sighting;
use super::session_cache::SessionCache;

/// Facts that one compaction removed and kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FactLosses {
    /// Facts that left the verbatim context.
    pub(super) lost: u64,
    /// Lost facts that a summary or restoration carries.
    pub(super) carried: u64,
    /// Established facts that are still needed.
    pub(super) needed_later: u64,
    /// Share of these facts that is in the context after the compaction, per cent.
    pub(super) retained_pct: Option<f64>,
}

/// Facts that were established so far.
pub(super) struct LossTracker {
    established: Vec<bool>,
}

type Sightings<'a> = &'a [Option<Sighting>];

impl LossTracker {
    pub(super) fn new(facts: usize) -> Self {
        LossTracker { established: vec![false; facts] }
    }

    /// Records the facts that a request showed.
    pub(super) fn record_request(&mut self, seen: Sightings<'_>) {
        self.established.iter_mut().zip(seen).for_each(|(e, s)| *e |= s.is_some());
    }

    /// Records the facts that arise in a message or result.
    pub(super) fn record_message(&mut self, known: &SessionCache, key: &str) {
        known.arising(key).iter().for_each(|&i| self.established[i] = true);
    }

    /// Measures a compaction. `old` and `new` are the facts before and after it, in the whole
    /// context and in its verbatim part.
    pub(super) fn compacted(
        &mut self,
        known: &SessionCache,
        later: &[bool],
        old: [Sightings<'_>; 2],
        new: [Sightings<'_>; 2],
    ) -> FactLosses {
        self.record_request(old[0]);
        let n = known.facts.len();
        let lost: Vec<usize> =
            (0..n).filter(|&i| old[1][i].is_some() && new[1][i].is_none()).collect();
        let wanted: Vec<usize> = (0..n).filter(|&i| self.established[i] && later[i]).collect();
        let share = |seen: Sightings<'_>| {
            let there = wanted.iter().filter(|&&i| seen[i].is_some()).count();
            (!wanted.is_empty()).then(|| 100.0 * there as f64 / wanted.len() as f64)
        };
        FactLosses {
            lost: lost.len() as u64,
            carried: lost.iter().filter(|&&i| new[0][i].is_some()).count() as u64,
            needed_later: wanted.len() as u64,
            retained_pct: share(new[0]),
        }
    }
}
