//! The context: the ordered blocks that the next request will show.
//!
//! Strategies edit this view and never the history. Every structural edit is checked: one that
//! would separate a tool call from its result is refused and changes nothing.

use std::ops::Range;
use std::sync::Arc;

use rapidhash::RapidHashSet as HashSet;
use thiserror::Error;

use crate::block::{Block, BlockKind, CallRef, Form, total_tokens};
use crate::model::Counting;

/// Why an edit was refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum EditError {
    /// The edit would leave a result without its call.
    #[error("the edit would leave the result of call `{0}` without its call; drop or keep both")]
    OrphanResult(String),
    /// The edit would leave a call without the result it had.
    #[error("the edit would leave call `{0}` without its result; drop or keep both")]
    OrphanCall(String),
    /// A position that does not exist.
    #[error("position {at} is outside the context of {len} blocks")]
    OutOfRange {
        /// The position asked for.
        at: usize,
        /// Length of the context.
        len: usize,
    },
    /// A new order that is not a permutation.
    #[error("a new order must name every block exactly once")]
    NotAPermutation,
}

/// One change of the view.
#[derive(Debug)]
pub enum Edit {
    /// Replace the content of a block by a placeholder.
    Clear {
        /// Position.
        at: usize,
        /// What is shown instead.
        placeholder: Arc<str>,
    },
    /// Replace the content of a block by a cut version of it.
    Truncate {
        /// Position.
        at: usize,
        /// What is left, marker included.
        text: Arc<str>,
    },
    /// Remove blocks.
    Drop(Range<usize>),
    /// Put a summary and whatever goes with it in the place of blocks.
    Replace(Range<usize>, Vec<Arc<Block>>),
    /// Add a block.
    Insert(usize, Arc<Block>),
    /// New order, as old positions.
    Reorder(Vec<usize>),
}

/// The ordered blocks that the next request will show.
#[derive(Clone, Debug, Default)]
pub struct Context {
    blocks: Vec<Arc<Block>>,
    unsent_from: usize,
    counting: Counting,
    tokens: u64,
}

impl Context {
    /// An empty one whose tokens are counted so.
    pub fn new(counting: Counting) -> Self {
        Context { counting, ..Context::default() }
    }

    /// The blocks in order.
    pub fn blocks(&self) -> &[Arc<Block>] {
        &self.blocks
    }

    /// Billed tokens of all blocks, kept up to date by every edit. What a provider leaves out of a
    /// prompt unasked counts: [`prompt_tokens`](crate::context_editing::prompt_tokens) does not.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// First position changed since the last request.
    pub fn changed_from(&self) -> usize {
        self.unsent_from
    }

    /// Notes that the present state was sent.
    pub fn mark_sent(&mut self) {
        self.unsent_from = self.blocks.len();
    }

    /// Appends a block.
    pub fn push(&mut self, block: Arc<Block>) {
        self.tokens += block.tokens(&self.counting);
        self.blocks.push(block);
    }

    /// Carries out an edit, or refuses it and changes nothing.
    pub fn apply(&mut self, edit: Edit) -> Result<(), EditError> {
        match edit {
            Edit::Clear { at, placeholder } => self.alter(at, Form::Cleared, placeholder),
            Edit::Truncate { at, text } => self.alter(at, Form::Truncated, text),
            Edit::Drop(range) => self.splice(range, Vec::new()),
            Edit::Replace(range, with) => self.splice(range, with),
            Edit::Insert(at, block) => self.splice(at..at, vec![block]),
            Edit::Reorder(order) => {
                let mut seen = vec![false; self.blocks.len()];
                for &i in &order {
                    match seen.get_mut(i) {
                        Some(s) if !*s => *s = true,
                        _ => return Err(EditError::NotAPermutation),
                    }
                }
                if order.len() != self.blocks.len() {
                    return Err(EditError::NotAPermutation);
                }
                self.set(order.iter().map(|&i| self.blocks[i].clone()).collect())
            }
        }
    }

    /// Shows exactly these blocks from now on, unless that separates a call from its result.
    pub fn set(&mut self, blocks: Vec<Arc<Block>>) -> Result<(), EditError> {
        check_pairs(&self.blocks, &blocks)?;
        let same = crate::block::common_prefix(&self.blocks, &blocks);
        self.unsent_from = self.unsent_from.min(same);
        self.tokens = total_tokens(&self.counting, &blocks);
        self.blocks = blocks;
        Ok(())
    }

    fn alter(&mut self, at: usize, form: Form, text: Arc<str>) -> Result<(), EditError> {
        let len = self.blocks.len();
        let block = self.blocks.get_mut(at).ok_or(EditError::OutOfRange { at, len })?;
        let new = block.altered(form, text);
        self.tokens = self.tokens + new.tokens(&self.counting) - block.tokens(&self.counting);
        *block = new;
        self.unsent_from = self.unsent_from.min(at);
        Ok(())
    }

    fn splice(&mut self, range: Range<usize>, with: Vec<Arc<Block>>) -> Result<(), EditError> {
        if range.start > range.end || range.end > self.blocks.len() {
            return Err(EditError::OutOfRange {
                at: range.end.max(range.start),
                len: self.blocks.len(),
            });
        }
        let mut blocks = self.blocks.clone();
        blocks.splice(range, with);
        self.set(blocks)
    }
}

/// Ids of calls and results of a view that lack their partner.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Calls without a result.
    pub calls: Vec<String>,
    /// Results without an earlier call.
    pub results: Vec<String>,
}

