//! Which facts a request shows, and what of it counts.
//!
//! Recorded replies would bring forgotten facts back for free: a restatement by the model counts
//! only if the fact was visible when that reply was made, and a summary of such a restatement no
//! more than the restatement itself.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, MessageId};
use ctxbench_core::fact::{Fact, FactKind, Match, fold};
use ctxbench_core::matcher::Matcher;
use ctxbench_core::session::Session;
use ctxbench_reports::record::Place;
use rapidhash::{HashMapExt, RapidHashMap as HashMap, RapidHashSet as HashSet};

use super::altered::{Flaw, Frames, SaidWords};
use super::{distractors, texts};

/// A fact seen in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) tier: Match,
    pub(super) place: Place,
}

/// What kind of place a block is for the facts that it carries.
pub(super) fn place(b: &Block) -> Place {
    match b.kind {
        BlockKind::Summary | BlockKind::Compaction => Place::Summary,
        BlockKind::File => Place::Restored,
        BlockKind::Base | BlockKind::Context | BlockKind::RepoMap | BlockKind::Reminder => {
            Place::Memory
        }
        _ => Place::Verbatim,
    }
}

/// What of a block the model knows: the mock's opaque compactions are readable, for what a provider
/// hides from us the model still knows.
pub(super) fn readable(b: &Block) -> &str {
    match &b.opaque {
        Some(o) if b.kind == BlockKind::Compaction => o,
        _ => &b.text,
    }
}

/// Facts of a session, matched once per block content.
pub(super) struct FactBook {
    /// The session's own, then the words of its first request where it marks no goal, then made-up
    /// distractors.
    pub(super) facts: Vec<Fact>,
    /// How many are the session's own.
    pub(super) measured: usize,
    /// The first goal of the user.
    pub(super) goal: Option<usize>,
    /// Facts that each one replaced, directly or by way of others.
    older: Vec<Vec<usize>>,
    matcher: Matcher,
    frames: Frames,
    said: SaidWords,
    memo: HashMap<u64, Arc<[(usize, Match)]>>,
    flaws: HashMap<u64, Arc<[(usize, Flaw)]>>,
    /// Facts that each reply may restate, by its message.
    licensed: HashMap<MessageId, HashSet<usize>>,
}

/// Longest piece of a first request that stands for its goal, in characters.
const GOAL: usize = 200;

impl FactBook {
    pub(super) fn new(session: &Session) -> Self {
        let mut facts = session.facts.clone();
        let measured = facts.len();
        let goal = goal(session, &mut facts);
        facts.extend(distractors::made_up(session));
        FactBook {
            older: (0..measured).map(|i| older(&session.facts, i)).collect(),
            matcher: Matcher::new(&facts),
            frames: Frames::new(&session.facts, &texts::sources(session)),
            facts,
            measured,
            goal,
            said: SaidWords::default(),
            memo: HashMap::new(),
            flaws: HashMap::new(),
            licensed: HashMap::new(),
        }
    }

    /// Facts that a block carries, whatever the rules say.
    pub(super) fn carried(&mut self, b: &Block) -> Arc<[(usize, Match)]> {
        let FactBook { matcher, memo, said, .. } = self;
        memo.entry(b.hash)
            .or_insert_with(|| {
                let text = readable(b);
                let folded = fold(text);
                if place(b) != Place::Summary {
                    said.note(&folded);
                }
                matcher.carried(text, &folded).into()
            })
            .clone()
    }

    /// Facts that the summaries of a context carry wrongly. The context was shown before, so that
    /// what was said is known.
    pub(super) fn flawed(&mut self, blocks: &[Arc<Block>]) -> HashMap<usize, Flaw> {
        let mut out: HashMap<usize, Flaw> = HashMap::new();
        let FactBook { frames, said, flaws, .. } = self;
        for b in blocks.iter().filter(|b| place(b) == Place::Summary) {
            let found = flaws
                .entry(b.hash)
                .or_insert_with(|| frames.flaws(readable(b), |w| said.holds(w)).into());
            for (i, flaw) in found.iter() {
                let all = out.entry(*i).or_default();
                all.partial |= flaw.partial;
                all.changed |= flaw.changed;
                all.forbidden |= flaw.forbidden;
            }
        }
        out
    }

