//! Selects the facts of each subagent's window, so that the cost of a window depends on its own
//! facts.

use std::collections::BTreeSet;

use ctxbench_core::content::joined_text;
use ctxbench_session::fact::FactKind;
use ctxbench_session::{Entry, Session};
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::session_cache::SessionCache;

/// Facts that arise, are needed or are stated in a window, by index in the session. No other facts
/// are searched for in this window.
#[derive(Debug, Default)]
pub(super) struct OwnFacts {
    by_window: HashMap<String, Vec<usize>>,
    /// Facts that belong to every window: those of constant context such as memory files, and the
    /// first goal.
    shared: Vec<usize>,
}

impl OwnFacts {
    pub(super) fn from_session(session: &Session, known: &SessionCache) -> OwnFacts {
        let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
        for (i, f) in session.facts.iter().enumerate() {
            for id in f.needs.iter().chain([&f.arises]) {
                named.entry(id).or_default().push(i);
            }
        }
        let goal = session.facts.iter().position(|f| f.kind == FactKind::Goal);
        let mut shared: BTreeSet<usize> = goal.into_iter().collect();
        let mut own: HashMap<&str, BTreeSet<usize>> = HashMap::new();
        for e in &session.entries {
            match e.agent() {
                Some(agent) => {
                    let facts = own.entry(agent).or_default();
                    let key = e.key().unwrap_or_default();
                    facts.extend(named.get(key).into_iter().flatten());
                    facts.extend(facts_in(e, known));
                }
                None if e.key().is_none() => shared.extend(facts_in(e, known)),
                None => {}
            }
        }
        let all = |of: BTreeSet<usize>| of.union(&shared).copied().collect();
        let by_window = own.into_iter().map(|(agent, of)| (agent.to_string(), all(of))).collect();
        OwnFacts { by_window, shared: shared.into_iter().collect() }
    }

    /// Returns the facts of a window, in session order.
    pub(super) fn of_window(&self, agent: &str) -> &[usize] {
        self.by_window.get(agent).unwrap_or(&self.shared)
    }
}

/// Returns the facts that an entry states, in any form.
fn facts_in(e: &Entry, known: &SessionCache) -> Vec<usize> {
    let mut out = Vec::new();
    match e {
        Entry::System { text, .. } | Entry::RepoMap { text, .. } => {
            out.extend(known.carried_once(text));
        }
        Entry::Memory { path, text, .. } | Entry::File { path, text, .. } => {
            out.extend(known.carried_once(&format!("{path}\n\n{text}")));
        }
        _ => {
            let parts = e.content();
            let whole = known.carried(&joined_text(&parts, "\n"));
            out.extend(whole.facts().map(|(fact, _)| fact));
            let rest = parts.iter().filter(|p| p.as_text().is_none());
            rest.for_each(|p| out.extend(known.carried_once(p.text())));
        }
    }
    out
}
