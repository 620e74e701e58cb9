//! Replacing blocks, and restoring replaced views.

use std::sync::Arc;

use crate::block::{Block, BlockKind, Draft, MessageId, Origins, Role, is_system};
use crate::engine::Engine;

/// Builds a block that exists only in one request.
pub fn ephemeral_block(kind: BlockKind, role: Role, text: impl Into<Arc<str>>) -> Arc<Block> {
    Draft::synthetic(kind, role, text).ephemeral()
}

/// Returns the blocks for which `stays` is true of position and block.
pub fn kept(blocks: &[Arc<Block>], stays: impl Fn(usize, &Block) -> bool) -> Vec<Arc<Block>> {
    let kept = blocks.iter().enumerate().filter(|(i, b)| stays(*i, b));
    kept.map(|(_, b)| b.clone()).collect()
}

/// Returns the combined origins of blocks.
pub fn origins(blocks: &[Arc<Block>]) -> Origins {
    blocks.iter().map(|b| &b.origin).collect()
}

/// Returns the view after a compaction by the provider: the system part and the compaction block.
pub fn view_after_compaction(s: &mut Engine, summary: Arc<str>) -> Vec<Arc<Block>> {
    let blocks = s.context.blocks();
    let origin = origins(blocks);
    let mut shown: Vec<_> = blocks.iter().filter(|b| is_system(b)).cloned().collect();
    shown.push(s.synthetic(BlockKind::Compaction, Role::Assistant, summary, origin));
    shown
}

/// Views before compactions. Going back to before a compaction restores its view.
#[derive(Default)]
pub struct UndoStack(Vec<(MessageId, Vec<Arc<Block>>)>);

impl UndoStack {
    /// Stores the view before a compaction. A rewind to a point before message `at` restores the
    /// view.
    pub fn push(&mut self, at: MessageId, view: Vec<Arc<Block>>) {
        self.0.push((at, view));
    }

    /// Restores the view before the first compaction after message `to`, if there is one. Messages
    /// after `to` remain in it.
    pub fn restore_before(&mut self, s: &mut Engine, to: MessageId) {
        if let Some(i) = self.0.iter().position(|(at, _)| *at > to) {
            let (_, view) = self.0.swap_remove(i);
            self.0.truncate(i);
            // An earlier view is always valid.
            let _ = s.set_view(view);
        }
    }
}
