//! Finds the facts that a request shows, and decides which of these sightings count.
//!
//! Recorded replies would restore forgotten facts for free. A restatement by the model therefore
//! counts only if the fact was visible when the reply was made; the same applies to summaries of
//! such a restatement. Any other text that is not of the recording, and so of the strategy, may state
//! what a message or result of the past did. All of them must state it, not list it
//! ([`super::statements`]).
//!
//! A conversation grows at its end, so the view of a context is updated from one to the next: the
//! cost is proportional to the blocks that differ.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, MessageId};
use ctxbench_reports::record::FactPlace;
#[cfg(test)]
use ctxbench_session::Session;
use ctxbench_session::fact::Match;
use rapidhash::{HashMapExt, RapidHashMap as HashMap};

use super::session_cache::{Carried, SessionCache};

/// A fact found in a context. A better sighting compares as greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sighting {
    pub(super) tier: Match,
    pub(super) place: FactPlace,
}

pub(super) fn fact_place(b: &Block) -> FactPlace {
    match b.kind {
        BlockKind::Summary | BlockKind::Compaction => FactPlace::Summary,
        BlockKind::File => FactPlace::Restored,
        BlockKind::Base | BlockKind::Context | BlockKind::RepoMap | BlockKind::Reminder => {
            FactPlace::Memory
        }
        _ => FactPlace::Verbatim,
    }
}

/// Returns whether the model wrote the block. Summaries do not count.
fn is_reply(b: &Block) -> bool {
    matches!(b.kind, BlockKind::Assistant | BlockKind::Reasoning | BlockKind::Call)
}

/// Returns whether a block shows verbatim text of a message.
fn is_said(b: &Block) -> bool {
    fact_place(b) == FactPlace::Verbatim
}

/// Returns the text of a block that the model can read. This includes the opaque compactions of the
/// mock, because a provider hides them from the client and not from the model.
pub(super) fn readable(b: &Block) -> &str {
    match &b.opaque {
        Some(o) if b.kind == BlockKind::Compaction => o,
        _ => &b.text,
    }
}

/// Facts of a session in one replay.
pub(super) struct FactBook {
    pub(super) known: Arc<SessionCache>,
    /// Units in blocks, by hash of the block.
    carried: HashMap<u64, Arc<Carried>>,
    licences: Licences,
    /// Units that the conversation stated so far.
    arrived: Vec<bool>,
    view: FactView,
}

/// Units that each text of a model or strategy may restate. Consecutive sets are similar, so only their
/// differences are stored.
#[derive(Default)]
struct Licences {
    /// Number of the set of each author.
    of: HashMap<Author, u32>,
    /// For each unit, the numbers of the sets that add and remove it, alternating.
    changes: Vec<Vec<u32>>,
    sets: u32,
}

impl Licences {
    /// Returns whether a text of this author may show a unit. Always true without a licence.
    fn may_say(&self, author: Author, unit: usize) -> bool {
        let holds = |set: &u32| {
            let changes = self.changes.get(unit).map_or(&[][..], Vec::as_slice);
            changes.partition_point(|c| c <= set) % 2 == 1
        };
        self.of.get(&author).is_none_or(holds)
    }

    /// Returns whether this sighting counts. Text of a model, including summaries, counts only if the
    /// unit was visible to the model, and other text of a strategy if the unit had been stated.
    fn counts(&self, b: &Block, carried: &Carried, unit: usize) -> bool {
        Author::of(b, carried).is_none_or(|author| self.may_say(author, unit))
    }

    /// Sets the units that an author may restate.
    fn give(&mut self, author: Author, units: &[bool]) {
        self.changes.resize(self.changes.len().max(units.len()), Vec::new());
        let now = units.iter().copied().chain(std::iter::repeat(false));
        let changed =
            self.changes.iter_mut().zip(now).filter(|(c, now)| (c.len() % 2 == 1) != *now);
        let set = self.sets + 1;
        for (changes, _) in changed {
            changes.push(set);
            self.sets = set;
        }
        self.of.insert(author, self.sets);
    }
}

/// Author of a text that needs a licence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Author {
    /// A reply or summary.
    Model(MessageId),
    /// A strategy, which wrote or changed the block with this hash.
    Strategy(u64),
}

impl Author {
    /// Returns the author of a block; `None` for a recorded message of the user or result of a tool,
    /// and for instructions and memory files, which are of the project.
    fn of(b: &Block, carried: &Carried) -> Option<Author> {
        if is_reply(b) || fact_place(b) == FactPlace::Summary {
            return Some(Author::Model(b.message));
        }
        let is_of_project =
            carried.is_recorded || matches!(b.kind, BlockKind::Base | BlockKind::Context);
        (!is_of_project).then_some(Author::Strategy(b.hash))
    }
}

/// The context of the last call, and its units.
#[derive(Default)]
struct FactView {
    blocks: Vec<Arc<Block>>,
    /// Number of blocks of each message.
    messages: HashMap<MessageId, usize>,
    units: Vec<UnitSightings>,
    /// Best sighting of each unit.
    best: Vec<Option<Sighting>>,
    carried: Vec<Arc<Carried>>,
}