/// Finds calls and results without their partner. Calls behind which nothing but further calls
/// stands count as open, not as orphans.
pub fn orphans(blocks: &[Arc<Block>]) -> Orphans {
    let mut pairing = Pairing::default();
    blocks.iter().for_each(|b| pairing.add(b));
    pairing.orphans(blocks)
}

/// The calls and results of a view that grows at its end.
#[derive(Clone, Debug, Default)]
pub struct Pairing {
    /// Calls without a result so far.
    open: Vec<Arc<CallRef>>,
    /// Results without a call.
    lost: Vec<Arc<CallRef>>,
}

impl Pairing {
    /// This block stands behind those before.
    pub fn add(&mut self, b: &Block) {
        match (b.kind, &b.call) {
            (BlockKind::Call, Some(c)) => self.open.push(c.clone()),
            (BlockKind::Output, Some(c)) => match self.open.iter().position(|o| o.id == c.id) {
                Some(i) => drop(self.open.remove(i)),
                None => self.lost.push(c.clone()),
            },
            _ => {}
        }
    }

    /// What of the view lacks its partner; these are all blocks that were added.
    pub fn orphans(&self, blocks: &[Arc<Block>]) -> Orphans {
        let results = self.lost.iter().map(|c| c.id.to_string()).collect();
        if self.open.is_empty() {
            return Orphans { calls: Vec::new(), results };
        }
        let at_the_end = |b: &&Arc<Block>| {
            matches!(
                b.kind,
                BlockKind::Call | BlockKind::Output | BlockKind::Assistant | BlockKind::Reasoning
            )
        };
        let calls = blocks.iter().rev().take_while(at_the_end);
        let trailing: HashSet<&str> =
            calls.filter(|b| b.kind == BlockKind::Call).filter_map(|b| b.call_id()).collect();
        let orphaned = self.open.iter().filter(|c| !trailing.contains(&*c.id));
        Orphans { calls: orphaned.map(|c| c.id.to_string()).collect(), results }
    }
}

/// An edit may not separate what was together before it.
fn check_pairs(before: &[Arc<Block>], after: &[Arc<Block>]) -> Result<(), EditError> {
    let new = orphans(after);
    if new.calls.is_empty() && new.results.is_empty() {
        return Ok(());
    }
    let old = orphans(before);
    if let Some(id) = new.results.iter().find(|id| !old.results.contains(id)) {
        return Err(EditError::OrphanResult((*id).to_string()));
    }
    let had_result: HashSet<&str> =
        before.iter().filter(|b| b.kind == BlockKind::Output).filter_map(|b| b.call_id()).collect();
    match new.calls.iter().find(|id| had_result.contains(id.as_str())) {
        Some(id) => Err(EditError::OrphanCall((*id).to_string())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{CallRef, Draft, MessageId, Role};

    fn block(kind: BlockKind, text: &str, call: Option<&str>) -> Arc<Block> {
        let mut d = Draft::text(kind, Role::User, text);
        d.call = call.map(|id| Arc::new(CallRef { id: id.into(), name: "t".into() }));
        d.build(MessageId(0), vec![])
    }

    fn sample() -> Context {
        let mut c = Context::default();
        for b in [
            block(BlockKind::User, "u", None),
            block(BlockKind::Call, "{}", Some("1")),
            block(BlockKind::Output, "long output", Some("1")),
            block(BlockKind::User, "v", None),
        ] {
            c.push(b);
        }
        c.mark_sent();
        c
    }

    #[test]
    fn refuses_to_orphan_and_leaves_the_view_alone() {
        let mut c = sample();
        assert_eq!(c.apply(Edit::Drop(0..2)), Err(EditError::OrphanResult("1".into())));
        assert_eq!(c.apply(Edit::Drop(2..3)), Err(EditError::OrphanCall("1".into())));
        assert_eq!(c.blocks().len(), 4);
        assert_eq!(c.changed_from(), 4);
        assert_eq!(c.apply(Edit::Drop(1..3)), Ok(()));
        assert_eq!(c.changed_from(), 1);
    }

    #[test]
    fn tokens_follow_every_edit() {
        let mut c = sample();
        let before = c.tokens();
        c.apply(Edit::Clear { at: 2, placeholder: "x".into() }).unwrap();
        assert!(c.tokens() < before);
        assert_eq!(c.tokens(), total_tokens(&Counting::O200K, c.blocks()));
        assert_eq!(c.changed_from(), 2);
        c.apply(Edit::Insert(0, block(BlockKind::Base, "base", None))).unwrap();
        assert_eq!(c.tokens(), total_tokens(&Counting::O200K, c.blocks()));
        assert_eq!(c.changed_from(), 0);
    }

    #[test]
    fn reorder_takes_permutations_only() {
        let mut c = sample();
        assert_eq!(c.apply(Edit::Reorder(vec![0, 0, 1, 2])), Err(EditError::NotAPermutation));
        assert_eq!(c.apply(Edit::Reorder(vec![0, 1])), Err(EditError::NotAPermutation));
        assert_eq!(c.apply(Edit::Reorder(vec![3, 1, 2, 0])), Ok(()));
        assert_eq!(&*c.blocks()[0].text, "v");
        assert_eq!(
            c.apply(Edit::Reorder(vec![0, 2, 1, 3])),
            Err(EditError::OrphanResult("1".into()))
        );
    }

    #[test]
    fn an_unanswered_call_at_the_end_is_open() {
        let mut c = sample();
        c.push(block(BlockKind::Call, "{}", Some("2")));
        assert_eq!(orphans(c.blocks()), Orphans::default());
        c.push(block(BlockKind::User, "w", None));
        assert_eq!(orphans(c.blocks()).calls, ["2"]);
    }
}
