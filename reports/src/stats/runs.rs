//! Pairs of runs by strategy and session.

use std::collections::{BTreeMap, BTreeSet};

use ctxbench_util::natural;

use crate::metrics::judged;
use crate::record::RunRecord;

/// Baseline and strategy on one session.
#[derive(Clone, Copy)]
pub(super) struct RunPair<'a> {
    pub(super) base: &'a RunRecord,
    pub(super) own: &'a RunRecord,
    pub(super) seen: Exposure,
}

/// Criterion for sessions that are informative about a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exposure {
    Own,
    /// The strategy compacted in either of two results.
    Either,
    /// Any request differs. Used for one product with two settings, because not all settings
    /// concern compaction.
    Differs,
}

impl RunPair<'_> {
    /// Returns true if the session is informative about the strategy.
    pub(super) fn compacted(&self) -> bool {
        let did = |r: &RunRecord| r.summary.compactions > 0;
        match self.seen {
            Exposure::Own => did(self.own),
            Exposure::Either => did(self.own) || did(self.base),
            Exposure::Differs => self.own.sent() != self.base.sent(),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.base.is_whole() && self.own.is_whole()
    }
}

/// Runs of one model by label and session. The first of several duplicate rows counts, and sessions
/// that are counted as another one do not.
pub(super) struct Runs<'a>(pub(super) BTreeMap<&'a str, BTreeMap<&'a str, &'a RunRecord>>);

impl<'a> Runs<'a> {
    pub(super) fn from_records(records: impl Iterator<Item = &'a RunRecord>) -> Runs<'a> {
        let mut out: BTreeMap<&str, BTreeMap<&str, &RunRecord>> = BTreeMap::new();
        for r in records.filter(|r| r.scenario.counted_as.is_none()) {
            out.entry(r.strategy.label.as_str())
                .or_default()
                .entry(r.scenario.id.as_str())
                .or_insert(r);
        }
        Runs(out)
    }

    pub(super) fn sessions(&self) -> BTreeSet<&'a str> {
        self.0.values().flat_map(|by_session| by_session.keys().copied()).collect()
    }

    /// Finds the label of a strategy by name; the label without settings comes first.
    pub(super) fn label(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find(|(_, runs)| runs.values().any(|r| r.strategy.name == name))
            .map(|(label, _)| *label)
    }

    pub(super) fn products(&self) -> Vec<&'a str> {
        let mut labels: Vec<&str> = self
            .0
            .iter()
            .filter(|(_, runs)| runs.values().all(|r| r.is_product()))
            .map(|(l, _)| *l)
            .collect();
        labels.sort_by(|a, b| natural::order(a, b));
        labels
    }

    pub(super) fn finished(&self, label: &str) -> usize {
        self.0[label].values().filter(|r| r.is_whole()).count()
    }
}

pub(super) fn pairs<'a>(
    base: &BTreeMap<&str, &'a RunRecord>,
    own: &BTreeMap<&str, &'a RunRecord>,
    seen: Exposure,
) -> Vec<RunPair<'a>> {
    let pair = |(session, own): (&&str, &&'a RunRecord)| {
        Some(RunPair { base: base.get(session)?, own, seen })
    };
    own.iter().filter_map(pair).collect()
}

/// Returns true if both strategies sent the same requests in all sessions, with the same outcomes.
/// Compares hashes of the request figures.
pub(super) fn sent_the_same(one: &[RunPair<'_>], other: &[RunPair<'_>]) -> bool {
    let same = |a: &RunRecord, b: &RunRecord| {
        std::ptr::eq(a, b)
            || (a.scenario.id == b.scenario.id
                && a.status == b.status
                && a.sent() == b.sent()
                && judged().all(|m| m.value(a) == m.value(b)))
    };
    one.len() == other.len()
        && one.iter().any(|p| p.own.sent().requests > 0)
        && one.iter().zip(other).all(|(a, b)| same(a.own, b.own) && same(a.base, b.base))
}