/// Sightings of one unit, with the number of blocks of each.
#[derive(Clone, Default)]
struct UnitSightings {
    ways: BTreeMap<Sighting, i32>,
    /// Messages that state the unit, with whether the model wrote the text.
    said_in: BTreeMap<(MessageId, bool), i32>,
}

/// Adds to a count that leaves the map at zero.
fn count<K: Ord>(all: &mut BTreeMap<K, i32>, key: K, by: i32) {
    match all.entry(key) {
        Entry::Occupied(n) if *n.get() + by == 0 => drop(n.remove()),
        Entry::Occupied(mut n) => *n.get_mut() += by,
        Entry::Vacant(n) => drop(n.insert(by)),
    }
}

impl FactView {
    /// Adds a block to the sightings (`by` = 1), or removes it (-1).
    fn count(&mut self, b: &Block, carried: &Carried, licences: &Licences, by: i32) {
        let (place, said) = (fact_place(b), is_said(b));
        for (unit, tier) in carried.units() {
            let shown = &mut self.units[unit];
            if said {
                count(&mut shown.said_in, (b.message, is_reply(b)), by);
            }
            if licences.counts(b, carried, unit) {
                count(&mut shown.ways, Sighting { tier, place }, by);
                self.best[unit] = shown.ways.keys().next_back().copied();
            }
        }
    }

    /// Adds or removes all blocks of a message, which is usually one of the last.
    fn count_message(&mut self, message: MessageId, licences: &Licences, by: i32) {
        let own = self.messages.get(&message).copied().unwrap_or_default();
        let positions = (0..self.blocks.len()).rev();
        let positions = positions.filter(|&at| self.blocks[at].message == message);
        for at in positions.take(own).collect::<Vec<usize>>() {
            let (block, carried) = (self.blocks[at].clone(), self.carried[at].clone());
            self.count(&block, &carried, licences, by);
        }
    }
}

/// Best sightings of all units in one context.
pub(super) struct Sightings {
    known: Arc<SessionCache>,
    units: Vec<Option<Sighting>>,
}

impl Sightings {
    /// Returns the sighting of a fact: the worst of its units, `None` if one is absent.
    pub(super) fn fact(&self, fact: usize) -> Option<Sighting> {
        self.units[self.known.units(fact)].iter().min().copied().flatten()
    }

    /// Returns the share of a fact's units that are shown.
    pub(super) fn share(&self, fact: usize) -> f64 {
        let units = &self.units[self.known.units(fact)];
        units.iter().flatten().count() as f64 / units.len() as f64
    }

    pub(super) fn units(&self) -> impl Iterator<Item = bool> + '_ {
        self.units.iter().map(Option::is_some)
    }
}

/// Returns whether two blocks show the same facts.
fn same(a: &Arc<Block>, b: &Arc<Block>) -> bool {
    Arc::ptr_eq(a, b) || (a.hash == b.hash && a.message == b.message)
}

impl FactBook {
    pub(super) fn new(known: Arc<SessionCache>) -> Self {
        let all = known.fact_of().len();
        let (units, best) = (vec![UnitSightings::default(); all], vec![None; all]);
        let view = FactView { units, best, ..FactView::default() };
        let mut arrived = vec![false; all];
        known.standing().for_each(|unit| arrived[unit] = true);
        let (carried, licences) = (HashMap::new(), Licences::default());
        FactBook { known, carried, licences, arrived, view }
    }

    #[cfg(test)]
    pub(super) fn from_session(session: &Session) -> Self {
        FactBook::new(Arc::new(SessionCache::from_session(session)))
    }

    /// Updates the view to this context. The cost is proportional to the blocks that differ.
    pub(super) fn look_at(&mut self, blocks: &[Arc<Block>]) {
        let old = &self.view.blocks;
        let head = old.iter().zip(blocks).take_while(|(a, b)| same(a, b)).count();
        let rest = old.len().min(blocks.len()) - head;
        let pairs = old.iter().rev().zip(blocks.iter().rev()).take(rest);
        let tail = pairs.take_while(|(a, b)| same(a, b)).count();
        let (gone, new) = (head..old.len() - tail, &blocks[head..blocks.len() - tail]);
        let FactBook { known, carried, licences, arrived, view } = self;
        let carried_by = |b: &Arc<Block>| {
            carried.entry(b.hash).or_insert_with(|| known.carried(readable(b))).clone()
        };
        let added: Vec<Arc<Carried>> = new.iter().map(carried_by).collect();
        for (b, what) in new.iter().zip(&added) {
            if let Some(author @ Author::Strategy(_)) = Author::of(b, what)
                && !licences.of.contains_key(&author)
                && what.units().next().is_some()
            {
                licences.give(author, arrived);
            }
            view.count(b, what, licences, 1);
            *view.messages.entry(b.message).or_default() += 1;
        }
        let gone_blocks: Vec<_> = view.blocks.splice(gone.clone(), new.iter().cloned()).collect();
        let gone_facts: Vec<_> = view.carried.splice(gone, added).collect();
        for (b, what) in gone_blocks.iter().zip(&gone_facts) {
            view.count(b, what, licences, -1);
            view.messages.entry(b.message).and_modify(|n| *n -= 1);
        }
    }

