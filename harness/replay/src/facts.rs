//! Finds the facts that a request shows, and decides which of these sightings count.
//!
//! Recorded replies would restore forgotten facts for free. A restatement by the model therefore
//! counts only if the fact was visible when the reply was made; the same applies to summaries of
//! such a restatement.
//!
//! A conversation grows at its end, so the view of a context is updated from one to the next: the
//! cost is proportional to the blocks that differ.

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

/// Returns the kind of place of a block.
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

/// Returns whether a block shows verbatim text of a tool or the user.
fn is_said(b: &Block) -> bool {
    fact_place(b) == FactPlace::Verbatim && !is_reply(b)
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
    /// Facts in blocks, by hash of the block.
    carried: HashMap<u64, Arc<Carried>>,
    licences: Licences,
    view: FactView,
}

/// Facts that each reply and summary may restate. Consecutive sets are similar, so only their
/// differences are stored.
#[derive(Default)]
struct Licences {
    /// Number of the set of each message.
    of: HashMap<MessageId, u32>,
    /// For each fact, the numbers of the sets that add and remove it, alternating.
    changes: Vec<Vec<u32>>,
    sets: u32,
}

impl Licences {
    /// Returns whether a message may show a fact. Always true for messages that are not replies.
    fn may_say(&self, message: MessageId, fact: usize) -> bool {
        let holds = |set: &u32| {
            let changes = self.changes.get(fact).map_or(&[][..], Vec::as_slice);
            changes.partition_point(|c| c <= set) % 2 == 1
        };
        self.of.get(&message).is_none_or(holds)
    }

    /// Returns whether this sighting counts. Text of the model, including summaries, counts only if
    /// the fact was visible to the model.
    fn counts(&self, b: &Block, fact: usize) -> bool {
        !(is_reply(b) || fact_place(b) == FactPlace::Summary) || self.may_say(b.message, fact)
    }

    /// Sets the facts that a message may restate.
    fn give(&mut self, message: MessageId, facts: &[bool]) {
        self.changes.resize(self.changes.len().max(facts.len()), Vec::new());
        let now = facts.iter().copied().chain(std::iter::repeat(false));
        let changed =
            self.changes.iter_mut().zip(now).filter(|(c, now)| (c.len() % 2 == 1) != *now);
        let set = self.sets + 1;
        for (changes, _) in changed {
            changes.push(set);
            self.sets = set;
        }
        self.of.insert(message, self.sets);
    }
}

/// The context of the last call, and its facts.
#[derive(Default)]
struct FactView {
    blocks: Vec<Arc<Block>>,
    carried: Vec<Arc<Carried>>,
    facts: Vec<FactSightings>,
    best: Vec<Option<Sighting>>,
    /// Number of blocks of each message.
    messages: HashMap<MessageId, usize>,
}

/// Sightings of one fact.
#[derive(Clone, Default)]
struct FactSightings {
    /// Number of blocks per kind of sighting.
    ways: Vec<(Sighting, usize)>,
    /// Messages in which a tool or the user states the fact, once per block.
    said_in: Vec<MessageId>,
}

impl FactView {
    fn add(&mut self, b: &Block, carried: &Carried, licences: &Licences) {
        *self.messages.entry(b.message).or_default() += 1;
        let (place, said) = (fact_place(b), is_said(b));
        for (fact, tier) in carried.facts() {
            let shown = &mut self.facts[fact];
            if said {
                shown.said_in.push(b.message);
            }
            if licences.counts(b, fact) {
                let way = Sighting { tier, place };
                match shown.ways.iter_mut().find(|(w, _)| *w == way) {
                    Some((_, n)) => *n += 1,
                    None => shown.ways.push((way, 1)),
                }
                self.best[fact] = self.best[fact].max(Some(way));
            }
        }
    }

    fn remove(&mut self, b: &Block, carried: &Carried, licences: &Licences) {
        if let Some(n) = self.messages.get_mut(&b.message) {
            *n -= 1;
            if *n == 0 {
                self.messages.remove(&b.message);
            }
        }
        let (place, said) = (fact_place(b), is_said(b));
        for (fact, tier) in carried.facts() {
            let shown = &mut self.facts[fact];
            if said && let Some(at) = shown.said_in.iter().position(|m| *m == b.message) {
                shown.said_in.swap_remove(at);
            }
            if !licences.counts(b, fact) {
                continue;
            }
            let way = Sighting { tier, place };
            if let Some(at) = shown.ways.iter().position(|(w, _)| *w == way) {
                shown.ways[at].1 -= 1;
                if shown.ways[at].1 == 0 {
                    shown.ways.swap_remove(at);
                    self.best[fact] = shown.ways.iter().map(|(w, _)| *w).max();
                }
            }
        }
    }

    /// Returns the blocks of a message, with their facts.
    fn of_message(&self, message: MessageId) -> Vec<(Arc<Block>, Arc<Carried>)> {
        let Some(&n) = self.messages.get(&message) else { return Vec::new() };
        let all = self.blocks.iter().zip(&self.carried).rev();
        let own = all.filter(|(b, _)| b.message == message).take(n);
        own.map(|(b, what)| (b.clone(), what.clone())).collect()
    }
}

