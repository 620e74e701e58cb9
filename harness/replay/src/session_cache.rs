//! Analysis of a session, mainly of its facts. It is computed once per session and shared by all
//! strategies, models and seeds.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ctxbench_core::content::Part;
use ctxbench_core::tokens::content_hash;
use ctxbench_reports::record::FactLife;
use ctxbench_session::fact::{Fact, Match, fold};
use ctxbench_session::matcher::Matcher;
use ctxbench_session::{Entry, Session};
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::statements::{StatedLiteral, Usage, WrittenText};
use super::texts;

/// Facts of a session, and the matcher that finds them in texts.
pub(super) struct SessionCache {
    pub(super) facts: Vec<Fact>,
    /// For each fact, the facts that it replaced, directly or indirectly.
    older: Vec<Vec<usize>>,
    /// Units of each fact: its literals, which a context may state in different places, or its words.
    units: Vec<Range<usize>>,
    /// The fact of each unit.
    fact_of: Vec<usize>,
    /// Facts in memory files, which a call may restore although its result lacks them.
    pub(super) brought: HashSet<usize>,
    /// Facts by the id under which they arise; facts without an id are absent.
    arising: HashMap<String, Vec<usize>>,
    /// Finds the units.
    matcher: Matcher,
    /// Each unit that is a literal, with where the session shows it.
    literals: Vec<Option<StatedLiteral>>,
    usage: Usage,
    /// Hashes of the recorded texts.
    recorded: HashSet<u64>,
    /// Units in the messages of users and results of tools, by id.
    stated: HashMap<String, Vec<Arc<Carried>>>,
    /// Units in texts that are known from the beginning: instructions, memory files.
    standing: Vec<Arc<Carried>>,
    /// Units in texts, by hash of the text.
    carried: Mutex<HashMap<u64, Arc<Carried>>>,
    /// Excerpts around a fact in a text, by hash of the text.
    excerpts: Mutex<HashMap<(usize, u64), Arc<str>>>,
    lives: OnceLock<Vec<FactLife>>,
}

/// Index and match of each unit in one text, in order. A long session has millions of these.
#[derive(Debug)]
pub(super) struct Carried {
    units: Box<[(u32, Match)]>,
    /// Whether the text is one of the recording, not one that a strategy wrote or changed.
    pub(super) is_recorded: bool,
}

impl Carried {
    /// Iterates over the index and the match of each unit.
    pub(super) fn units(&self) -> impl Iterator<Item = (usize, Match)> + '_ {
        self.units.iter().map(|&(unit, how)| (unit as usize, how))
    }
}

