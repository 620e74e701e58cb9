//! What is known of a session's facts whatever it is replayed with: found out once per session, for
//! all strategies, models and seeds.

use std::sync::{Arc, Mutex, PoisonError};

use ctxbench_core::fact::{Fact, FactKind, Match, fold};
use ctxbench_core::matcher::Matcher;
use ctxbench_core::session::Session;
use ctxbench_core::tokens::content_hash;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::altered::{Frames, said_words, words_before};
use super::{distractors, texts};

/// The facts of a session, and what carries them.
pub(super) struct Known {
    /// The session's own, then the words of its first request where it marks no goal, then made-up
    /// distractors.
    pub(super) facts: Vec<Fact>,
    /// How many are the session's own.
    pub(super) measured: usize,
    /// Distractors of the whole session, said here or not.
    made_up: Arc<[Fact]>,
    /// The first goal of the user.
    pub(super) goal: Option<usize>,
    pub(super) frames: Frames,
    /// Facts that each one replaced, directly or by way of others.
    older: Vec<Vec<usize>>,
    /// Facts by the id under which they arise, but for those without one.
    arising: HashMap<String, Vec<usize>>,
    matcher: Matcher,
    /// What texts carry, by their hash.
    carried: Mutex<HashMap<u64, Arc<Carried>>>,
}

/// What a text carries.
#[derive(Debug)]
pub(super) struct Carried {
    /// Facts by their index, and how well.
    pub(super) facts: Box<[(usize, Match)]>,
    /// Hashes of its words with digits.
    pub(super) words: Box<[u64]>,
}

/// Longest piece of a first request that stands for its goal, in characters.
const GOAL: usize = 200;

impl Known {
    pub(super) fn of(session: &Session) -> Known {
        Known::with(session, distractors::made_up(&session.facts).into())
    }

    fn with(session: &Session, made_up: Arc<[Fact]>) -> Known {
        let mut facts = session.facts.clone();
        let measured = facts.len();
        let goal = goal(session, &mut facts);
        facts.extend(distractors::unsaid(&made_up, session));
        let mut arising: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, f) in facts.iter().enumerate().filter(|(_, f)| !f.arises.is_empty()) {
            arising.entry(f.arises.clone()).or_default().push(i);
        }
        Known {
            older: older(&session.facts),
            matcher: Matcher::new(&facts),
            frames: Frames::new(&session.facts, texts::in_sources(session, words_before)),
            arising,
            facts,
            measured,
            made_up,
            goal,
            carried: Mutex::default(),
        }
    }

    /// What a text carries.
    pub(super) fn carried(&self, text: &str) -> Arc<Carried> {
        let key = content_hash(text.as_bytes());
        if let Some(known) = self.remembered().get(&key) {
            return known.clone();
        }
        let folded = fold(text);
        let facts = self.matcher.carried(text, &folded).into();
        let made = Arc::new(Carried { facts, words: said_words(&folded).collect() });
        self.remembered().entry(key).or_insert(made).clone()
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Carried>>> {
        // What stands in it is whole, whatever became of who put it there.
        self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts that a text carries, not remembered.
    pub(super) fn carried_once(&self, text: &str) -> impl Iterator<Item = usize> + use<> {
        self.matcher.carried(text, &fold(text)).into_iter().map(|(fact, _)| fact)
    }

    /// Facts that arise under this id.
    pub(super) fn arising(&self, id: &str) -> &[usize] {
        self.arising.get(id).map_or(&[], Vec::as_slice)
    }

    /// Facts that this one of the session's own replaced.
    pub(super) fn older(&self, fact: usize) -> &[usize] {
        &self.older[fact]
    }

    /// Of what was never said: how many things there are, as the indices from `facts`.
    pub(super) fn distractors(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.facts.len()).filter(|&i| self.facts[i].distractor)
    }

    fn is_of(&self, session: &Session) -> bool {
        self.facts[..self.measured] == session.facts
    }
}

/// What is known of the sessions that a scenario consists of: its own, those of its subagents, and
/// what levers make of them.
#[derive(Default)]
pub(crate) struct KnownSessions(Mutex<HashMap<u64, Vec<Arc<Known>>>>);

impl KnownSessions {
    pub(super) fn of(&self, session: &Session) -> Arc<Known> {
        self.find(session, |k| k.is_of(session), || Known::of(session))
    }

    /// Of a subagent's window of a session of which the rest is known.
    pub(super) fn of_window(&self, window: &Session, whole: &Known) -> Arc<Known> {
        let made_up = &whole.made_up;
        self.find(
            window,
            |k| k.is_of(window) && k.made_up == *made_up,
            || Known::with(window, made_up.clone()),
        )
    }

