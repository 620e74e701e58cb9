//! (fact, need) pairs that are still to be checked.

use std::sync::Arc;

use ctxbench_core::engine::Action;
use ctxbench_core::fact::Fact;
use ctxbench_core::session::Session;
use ctxbench_reports::record::FactRecord;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::fact_exposure::{Last, Showings};
use super::path::Path;

/// A need in the same turn, fewer than this number of replies later, is not a test of memory.
const AT_HAND: usize = 5;

/// A need and one of its facts.
#[derive(Clone, Debug)]
pub(super) struct NeededFact {
    /// Id of the need in the session.
    pub(super) need: Arc<str>,
    /// Index of the fact.
    pub(super) fact: usize,
    /// Last showing of the fact; `None` if only the agent stated it in this window.
    pub(super) last: Option<Last>,
    /// Whether the last showing is part of an earlier session. Without a showing, the reply in
    /// which the fact arises decides.
    pub(super) across: bool,
}

/// Unchecked pairs, by id of the need.
pub(super) struct Needs {
    open: HashMap<Arc<str>, Vec<usize>>,
    showings: Arc<Showings>,
    /// Number of the session of each message and result.
    sessions: HashMap<Arc<str>, usize>,
    /// Id under which each fact arises.
    arises: Vec<Arc<str>>,
    /// User messages of the present turn with unchecked needs.
    pending: Vec<Arc<str>>,
}

impl Needs {
    /// Collects the pairs of a session. Leaves out needs outside the replayed path, that is, in the
    /// window of a subagent, and needs at hand ([`AT_HAND`]).
    pub(super) fn new(session: &Session, path: &Path, showings: Arc<Showings>) -> Self {
        let places = places(path);
        let mut open: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (i, f) in session.facts.iter().enumerate() {
            for n in f
                .needs
                .iter()
                .filter(|n| places.contains_key(n.as_str()) && !at_hand(&places, &f.arises, n))
            {
                open.entry(n.as_str().into()).or_default().push(i);
            }
        }
        let arises = session.facts.iter().map(|f| f.arises.as_str().into()).collect();
        Needs { open, showings, sessions: sessions(path), arises, pending: Vec::new() }
    }

    /// Begins a turn with these user messages.
    pub(super) fn begin(&mut self, keys: &[Arc<str>]) {
        self.pending = keys.to_vec();
    }

    /// Returns the facts needed by the current user messages, and those needed by the next recorded
    /// reply.
    pub(super) fn due(&self, step: &str) -> (Vec<usize>, Vec<usize>) {
        let of = |key: &str| self.open.get(key).cloned().unwrap_or_default();
        (self.pending.iter().flat_map(|k| of(k)).collect(), of(step))
    }

    /// Removes the pairs of the current user messages and of a recorded reply, and returns them as
    /// (need, facts, whether the need is a user message).
    pub(super) fn take(&mut self, step: &str) -> Vec<(Arc<str>, Vec<usize>, bool)> {
        let mut out = Vec::new();
        for key in std::mem::take(&mut self.pending) {
            out.extend(self.open.remove(&key).map(|facts| (key, facts, true)));
        }
        out.extend(self.open.remove_entry(step).map(|(key, facts)| (key, facts, false)));
        out
    }

    /// Returns, for each of `n` facts, whether it is still needed.
    pub(super) fn later(&self, n: usize) -> Vec<bool> {
        let mut out = vec![false; n];
        self.open.values().flatten().for_each(|f| out[*f] = true);
        out
    }

    /// Returns all unchecked pairs.
    pub(super) fn pairs(&self) -> Vec<NeededFact> {
        let pairs = |(need, facts): (&Arc<str>, &Vec<usize>)| {
            facts.iter().map(|f| self.pair(need, *f)).collect::<Vec<_>>()
        };
        self.open.iter().flat_map(pairs).collect()
    }

    /// Returns a pair with its last showing.
    pub(super) fn pair(&self, need: &Arc<str>, fact: usize) -> NeededFact {
        let last = self.showings.last(fact, need).cloned();
        let said = last.as_ref().map_or(&self.arises[fact], Last::key);
        let across =
            self.sessions.get(said) < self.sessions.get(need) && self.sessions.contains_key(said);
        NeededFact { need: need.clone(), fact, last, across }
    }
}

/// Returns the number of the session, from 0, of each message and tool result on a path.
fn sessions(path: &Path) -> HashMap<Arc<str>, usize> {
    let mut out = HashMap::new();
    let mut session = 0;
    for m in &path.moves {
        session += usize::from(matches!(m.action, Action::NewSession));
        let replies = m.steps.iter().flat_map(|s| {
            std::iter::once(&s.key).chain(s.results.iter().map(|result| &result.key))
        });
        out.extend(m.keys.iter().chain(replies).map(|key| (key.clone(), session)));
    }
    out
}

/// Returns the record of a pair that was not checked. `compactions_before` = number of compactions
/// until then.
pub(super) fn unreached(fact: &Fact, pair: &NeededFact, compactions_before: u64) -> FactRecord {
    FactRecord {
        fact: fact.id.clone(),
        kind: fact.kind,
        need: pair.need.to_string(),
        gap: pair.last.as_ref().map(|l| l.gap() as u64),
        across: pair.across,
        counts: pair.last.as_ref().is_none_or(Last::counts),
        compactions_before,
        ..FactRecord::default()
    }
}

/// Returns the turn, and the number of earlier replies, of each message and tool result, by id.
fn places(path: &Path) -> HashMap<&str, (usize, usize)> {
    let mut out = HashMap::new();
    let mut replies = 0;
    for (turn, m) in path.moves.iter().enumerate() {
        out.extend(m.keys.iter().map(|k| (&**k, (turn, replies))));
        for s in &m.steps {
            out.insert(&*s.key, (turn, replies));
            out.extend(s.results.iter().map(|r| (&*r.key, (turn, replies))));
            replies += 1;
        }
    }
    out
}

fn at_hand(places: &HashMap<&str, (usize, usize)>, arises: &str, need: &str) -> bool {
    match (places.get(arises), places.get(need)) {
        (Some((t1, r1)), Some((t2, r2))) => t1 == t2 && r2.saturating_sub(*r1) < AT_HAND,
        _ => false,
    }
}
