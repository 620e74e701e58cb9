//! Subagents of a session. They are computed once, for all strategies and models.

use std::collections::{HashMap, HashSet};

use ctxbench_core::content::joined_text;
use ctxbench_session::{Entry, Session};

use super::agents::{Subagent, subagents};
use super::session_cache::SessionCache;

#[derive(Default)]
pub(super) struct SubagentIndex {
    /// Subagents in the order in which they begin.
    pub(super) all: Vec<Subagent>,
    /// (fact, need) pairs in different windows where the window of the need never receives the fact
    /// before the need.
    undelivered: HashSet<(String, String)>,
}

impl SubagentIndex {
    /// Builds the index. `whole` = the analysis of the session.
    pub(super) fn from_session(session: &Session, whole: &SessionCache) -> SubagentIndex {
        let all = subagents(session);
        match all.is_empty() {
            true => SubagentIndex::default(),
            false => SubagentIndex { all, undelivered: undelivered(session, whole) },
        }
    }

    pub(super) fn waited_in(&self, window: Option<&str>) -> HashSet<&str> {
        let calls = self.all.iter().filter(|a| a.waits).filter_map(|a| a.call.as_ref());
        calls.filter(|c| c.caller.as_deref() == window).map(|c| &*c.id).collect()
    }

    /// Returns whether a fact that arises in another window is stated in the window of a need
    /// before that need. A statement by a model that had not seen the fact does not count.
    pub(super) fn delivered(&self, fact: &str, need: &str) -> bool {
        !self.undelivered.contains(&(fact.to_string(), need.to_string()))
    }
}

fn undelivered(session: &Session, known: &SessionCache) -> HashSet<(String, String)> {
    // Index of the first entry of each id.
    let mut places: HashMap<&str, usize> = HashMap::new();
    // First statement by a user or a tool, by fact and window.
    let mut first: HashMap<(usize, Option<&str>), usize> = HashMap::new();
    for (at, e) in session.entries.iter().enumerate() {
        if let Some(key) = e.key() {
            places.entry(key).or_insert(at);
        }
        if matches!(e, Entry::User(_) | Entry::Tool(_)) {
            let told = known.carried(&joined_text(&e.content(), "\n"));
            for fact in known.facts_in(&told) {
                first.entry((fact, e.agent())).or_insert(at);
            }
        }
    }
    let window = |at: usize| session.entries[at].agent();
    let mut out = HashSet::new();
    for (i, fact) in session.facts.iter().enumerate() {
        let Some(&from) = places.get(fact.arises.as_str()) else { continue };
        for need in &fact.needs {
            let Some(&at) = places.get(need.as_str()) else { continue };
            // The reply to a user message can use that message.
            let end = at + usize::from(matches!(session.entries[at], Entry::User(_)));
            let said = first.get(&(i, window(at))).is_some_and(|first| *first < end);
            if window(from) != window(at) && !said {
                out.insert((fact.id.clone(), need.clone()));
            }
        }
    }
    out
}