    fn find(
        &self,
        session: &Session,
        is_it: impl Fn(&Known) -> bool,
        make: impl FnOnce() -> Known,
    ) -> Arc<Known> {
        let said = texts::hash(session);
        // Whoever asks for the same meanwhile waits for it.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = all.entry(said).or_default();
        if let Some(known) = alike.iter().find(|k| is_it(k)) {
            return known.clone();
        }
        let known = Arc::new(make());
        alike.push(known.clone());
        known
    }
}

/// The first goal: that of the first user message, else the first in the session, else the first
/// line of that message, which is added.
fn goal(session: &Session, facts: &mut Vec<Fact>) -> Option<usize> {
    let (id, text) = texts::first_request(session)?;
    let goals: Vec<usize> = (0..facts.len())
        .filter(|&i| facts[i].kind == FactKind::Goal && !facts[i].distractor)
        .collect();
    if let Some(&first) = goals.iter().find(|&&i| facts[i].arises == id).or(goals.first()) {
        return Some(first);
    }
    let line: String =
        text.lines().map(str::trim).find(|l| !l.is_empty())?.chars().take(GOAL).collect();
    facts.push(Fact::new("first-request", FactKind::Goal, line, id));
    Some(facts.len() - 1)
}

/// Of each fact those that it replaced, directly or by way of others.
fn older(facts: &[Fact]) -> Vec<Vec<usize>> {
    let mut replaced: HashMap<&str, Vec<usize>> = HashMap::new();
    for (i, f) in facts.iter().enumerate() {
        if let Some(by) = f.superseded_by.as_deref() {
            replaced.entry(by).or_default().push(i);
        }
    }
    let of = |new: usize| {
        let mut out: Vec<usize> = Vec::new();
        let mut open = vec![new];
        while let Some(of) = open.pop() {
            for &i in replaced.get(&*facts[of].id).into_iter().flatten() {
                if i != new && !out.contains(&i) {
                    out.push(i);
                    open.push(i);
                }
            }
        }
        out
    };
    (0..facts.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(id: &str, token: &str, arises: &str) -> Fact {
        Fact::new(id, FactKind::Value, token, arises)
    }

    #[test]
    fn older_values_are_found_by_way_of_others_and_rings_end() {
        let replaced =
            |id: &str, by: &str| Fact { superseded_by: Some(by.into()), ..fact(id, id, "m") };
        let facts = [replaced("a", "b"), replaced("b", "c"), fact("c", "c", "m")];
        assert_eq!(older(&facts), [vec![], vec![0], vec![1, 0]]);
        let ring = [replaced("a", "b"), replaced("b", "a")];
        assert_eq!(older(&ring), [[1], [0]]);
    }

    #[test]
    fn the_first_line_stands_for_a_goal_that_nobody_marked() {
        use ctxbench_core::session::{Entry, UserEntry};
        let asks = UserEntry {
            id: "u1".into(),
            text: Some("\n Mend the login page\nplease".into()),
            ..Default::default()
        };
        let mut session = Session {
            entries: vec![Entry::User(asks)],
            facts: vec![fact("f", "x", "u1")],
            ..Session::default()
        };
        let known = Known::of(&session);
        assert_eq!(
            (known.goal, known.measured, known.facts[1].tokens[0].as_str()),
            (Some(1), 1, "Mend the login page")
        );
        session.facts.push(Fact { kind: FactKind::Goal, ..fact("g", "login", "u9") });
        assert_eq!(Known::of(&session).goal, Some(1), "a marked one goes before");
    }

    #[test]
    fn equal_sessions_are_known_once_and_others_are_not_taken_for_them() {
        use ctxbench_core::session::{Entry, UserEntry};
        let session = |text: &str, fact_of: &str| Session {
            entries: vec![Entry::User(UserEntry {
                id: "u1".into(),
                text: Some(text.into()),
                ..Default::default()
            })],
            facts: vec![fact("f", fact_of, "u1")],
            ..Session::default()
        };
        let all = KnownSessions::default();
        let first = all.of(&session("port 8443", "8443"));
        assert!(Arc::ptr_eq(&first, &all.of(&session("port 8443", "8443"))));
        assert!(!Arc::ptr_eq(&first, &all.of(&session("port 8444", "8443"))), "another text");
        assert!(!Arc::ptr_eq(&first, &all.of(&session("port 8443", "port"))), "another fact");
    }
}
