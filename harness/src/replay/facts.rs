//! Which facts a request shows, and what of it counts.
//!
//! Recorded replies would bring forgotten facts back for free: a restatement by the model counts only if the fact was visible
//! when that reply was made.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, MessageId};
use ctxbench_core::fact::{Fact, Match, fold};

/// A fact seen in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) tier: Match,
    pub(super) place: Place,
}

/// What kind of block carries a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Summary,
    Memory,
    Restored,
    Verbatim,
}

impl Place {
    pub(super) fn name(self) -> &'static str {
        match self {
            Place::Summary => "summary",
            Place::Memory => "memory",
            Place::Restored => "restored",
            Place::Verbatim => "verbatim",
        }
    }

    pub(super) fn of(b: &Block) -> Place {
        match b.kind {
            BlockKind::Summary | BlockKind::Compaction => Place::Summary,
            BlockKind::File => Place::Restored,
            BlockKind::Base | BlockKind::Context | BlockKind::RepoMap => Place::Memory,
            _ => Place::Verbatim,
        }
    }
}

/// Facts of a session, matched once per block content.
pub(super) struct FactBook {
    pub(super) facts: Vec<Fact>,
    memo: HashMap<u64, Arc<[(usize, Match)]>>,
    /// Facts that each reply may restate, by its message.
    licensed: HashMap<MessageId, HashSet<usize>>,
}

impl FactBook {
    pub(super) fn new(facts: &[Fact]) -> Self {
        FactBook { facts: facts.to_vec(), memo: HashMap::new(), licensed: HashMap::new() }
    }

    /// Facts that a block carries, whatever the rules say.
    pub(super) fn carried(&mut self, b: &Block) -> Arc<[(usize, Match)]> {
        let FactBook { facts, memo, .. } = self;
        memo.entry(b.hash)
            .or_insert_with(|| {
                // The mock's opaque compactions are readable; what a provider hides from us the model still knows.
                let text = match &b.opaque {
                    Some(o) if b.kind == BlockKind::Compaction => o,
                    _ => &b.text,
                };
                let folded = fold(text);
                facts.iter().enumerate().map(|(i, f)| (i, f.matches(text, &folded))).filter(|(_, m)| *m > Match::Absent).collect()
            })
            .clone()
    }

    /// Best sighting of every fact in a context; `without` = a message that is not looked at.
    pub(super) fn seen(&mut self, blocks: &[Arc<Block>], without: Option<MessageId>) -> Vec<Option<Sighting>> {
        let mut out: Vec<Option<Sighting>> = vec![None; self.facts.len()];
        for b in blocks {
            if without.is_some() && Some(b.message) == without {
                continue;
            }
            let place = Place::of(b);
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

    fn counts(&self, b: &Block, fact: usize) -> bool {
        let made_by_model = matches!(b.kind, BlockKind::Assistant | BlockKind::Reasoning | BlockKind::Call);
        !made_by_model || self.licensed.get(&b.message).is_none_or(|l| l.contains(&fact))
    }

    /// A reply was recorded: it may restate what was visible when it was made, and say what arises in it.
    pub(super) fn license(&mut self, message: MessageId, key: &str, visible: &[Option<Sighting>]) {
        let own = self.facts.iter().enumerate().filter(|(_, f)| f.arises == key && !key.is_empty()).map(|(i, _)| i);
        let seen = visible.iter().enumerate().filter(|(_, s)| s.is_some()).map(|(i, _)| i);
        self.licensed.insert(message, seen.chain(own).collect());
    }

    /// Facts that replace an older one, with the older one: (new, old).
    pub(super) fn replacements(&self) -> Vec<(usize, usize)> {
        let by_id: HashMap<&str, usize> = self.facts.iter().enumerate().map(|(i, f)| (f.id.as_str(), i)).collect();
        let pair = |(i, f): (usize, &Fact)| f.superseded_by.as_deref().and_then(|n| by_id.get(n)).map(|&n| (n, i));
        self.facts.iter().enumerate().filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{Draft, Role};
    use ctxbench_core::fact::FactKind;

    fn fact(id: &str, token: &str, arises: &str) -> Fact {
        Fact {
            id: id.into(),
            kind: FactKind::Value,
            tokens: vec![token.into()],
            arises: arises.into(),
            needs: vec![],
            superseded_by: None,
            extra: Default::default(),
        }
    }

    fn block(kind: BlockKind, text: &str, message: u32) -> Arc<Block> {
        Draft::text(kind, Role::User, text).build(MessageId(message), vec![])
    }

    #[test]
    fn a_restatement_of_something_forgotten_does_not_count() {
        let mut book = FactBook::new(&[fact("f", "port 8443", "c1")]);
        let said = block(BlockKind::Assistant, "the port 8443 again", 5);
        // Recorded while nothing was visible.
        book.license(MessageId(5), "a5", &[None]);
        assert_eq!(book.seen(std::slice::from_ref(&said), None), [None]);
        // Recorded while it was visible.
        let visible = book.seen(&[block(BlockKind::Output, "port 8443", 1)], None);
        book.license(MessageId(5), "a5", &visible);
        assert!(book.seen(&[said], None)[0].is_some());
    }

    #[test]
    fn the_reply_in_which_a_fact_arises_may_say_it() {
        let mut book = FactBook::new(&[fact("f", "use a mutex", "a7")]);
        book.license(MessageId(7), "a7", &[None]);
        let s = book.seen(&[block(BlockKind::Assistant, "we use a mutex", 7)], None);
        assert_eq!(s[0].map(|s| s.place), Some(Place::Verbatim));
    }

    #[test]
    fn the_needing_message_is_left_out() {
        let mut book = FactBook::new(&[fact("f", "port 8443", "c1")]);
        let asks = block(BlockKind::User, "what about port 8443?", 9);
        assert_eq!(book.seen(&[asks], Some(MessageId(9))), [None]);
    }
}
