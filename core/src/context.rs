//! The context: the ordered blocks of the next request.
//!
//! Strategies edit this view and never the history. An edit that would separate a tool call from its
//! result is refused and changes nothing.

use std::collections::VecDeque;
use std::sync::Arc;

use rapidhash::RapidHashSet as HashSet;
use thiserror::Error;

use crate::block::{Block, BlockKind, CallRef, total_tokens};
use crate::model::Counting;

#[derive(Debug, Error, PartialEq, Eq)]
pub enum EditError {
    /// The edit would leave a result without its call.
    #[error("the edit would leave the result of call `{0}` without its call; drop or keep both")]
    OrphanResult(String),
    /// The edit would remove the result of a call but not the call.
    #[error("the edit would leave call `{0}` without its result; drop or keep both")]
    OrphanCall(String),
}

/// The ordered blocks of the next request.
#[derive(Clone, Debug, Default)]
pub struct Context {
    blocks: Vec<Arc<Block>>,
    unsent_from: usize,
    counting: Counting,
    tokens: u64,
}

impl Context {
    pub(crate) fn new(counting: Counting) -> Self {
        Context { counting, ..Context::default() }
    }

    pub fn blocks(&self) -> &[Arc<Block>] {
        &self.blocks
    }

    /// Returns the billed tokens of all blocks, including thinking that the provider would leave out
    /// by default; [`prompt_tokens`](crate::context_editing::prompt_tokens) excludes it.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Returns the first position that has changed since the last request.
    pub fn changed_from(&self) -> usize {
        self.unsent_from
    }

    pub(crate) fn mark_sent(&mut self) {
        self.unsent_from = self.blocks.len();
    }

    pub fn push(&mut self, block: Arc<Block>) {
        self.tokens += block.tokens(&self.counting);
        self.blocks.push(block);
    }

    /// Replaces the blocks, unless that would separate a call from its result.
    pub(crate) fn set(&mut self, blocks: Vec<Arc<Block>>) -> Result<(), EditError> {
        check_pairs(&self.blocks, &blocks)?;
        let same = crate::block::common_prefix(&self.blocks, &blocks);
        self.unsent_from = self.unsent_from.min(same);
        self.tokens = total_tokens(&self.counting, &blocks);
        self.blocks = blocks;
        Ok(())
    }
}

/// Ids of calls without a result and of results without a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Orphans {
    /// Calls without a result.
    pub calls: Vec<String>,
    /// Results without an earlier call.
    pub results: Vec<String>,
}

/// Finds calls without a result and results without a call. Calls at the end of the view are still
/// open and not orphans.
pub fn orphans(blocks: &[Arc<Block>]) -> Orphans {
    // Calls without a result so far, and results without a call.
    let (mut open, mut lost): (VecDeque<&CallRef>, Vec<&CallRef>) = Default::default();
    for b in blocks {
        match (b.kind, &b.call) {
            (BlockKind::Call, Some(c)) => open.push_back(c),
            (BlockKind::Output, Some(c)) => match open.iter().position(|o| o.id == c.id) {
                Some(i) => drop(open.remove(i)),
                None => lost.push(c),
            },
            _ => {}
        }
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
    open.retain(|c| !trailing.contains(&*c.id));
    let id = |call: &&CallRef| call.id.to_string();
    Orphans { calls: open.iter().map(id).collect(), results: lost.iter().map(id).collect() }
}

/// Refuses an edit that separates a call from the result that it had.
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
    fn set_that_separates_call_and_result_is_refused() {
        let mut c = sample();
        let [u, call, output, v] = c.blocks() else { unreachable!("the sample has four blocks") };
        let (u, call, output, v) = (u.clone(), call.clone(), output.clone(), v.clone());
        let refused = c.set(vec![output.clone(), v.clone()]);
        assert_eq!(refused, Err(EditError::OrphanResult("1".into())));
        let refused = c.set(vec![u.clone(), call.clone(), v.clone()]);
        assert_eq!(refused, Err(EditError::OrphanCall("1".into())));
        let refused = c.set(vec![u.clone(), output, call, v.clone()]);
        assert_eq!(refused, Err(EditError::OrphanResult("1".into())));
        assert_eq!((c.blocks().len(), c.changed_from()), (4, 4));
        assert_eq!(c.set(vec![u, v]), Ok(()));
        assert_eq!(c.changed_from(), 1);
        assert_eq!(c.tokens(), total_tokens(&Counting::O200K, c.blocks()));
    }

    #[test]
    fn orphans_ignore_open_calls_at_the_end() {
        let mut c = sample();
        c.push(block(BlockKind::Call, "{}", Some("2")));
        assert_eq!(orphans(c.blocks()), Orphans::default());
        c.push(block(BlockKind::User, "w", None));
        assert_eq!(orphans(c.blocks()).calls, ["2"]);
    }
}
