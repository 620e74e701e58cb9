//! Counts the facts that each compaction leaves in the context, among those that were established
//! and are needed later.

use ctxbench_reports::record::CompactionRecord;

use super::facts::Sighting;
use super::session_cache::SessionCache;

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

    /// Adds the effect of a compaction to its record. `old` and `new` are the facts before and after
    /// it, in the whole context and in its verbatim part.
    pub(super) fn compacted(
        &mut self,
        later: &[bool],
        old: [Sightings<'_>; 2],
        new: [Sightings<'_>; 2],
        record: &mut CompactionRecord,
    ) {
        self.record_request(old[0]);
        let facts = 0..self.established.len();
        let count = |facts: &[usize]| facts.iter().filter(|&&i| new[0][i].is_some()).count() as u64;
        let lost: Vec<usize> =
            facts.clone().filter(|&i| old[1][i].is_some() && new[1][i].is_none()).collect();
        let wanted: Vec<usize> = facts.filter(|&i| self.established[i] && later[i]).collect();
        record.facts_lost_verbatim = Some(lost.len() as u64);
        record.facts_carried = Some(count(&lost));
        record.facts_needed_later = Some(wanted.len() as u64);
        record.retained_pct =
            (!wanted.is_empty()).then(|| 100.0 * count(&wanted) as f64 / wanted.len() as f64);
    }
}