impl SessionCache {
    pub(super) fn from_session(session: &Session) -> SessionCache {
        let facts = session.facts.clone();
        let mut arising: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, f) in facts.iter().enumerate().filter(|(_, f)| !f.arises.is_empty()) {
            arising.entry(f.arises.clone()).or_default().push(i);
        }
        let (mut alone, mut units, mut fact_of) = (Vec::new(), Vec::new(), Vec::new());
        for (i, f) in facts.iter().enumerate() {
            let first = alone.len();
            alone.extend(f.tokens.iter().map(|t| Fact::new("", f.kind, t.as_str(), "")));
            if f.tokens.is_empty() {
                alone.push(f.clone());
            }
            units.push(first..alone.len());
            fact_of.resize(alone.len(), i);
        }
        let mut cache = SessionCache {
            older: older(&session.facts),
            brought: HashSet::new(),
            units,
            fact_of,
            matcher: Matcher::new(&alone),
            literals: alone.iter().map(|f| Some(StatedLiteral::new(f.tokens.first()?))).collect(),
            usage: Usage::default(),
            recorded: HashSet::new(),
            stated: HashMap::new(),
            standing: Vec::new(),
            arising,
            facts,
            carried: Mutex::default(),
            excerpts: Mutex::default(),
            lives: OnceLock::new(),
        };
        cache.read(session);
        let memory = session.entries.iter().filter_map(|e| match e {
            Entry::Memory { text, .. } => Some(cache.carried(text)),
            _ => None,
        });
        cache.brought = memory.flat_map(|text| cache.facts_in(&text)).collect();
        cache
    }

    /// Reads which units the recorded texts state, and where.
    fn read(&mut self, session: &Session) {
        if self.facts.is_empty() {
            return;
        }
        for e in &session.entries {
            let parts = e.content();
            let texts: Vec<&str> = parts.iter().map(Part::text).chain(e.standing_text()).collect();
            // A result of several parts can be one block.
            let joined = texts.join("\n");
            for text in texts.iter().copied().chain([&*joined]) {
                self.recorded.insert(content_hash(text.as_bytes()));
            }
            self.usage.add(&joined);
            let standing = e.standing_text().map(Arc::from);
            for text in parts.iter().filter_map(Part::as_prose).cloned().chain(standing) {
                let carried = self.carried(&text);
                for (unit, _) in carried.units() {
                    self.literals[unit].iter_mut().for_each(|literal| literal.note(&text));
                }
                match (e.key(), e) {
                    (_, Entry::Assistant(_)) => {}
                    (Some(key), _) => self.stated.entry(key.into()).or_default().push(carried),
                    (None, _) => self.standing.push(carried),
                }
            }
        }
    }

    /// Returns the source of each fact in the session, which must be the one of this analysis.
    pub(super) fn lives(&self, session: &Session) -> &[FactLife] {
        self.lives.get_or_init(|| texts::lives(session, &self.arising))
    }

    /// Returns the units in a text. The result is cached.
    pub(super) fn carried(&self, text: &str) -> Arc<Carried> {
        let key = content_hash(text.as_bytes());
        if let Some(known) = lock(&self.carried).get(&key) {
            return known.clone();
        }
        let folded = fold(text);
        let is_recorded = self.recorded.contains(&key);
        let written = (!is_recorded).then(|| WrittenText::new(text, &folded, &self.usage));
        let found = self.matcher.find(text, &folded);
        let said = written.as_ref().map(|w| self.matcher.find(&w.statements(), ""));
        let states = |(unit, _): &(usize, Match)| match (&written, &self.literals[*unit]) {
            (Some(written), Some(literal)) => literal.is_stated(written),
            (Some(_), None) => said.iter().flatten().any(|(own, _)| own == unit),
            _ => true,
        };
        let units = found.into_iter().filter(states);
        let units = units.map(|(unit, how)| (unit as u32, how)).collect();
        let made = Arc::new(Carried { units, is_recorded });
        lock(&self.carried).entry(key).or_insert(made).clone()
    }

    /// Returns the facts that a text states as a whole.
    pub(super) fn facts_in(&self, text: &Carried) -> Vec<usize> {
        let of = |&(unit, _): &(u32, Match)| self.fact_of[unit as usize];
        let same = text.units.chunk_by(|a, b| of(a) == of(b));
        same.filter(|own| own.len() == self.units(of(&own[0])).len())
            .map(|own| of(&own[0]))
            .collect()
    }

    pub(super) fn units(&self, fact: usize) -> Range<usize> {
        self.units[fact].clone()
    }

    pub(super) fn fact_of(&self) -> &[usize] {
        &self.fact_of
    }

    /// Returns an excerpt around a fact in a text with this hash. The result is cached.
    pub(super) fn words_around(&self, fact: usize, hash: u64, text: &str) -> Arc<str> {
        let make = || texts::around(&self.facts[fact], text).into();
        lock(&self.excerpts).entry((fact, hash)).or_insert_with(make).clone()
    }

    /// Returns the units that a message of the user or a result of a tool states.
    pub(super) fn stated(&self, id: &str) -> impl Iterator<Item = usize> + '_ {
        let all = self.stated.get(id).into_iter().flatten();
        all.flat_map(|carried| carried.units().map(|(unit, _)| unit))
    }

    /// Returns the units that are known from the beginning.
    pub(super) fn standing(&self) -> impl Iterator<Item = usize> + '_ {
        self.standing.iter().flat_map(|carried| carried.units().map(|(unit, _)| unit))
    }

    /// Returns the facts that arise under this id.
    pub(super) fn arising(&self, id: &str) -> &[usize] {
        self.arising.get(id).map_or(&[], Vec::as_slice)
    }

    pub(super) fn older(&self, fact: usize) -> &[usize] {
        &self.older[fact]
    }
}

/// Locks a cache. Its values never change, so a poisoned lock is harmless.
pub(super) fn lock<T>(cache: &Mutex<T>) -> MutexGuard<'_, T> {
    cache.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns, for each fact, the facts that it replaced, directly or indirectly.
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
    use ctxbench_session::fact::FactKind;

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