/// Returns whether two blocks show the same facts.
fn same(a: &Arc<Block>, b: &Arc<Block>) -> bool {
    Arc::ptr_eq(a, b) || (a.hash == b.hash && a.message == b.message)
}

impl FactBook {
    pub(super) fn new(known: Arc<SessionCache>) -> Self {
        let n = known.facts.len();
        let view = FactView {
            facts: vec![FactSightings::default(); n],
            best: vec![None; n],
            ..FactView::default()
        };
        FactBook { known, carried: HashMap::new(), licences: Licences::default(), view }
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
        let FactBook { known, carried, licences, view } = self;
        for i in gone.clone() {
            let (block, what) = (view.blocks[i].clone(), view.carried[i].clone());
            view.remove(&block, &what, licences);
        }
        let carried_by = |b: &Arc<Block>| {
            carried.entry(b.hash).or_insert_with(|| known.carried(readable(b))).clone()
        };
        let added: Vec<Arc<Carried>> = new.iter().map(carried_by).collect();
        for (b, what) in new.iter().zip(&added) {
            view.add(b, what, licences);
        }
        view.blocks.splice(gone.clone(), new.iter().cloned());
        view.carried.splice(gone, added);
    }

    /// Allows a message to restate these facts, even if the message is already shown.
    fn give(&mut self, message: MessageId, facts: &[bool]) {
        let FactBook { licences, view, .. } = self;
        let shown = view.of_message(message);
        shown.iter().for_each(|(b, what)| view.remove(b, what, licences));
        licences.give(message, facts);
        shown.iter().for_each(|(b, what)| view.add(b, what, licences));
    }

    /// Returns the block with the best sighting of each fact.
    pub(super) fn carriers<'a>(&mut self, blocks: &'a [Arc<Block>]) -> Vec<Option<&'a Arc<Block>>> {
        self.look_at(blocks);
        let mut best: Vec<Option<(Sighting, &Arc<Block>)>> = vec![None; self.known.facts.len()];
        for (b, carried) in blocks.iter().zip(&self.view.carried) {
            let place = fact_place(b);
            for (fact, tier) in carried.facts() {
                let way = Sighting { tier, place };
                if best[fact].is_none_or(|(w, _)| way > w) && self.licences.counts(b, fact) {
                    best[fact] = Some((way, b));
                }
            }
        }
        best.into_iter().map(|found| found.map(|(_, b)| b)).collect()
    }

    /// Returns the best sighting of each fact in a context, ignoring the message `without`.
    pub(super) fn sightings(
        &mut self,
        blocks: &[Arc<Block>],
        without: Option<MessageId>,
    ) -> Vec<Option<Sighting>> {
        self.look_at(blocks);
        let FactBook { licences, view, .. } = self;
        let left_out = without.map(|m| view.of_message(m)).unwrap_or_default();
        left_out.iter().for_each(|(b, what)| view.remove(b, what, licences));
        let seen = view.best.clone();
        left_out.iter().for_each(|(b, what)| view.add(b, what, licences));
        seen
    }

    /// Returns the best verbatim sighting of each fact in a context.
    pub(super) fn seen_verbatim(&mut self, blocks: &[Arc<Block>]) -> Vec<Option<Sighting>> {
        self.look_at(blocks);
        let verbatim = |shown: &FactSightings| {
            let ways = shown.ways.iter().map(|(way, _)| *way);
            ways.filter(|way| way.place == FactPlace::Verbatim).max()
        };
        self.view.facts.iter().map(verbatim).collect()
    }

    /// Returns the messages of the last context in which a tool or the user states a fact.
    pub(super) fn said_in(&self, fact: usize) -> &[MessageId] {
        &self.view.facts[fact].said_in
    }

    /// Adds a recorded reply. It may restate facts that were visible when it was made, and state
    /// facts that arise in it.
    pub(super) fn license(&mut self, message: MessageId, key: &str, visible: &[Option<Sighting>]) {
        let mut facts: Vec<bool> = visible.iter().map(Option::is_some).collect();
        facts.resize(self.known.facts.len(), false);
        self.known.arising(key).iter().for_each(|&f| facts[f] = true);
        self.give(message, &facts);
    }

    /// Allows new summaries among these blocks to restate facts that were visible when they were
    /// written. The set of a known summary is not changed, so a later restatement does not extend
    /// it. Returns whether there was a new summary.
    pub(super) fn license_summaries(&mut self, blocks: &[Arc<Block>], visible: &[bool]) -> bool {
        let mut any = false;
        for b in blocks.iter().filter(|b| fact_place(b) == FactPlace::Summary) {
            if !self.licences.of.contains_key(&b.message) {
                any = true;
                self.give(b.message, visible);
            }
        }
        any
    }

    /// Allows a compaction of the provider to restate the facts that its prompt showed. The
    /// compaction is not in the history yet.
    pub(super) fn license_provider(&mut self, message: MessageId, shown: &[Arc<Block>]) {
        let seen: Vec<bool> = self.sightings(shown, None).iter().map(Option::is_some).collect();
        self.give(message, &seen);
    }

    /// Returns whether `seen` contains an older value that the fact replaced.
    pub(super) fn old_there(&self, fact: usize, seen: &[Option<Sighting>]) -> bool {
        self.known.older(fact).iter().any(|&old| seen[old].is_some())
    }
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