    /// The block that carries a fact best.
    pub(super) fn carrier<'a>(
        &mut self,
        blocks: &'a [Arc<Block>],
        fact: usize,
    ) -> Option<&'a Arc<Block>> {
        let mut best: Option<(Match, Place, &Arc<Block>)> = None;
        for b in blocks {
            let tier = self.carried(b).iter().find(|(i, _)| *i == fact).map(|(_, m)| *m);
            if let Some(tier) = tier.filter(|_| self.counts(b, fact)) {
                let place = place(b);
                if best.is_none_or(|(t, p, _)| (tier, place) > (t, p)) {
                    best = Some((tier, place, b));
                }
            }
        }
        best.map(|(_, _, b)| b)
    }

    /// Best sighting of every fact in a context; `without` = a message that is not looked at.
    pub(super) fn seen(
        &mut self,
        blocks: &[Arc<Block>],
        without: Option<MessageId>,
    ) -> Vec<Option<Sighting>> {
        let mut out: Vec<Option<Sighting>> = vec![None; self.facts.len()];
        for b in blocks {
            if without == Some(b.message) {
                continue;
            }
            let place = place(b);
            for &(i, tier) in self.carried(b).iter() {
                if !self.counts(b, i) {
                    continue;
                }
                let better = out[i].is_none_or(|s| (tier, place) > (s.tier, s.place));
                if better {
                    out[i] = Some(Sighting { tier, place });
                }
            }
        }
        out
    }

    /// Whether a context shows a fact at all, which is sooner known than how well; `without` as in
    /// [`FactBook::seen`].
    pub(super) fn shows(
        &mut self,
        blocks: &[Arc<Block>],
        without: Option<MessageId>,
        fact: usize,
    ) -> bool {
        blocks
            .iter()
            .filter(|b| without != Some(b.message))
            .any(|b| self.carried(b).iter().any(|(i, _)| *i == fact) && self.counts(b, fact))
    }

    /// What the model wrote, replies and summaries alike, brings a fact only if it was visible to
    /// it.
    fn counts(&self, b: &Block, fact: usize) -> bool {
        let written =
            matches!(b.kind, BlockKind::Assistant | BlockKind::Reasoning | BlockKind::Call)
                || place(b) == Place::Summary;
        !written || self.may_say(b.message, fact)
    }

    /// A reply was recorded: it may restate what was visible when it was made, and say what arises
    /// in it.
    pub(super) fn license(&mut self, message: MessageId, key: &str, visible: &[Option<Sighting>]) {
        let own = self
            .facts
            .iter()
            .enumerate()
            .filter(|(_, f)| f.arises == key && !key.is_empty())
            .map(|(i, _)| i);
        let seen = visible.iter().enumerate().filter(|(_, s)| s.is_some()).map(|(i, _)| i);
        self.licensed.insert(message, seen.chain(own).collect());
    }

    /// New summaries among these blocks may say what was visible when they were written. One that
    /// is known keeps its licence, so that a later restatement does not enter it.
    pub(super) fn license_summaries(&mut self, blocks: &[Arc<Block>], visible: &[bool]) -> bool {
        let mut any = false;
        for b in blocks.iter().filter(|b| place(b) == Place::Summary) {
            self.licensed.entry(b.message).or_insert_with(|| {
                any = true;
                (0..visible.len()).filter(|&i| visible[i]).collect()
            });
        }
        any
    }

    /// The provider compacted what a request showed: its summary, not yet in the history, may say
    /// what was visible there.
    pub(super) fn license_provider(&mut self, message: MessageId, shown: &[Arc<Block>]) {
        let seen = self.seen(shown, None);
        self.licensed.insert(message, (0..seen.len()).filter(|&i| seen[i].is_some()).collect());
    }

    /// Whether a message may bring a fact: what is not a reply always may.
    pub(super) fn may_say(&self, message: MessageId, fact: usize) -> bool {
        self.licensed.get(&message).is_none_or(|l| l.contains(&fact))
    }

    /// Whether an older value that a fact replaced is among these.
    pub(super) fn old_there(&self, fact: usize, seen: &[Option<Sighting>]) -> bool {
        self.older[fact].iter().any(|&old| seen[old].is_some())
    }

    /// Of what was never said: how many things there are, as the indices from `facts`.
    pub(super) fn distractors(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.facts.len()).filter(|&i| self.facts[i].distractor)
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

