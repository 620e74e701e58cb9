//! Incremental processing of block lists that grow at their end.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind};

/// Replaces `old` by `new`. Returns the index of the first block to process: the first new one if
/// `new` extends `old`, else 0.
pub(super) fn follow(old: &mut Vec<Arc<Block>>, new: &[Arc<Block>]) -> usize {
    let begins = old.len() <= new.len() && old.iter().zip(new).all(|(a, b)| Arc::ptr_eq(a, b));
    if !begins {
        old.clear();
    }
    let from = old.len();
    old.extend_from_slice(&new[from..]);
    from
}

/// Detects whether requests show thinking, or compactions made by the provider.
#[derive(Default)]
pub(super) struct Special {
    blocks: Vec<Arc<Block>>,
    pub(super) thinking: bool,
    pub(super) compaction: bool,
}

impl Special {
    /// Processes the next request.
    pub(super) fn follow(&mut self, blocks: &[Arc<Block>]) {
        let from = follow(&mut self.blocks, blocks);
        let any = |kind: BlockKind| blocks[from..].iter().any(|b| b.kind == kind);
        let (thinking, compaction) = (any(BlockKind::Reasoning), any(BlockKind::Compaction));
        self.thinking = thinking || from > 0 && self.thinking;
        self.compaction = compaction || from > 0 && self.compaction;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{Draft, MessageId, Role};

    #[test]
    fn what_is_new_is_looked_at_and_all_of_it_where_the_beginning_changed() {
        let block = |kind| Draft::text(kind, Role::User, "x").build(MessageId(0), vec![]);
        let [a, b, c] = [BlockKind::User, BlockKind::Reasoning, BlockKind::User].map(block);
        let mut row = Vec::new();
        let mut special = Special::default();
        let rows = [vec![a.clone()], vec![a.clone(), b.clone()], vec![a, b, c.clone()], vec![c]];
        let from = rows.each_ref().map(|new| follow(&mut row, new));
        let thinking = rows.each_ref().map(|new| {
            special.follow(new);
            special.thinking
        });
        assert_eq!((from, thinking), ([0, 1, 2, 0], [false, true, true, false]));
    }
}
