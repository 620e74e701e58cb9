//! What is known of a session whatever it is replayed with, its facts above all: found out once per
//! session, for all strategies, models and seeds.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ctxbench_core::block::Block;
use ctxbench_core::calibration::Calibrate;
use ctxbench_core::fact::{Fact, Match, fold};
use ctxbench_core::matcher::Matcher;
use ctxbench_core::model::{Counting, Model};
use ctxbench_core::session::{Entry, Session};
use ctxbench_core::tokens::content_hash;
use ctxbench_reports::record::FactLife;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::altered::{Frames, said_words, words_before};
use super::crew::Crew;
use super::histories::{self, Told};
use super::path::{Defaults, Path};
use super::recording::{Unseen, tells_sizes, unseen};
use super::showings::Showings;
use super::texts;

/// The facts of a session, and what carries them.
pub(super) struct Known {
    /// The session's own.
    pub(super) facts: Vec<Fact>,
    /// How many are the session's own.
    pub(super) measured: usize,
    pub(super) frames: Frames,
    /// Facts that each one replaced, directly or by way of others.
    older: Vec<Vec<usize>>,
    /// Facts in memory files, which a call may bring along without having them in its result.
    pub(super) brought: HashSet<usize>,
    /// Facts by the id under which they arise, but for those without one.
    arising: HashMap<String, Vec<usize>>,
    matcher: Matcher,
    /// What texts carry, by their hash.
    carried: Mutex<HashMap<u64, Arc<Carried>>>,
    told: Mutex<Told>,
    showings: OnceLock<Arc<Showings>>,
    lives: OnceLock<Vec<FactLife>>,
    crew: OnceLock<Crew>,
    /// By how tokens are counted.
    unseen: Mutex<Vec<(Counting, Arc<Unseen>)>>,
}

/// What a text carries.
#[derive(Debug)]
pub(super) struct Carried {
    /// Facts by their index, and how well. A long session has millions of these.
    facts: Box<[(u32, Match)]>,
    /// Hashes of its words with digits.
    pub(super) words: Box<[u64]>,
}

impl Carried {
    /// Facts by their index, and how well.
    pub(super) fn facts(&self) -> impl Iterator<Item = (usize, Match)> + '_ {
        self.facts.iter().map(|&(fact, how)| (fact as usize, how))
    }
}

impl Known {
    pub(super) fn of(session: &Session) -> Known {
        let facts = session.facts.clone();
        let measured = facts.len();
        let mut arising: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, f) in facts.iter().enumerate().filter(|(_, f)| !f.arises.is_empty()) {
            arising.entry(f.arises.clone()).or_default().push(i);
        }
        let matcher = Matcher::new(&facts);
        let memory = session.entries.iter().filter_map(|e| match e {
            Entry::Memory { text, .. } => Some(matcher.find(text, &fold(text))),
            _ => None,
        });
        Known {
            older: older(&session.facts),
            brought: memory.flatten().map(|(fact, _)| fact).collect(),
            matcher,
            frames: Frames::new(&session.facts, texts::in_sources(session, words_before)),
            arising,
            facts,
            measured,
            carried: Mutex::default(),
            told: Mutex::default(),
            showings: OnceLock::new(),
            lives: OnceLock::new(),
            crew: OnceLock::new(),
            unseen: Mutex::default(),
        }
    }

    /// Where each needed fact was shown last. Here and below the session is the one that this is
    /// known of.
    pub(super) fn showings(&self, session: &Session) -> Arc<Showings> {
        let of_path = || Showings::new(&Path::recorded(session, &Defaults::STATED), self);
        self.showings.get_or_init(|| Arc::new(of_path())).clone()
    }

    /// What the session says of each fact.
    pub(super) fn lives(&self, session: &Session) -> &[FactLife] {
        self.lives.get_or_init(|| histories::lives(session))
    }

    /// The subagents.
    pub(super) fn crew(&self, session: &Session) -> &Crew {
        self.crew.get_or_init(|| Crew::of(session, self))
    }

    /// What the recording lacks.
    pub(super) fn unseen(
        &self,
        session: &Session,
        model: &Model,
        calibrate: Calibrate,
    ) -> Arc<Unseen> {
        if calibrate != Calibrate::Recording || !tells_sizes(session, model) {
            return Arc::default();
        }
        let mut known = self.unseen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, unseen)) = known.iter().find(|(by, _)| *by == model.counting) {
            return unseen.clone();
        }
        let found = Arc::new(unseen(session, &model.counting));
        known.push((model.counting, found.clone()));
        found
    }

    /// What a text carries.
    pub(super) fn carried(&self, text: &str) -> Arc<Carried> {
        let key = content_hash(text.as_bytes());
        if let Some(known) = self.remembered().get(&key) {
            return known.clone();
        }
        let folded = fold(text);
        let facts = self.matcher.find(text, &folded).into_iter();
        let facts = facts.map(|(fact, how)| (fact as u32, how)).collect();
        let made = Arc::new(Carried { facts, words: said_words(&folded).collect() });
        self.remembered().entry(key).or_insert(made).clone()
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Carried>>> {
        // What stands in it is whole, whatever became of who put it there.
        self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The words around a fact in a block that carries it.
    pub(super) fn words_around(&self, fact: usize, block: &Block) -> Arc<str> {
        self.words().around(fact, &self.facts[fact], block)
    }

    /// The text, shared with whoever tells the same.
    pub(super) fn told(&self, text: String) -> Arc<str> {
        self.words().once(text)
    }

    fn words(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts that a text carries, not remembered.
    pub(super) fn carried_once(&self, text: &str) -> impl Iterator<Item = usize> + use<> {
        self.matcher.find(text, &fold(text)).into_iter().map(|(fact, _)| fact)
    }

    /// Facts that arise under this id.
    pub(super) fn arising(&self, id: &str) -> &[usize] {
        self.arising.get(id).map_or(&[], Vec::as_slice)
    }

    /// Facts that this one of the session's own replaced.
    pub(super) fn older(&self, fact: usize) -> &[usize] {
        &self.older[fact]
    }
}

/// Analysis of one session, computed at its first use and shared by all runs of it.
#[derive(Default)]
pub(super) struct KnownSession(OnceLock<Arc<Known>>);

impl KnownSession {
    /// Returns the analysis of `session`; every call must pass the same session.
    pub(super) fn of(&self, session: &Session) -> Arc<Known> {
        self.0.get_or_init(|| Known::of(session).into()).clone()
    }
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
    use ctxbench_core::fact::FactKind;

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
}