/// Facts that `new` replaced, directly or by way of others.
fn older(facts: &[Fact], new: usize) -> Vec<usize> {
    let mut out: Vec<usize> = Vec::new();
    let mut open = vec![new];
    while let Some(of) = open.pop() {
        for (i, f) in facts.iter().enumerate() {
            if f.superseded_by.as_deref() == Some(&facts[of].id) && i != new && !out.contains(&i) {
                out.push(i);
                open.push(i);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{Draft, Role};

    fn book(facts: &[Fact]) -> FactBook {
        FactBook::new(&Session { facts: facts.to_vec(), ..Session::default() })
    }

    fn fact(id: &str, token: &str, arises: &str) -> Fact {
        Fact {
            id: id.into(),
            kind: FactKind::Value,
            tokens: vec![token.into()],
            arises: arises.into(),
            needs: vec![],
            words: vec![],
            superseded_by: None,
            forbids: vec![],
            distractor: false,
            extra: Default::default(),
        }
    }

    fn block(kind: BlockKind, text: &str, message: u32) -> Arc<Block> {
        Draft::text(kind, Role::User, text).build(MessageId(message), vec![])
    }

    #[test]
    fn a_restatement_of_something_forgotten_does_not_count() {
        let mut book = book(&[fact("f", "port 8443", "c1")]);
        let said = block(BlockKind::Assistant, "the port 8443 again", 5);
        // Recorded while nothing was visible.
        book.license(MessageId(5), "a5", &[None]);
        assert_eq!(book.seen(std::slice::from_ref(&said), None)[0], None);
        // Recorded while it was visible.
        let visible = book.seen(&[block(BlockKind::Output, "port 8443", 1)], None);
        book.license(MessageId(5), "a5", &visible);
        assert!(book.seen(&[said], None)[0].is_some());
    }

    #[test]
    fn the_reply_in_which_a_fact_arises_may_say_it() {
        let mut book = book(&[fact("f", "use a mutex", "a7")]);
        book.license(MessageId(7), "a7", &[None]);
        let s = book.seen(&[block(BlockKind::Assistant, "we use a mutex", 7)], None);
        assert_eq!(s[0].map(|s| s.place), Some(Place::Verbatim));
    }

    #[test]
    fn older_values_are_found_by_way_of_others_and_rings_end() {
        let replaced =
            |id: &str, by: &str| Fact { superseded_by: Some(by.into()), ..fact(id, id, "m") };
        let facts = [replaced("a", "b"), replaced("b", "c"), fact("c", "c", "m")];
        assert_eq!(
            (older(&facts, 2), older(&facts, 1), older(&facts, 0)),
            (vec![1, 0], vec![0], vec![])
        );
        let ring = [replaced("a", "b"), replaced("b", "a")];
        assert_eq!(older(&ring, 0), [1]);
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
        let book = FactBook::new(&session);
        assert_eq!(
            (book.goal, book.measured, book.facts[1].tokens[0].as_str()),
            (Some(1), 1, "Mend the login page")
        );
        session.facts.push(Fact { kind: FactKind::Goal, ..fact("g", "login", "u9") });
        assert_eq!(FactBook::new(&session).goal, Some(1), "a marked one goes before");
    }

    #[test]
    fn the_needing_message_is_left_out() {
        let mut book = book(&[fact("f", "port 8443", "c1")]);
        let asks = block(BlockKind::User, "what about port 8443?", 9);
        assert_eq!(book.seen(&[asks], Some(MessageId(9)))[0], None);
    }
}
