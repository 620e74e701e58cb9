//! (fact, need) pairs that are still to be checked.

use std::sync::Arc;

use ctxbench_core::host::Action;
use ctxbench_reports::record::FactRecord;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::fact_exposure::{Last, Showings};
use super::path::Path;
use super::session_cache::SessionCache;

/// A need in the same turn, fewer than this number of replies later, is not a test of memory.
const AT_HAND: usize = 5;

/// Position of a message or tool result on a path.
#[derive(Clone, Copy)]
struct Place {
    turn: usize,
    /// Number of earlier replies.
    replies: usize,
    /// Number of the session, from 0.
    session: usize,
}

/// Unchecked pairs, by id of the need.
pub(super) struct Needs {
    open: HashMap<Arc<str>, Vec<usize>>,
    known: Arc<SessionCache>,
    showings: Arc<Showings>,
    places: HashMap<Arc<str>, Place>,
    /// User messages of the present turn with unchecked needs.
    pending: Vec<Arc<str>>,
}

impl Needs {
    /// Collects the pairs of a session. Leaves out needs outside the replayed path, that is, in the
    /// window of a subagent, and needs at hand ([`AT_HAND`]).
    pub(super) fn new(known: Arc<SessionCache>, path: &Path, showings: Arc<Showings>) -> Self {
        let places = places(path);
        let at_hand = |arises: &str, need: &Place| {
            places.get(arises).is_some_and(|from| {
                from.turn == need.turn && need.replies.saturating_sub(from.replies) < AT_HAND
            })
        };
        let mut open: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (i, f) in known.facts.iter().enumerate() {
            for n in &f.needs {
                if places.get(n.as_str()).is_some_and(|need| !at_hand(&f.arises, need)) {
                    open.entry(n.as_str().into()).or_default().push(i);
                }
            }
        }
        Needs { open, known, showings, places, pending: Vec::new() }
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

    /// Iterates over all unchecked pairs, as (need, fact).
    pub(super) fn open(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        self.open.iter().flat_map(|(need, facts)| facts.iter().map(move |fact| (need, *fact)))
    }

    /// Returns the records of all unchecked pairs.
    pub(super) fn pairs(&self) -> Vec<FactRecord> {
        self.open().map(|(need, fact)| self.unreached(need, fact)).collect()
    }

    /// Returns the record of a pair that was not checked.
    pub(super) fn unreached(&self, need: &str, fact: usize) -> FactRecord {
        let f = &self.known.facts[fact];
        let last = self.showings.last(fact, need);
        let session = |key: &str| self.places.get(key).map(|place| place.session);
        // Without a showing, the reply in which the fact arises decides.
        let said = session(last.map_or(&*f.arises, |last| last.key()));
        FactRecord {
            fact: f.id.clone(),
            kind: f.kind,
            need: need.to_string(),
            gap: last.map(|l| l.gap() as u64),
            across: said.is_some() && said < session(need),
            counts: last.is_none_or(Last::counts),
            ..FactRecord::default()
        }
    }
}

/// Returns the position of each message and tool result, by id.
fn places(path: &Path) -> HashMap<Arc<str>, Place> {
    let mut out = HashMap::new();
    let (mut replies, mut session) = (0, 0);
    for (turn, m) in path.moves.iter().enumerate() {
        session += usize::from(matches!(m.action, Action::NewSession));
        let mut add = |key: &Arc<str>, replies: usize| {
            out.insert(key.clone(), Place { turn, replies, session });
        };
        m.keys.iter().for_each(|key| add(key, replies));
        for step in &m.steps {
            add(&step.key, replies);
            step.results.iter().for_each(|result| add(&result.key, replies));
            replies += 1;
        }
    }
    out
}