    /// Allows a message to restate these units, even if the message is already shown.
    fn give(&mut self, message: MessageId, units: &[bool]) {
        let FactBook { licences, view, .. } = self;
        view.count_message(message, licences, -1);
        licences.give(Author::Model(message), units);
        view.count_message(message, licences, 1);
    }

    /// Returns the block with the best sighting of each fact or one of its units. The view showed all
    /// blocks before.
    pub(super) fn carriers<'a>(&self, blocks: &'a [Arc<Block>]) -> Vec<Option<&'a Arc<Block>>> {
        let mut best: Vec<Option<(Sighting, &Arc<Block>)>> = vec![None; self.known.facts.len()];
        for (b, carried) in blocks.iter().filter_map(|b| Some((b, self.carried.get(&b.hash)?))) {
            let place = fact_place(b);
            for (unit, tier) in carried.units() {
                let (way, fact) = (Sighting { tier, place }, self.known.fact_of()[unit]);
                if best[fact].is_none_or(|(w, _)| way > w) && self.licences.counts(b, carried, unit)
                {
                    best[fact] = Some((way, b));
                }
            }
        }
        best.into_iter().map(|found| found.map(|(_, b)| b)).collect()
    }

    /// Returns the best sightings in a context, ignoring the message `without`.
    pub(super) fn sightings(
        &mut self,
        blocks: &[Arc<Block>],
        without: Option<MessageId>,
    ) -> Sightings {
        self.look_at(blocks);
        let FactBook { licences, view, known, .. } = self;
        without.iter().for_each(|m| view.count_message(*m, licences, -1));
        let units = view.best.clone();
        without.iter().for_each(|m| view.count_message(*m, licences, 1));
        Sightings { known: known.clone(), units }
    }

    /// Returns the best verbatim sightings in a context.
    pub(super) fn seen_verbatim(&mut self, blocks: &[Arc<Block>]) -> Sightings {
        self.look_at(blocks);
        let verbatim = |w: &&Sighting| w.place == FactPlace::Verbatim;
        let best = |shown: &UnitSightings| shown.ways.keys().rfind(verbatim).copied();
        Sightings { known: self.known.clone(), units: self.view.units.iter().map(best).collect() }
    }

    /// Returns whether these messages of the last context state a fact, in texts of the model or in
    /// those of tools and the user. They follow each other, from `first` or the next one on.
    pub(super) fn is_said(
        &self,
        fact: usize,
        by_agent: bool,
        first: MessageId,
        within: impl Fn(MessageId) -> bool,
    ) -> bool {
        let said = |unit: &UnitSightings| {
            let from_first = unit.said_in.range((first, false)..).map(|(key, _)| key);
            let mut of_them = from_first
                .skip_while(|(m, _)| *m == first && !within(*m))
                .take_while(|(m, _)| within(*m));
            of_them.any(|(_, by_model)| *by_model == by_agent)
        };
        self.view.units[self.known.units(fact)].iter().all(said)
    }

    /// Records that a message of the user or a result of a tool entered the conversation.
    pub(super) fn arrives(&mut self, key: &str) {
        self.known.stated(key).for_each(|unit| self.arrived[unit] = true);
    }

    /// Adds a recorded reply. It may restate facts that were visible when it was made, and state
    /// facts that arise in it.
    pub(super) fn license(&mut self, message: MessageId, key: &str, visible: Option<&Sightings>) {
        let seen = visible.into_iter().flat_map(Sightings::units).chain(std::iter::repeat(false));
        let mut units: Vec<bool> = seen.take(self.known.fact_of().len()).collect();
        for &fact in self.known.arising(key) {
            units[self.known.units(fact)].fill(true);
            self.arrived[self.known.units(fact)].fill(true);
        }
        self.give(message, &units);
    }

    /// Allows new summaries among these blocks to restate facts that were visible when they were
    /// written. The set of a known summary is not changed, so a later restatement does not extend
    /// it. Returns whether there was a new summary.
    pub(super) fn license_summaries(&mut self, blocks: &[Arc<Block>], visible: &[bool]) -> bool {
        let mut any = false;
        for b in blocks.iter().filter(|b| fact_place(b) == FactPlace::Summary) {
            if !self.licences.of.contains_key(&Author::Model(b.message)) {
                any = true;
                self.give(b.message, visible);
            }
        }
        any
    }

    /// Allows a compaction of the provider to restate the facts that its prompt showed. The
    /// compaction is not in the history yet.
    pub(super) fn license_provider(&mut self, message: MessageId, shown: &[Arc<Block>]) {
        let seen: Vec<bool> = self.sightings(shown, None).units().collect();
        self.give(message, &seen);
    }

    /// Returns whether `seen` contains an older value that the fact replaced.
    pub(super) fn old_there(&self, fact: usize, seen: &Sightings) -> bool {
        self.known.older(fact).iter().any(|&old| seen.fact(old).is_some())
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
