//! The subagents of a session, as far as the session alone tells of them: found out once, for all
//! strategies and models.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use ctxbench_core::content::joined_text;
use ctxbench_core::session::{Entry, Session};

use super::agents::{Subagent, depths, subagents};
use super::known::Known;
use super::windows::Windows;

/// The subagents of a session, and their windows.
#[derive(Default)]
pub(super) struct Crew {
    /// In the order in which they begin.
    pub(super) all: Vec<Subagent>,
    /// How many callers stand above each.
    pub(super) depths: Vec<usize>,
    /// Which ones a call starts.
    by_call: HashMap<String, Vec<usize>>,
    /// The calls for whose agents a window waits; `None` = the main conversation.
    waited: HashMap<Option<String>, Vec<String>>,
    pub(super) windows: Windows,
    /// What is known of each one's window.
    known: Vec<OnceLock<Arc<Known>>>,
    /// Facts and their needs in another window, where nobody says the fact before.
    undelivered: HashSet<(String, String)>,
}

impl Crew {
    /// `whole` = what is known of the session.
    pub(super) fn of(session: &Session, whole: &Known) -> Crew {
        let all = subagents(session);
        if all.is_empty() {
            return Crew::default();
        }
        let mut by_call: HashMap<String, Vec<usize>> = HashMap::new();
        let mut waited: HashMap<Option<String>, Vec<String>> = HashMap::new();
        for (i, agent) in all.iter().enumerate() {
            let Some(call) = &agent.call else { continue };
            by_call.entry(call.id.clone()).or_default().push(i);
            if agent.waits {
                waited.entry(call.caller.clone()).or_default().push(call.id.clone());
            }
        }
        Crew {
            depths: depths(&all),
            by_call,
            waited,
            windows: Windows::of(session, whole),
            known: all.iter().map(|_| OnceLock::new()).collect(),
            undelivered: undelivered(session, whole),
            all,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those that a call starts.
    pub(super) fn called(&self, call: &str) -> &[usize] {
        self.by_call.get(call).map_or(&[], Vec::as_slice)
    }

    /// The calls of a window whose time is that of the agents that it waits for.
    pub(super) fn waited_in(&self, window: Option<&str>) -> HashSet<&str> {
        let calls = self.waited.get(&window.map(str::to_string));
        calls.into_iter().flatten().map(String::as_str).collect()
    }

    /// What is known of the window of one, which is this session.
    pub(super) fn known(&self, agent: usize, window: &Session) -> Arc<Known> {
        self.known[agent].get_or_init(|| Arc::new(Known::of(window))).clone()
    }

    /// Whether a fact that arises in another window is said in the window of a need before it. What
    /// a model says there without having seen it counts for nobody.
    pub(super) fn delivered(&self, fact: &str, need: &str) -> bool {
        !self.undelivered.contains(&(fact.to_string(), need.to_string()))
    }
}

fn undelivered(session: &Session, known: &Known) -> HashSet<(String, String)> {
    // Entries by the names that facts use, the first of each.
    let mut places: HashMap<&str, usize> = HashMap::new();
    // Where a user or a tool said a fact first, by fact and window.
    let mut first: HashMap<(usize, Option<&str>), usize> = HashMap::new();
    for (at, e) in session.entries.iter().enumerate() {
        if let Some(key) = e.key() {
            places.entry(key).or_insert(at);
        }
        if matches!(e, Entry::User(_) | Entry::Tool(_)) {
            for (fact, _) in known.carried(&joined_text(&e.content(), "\n")).facts() {
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
            // What a user says is there to answer it.
            let end = at + usize::from(matches!(session.entries[at], Entry::User(_)));
            let said = first.get(&(i, window(at))).is_some_and(|first| *first < end);
            if window(from) != window(at) && !said {
                out.insert((fact.id.clone(), need.clone()));
            }
        }
    }
    out
}
