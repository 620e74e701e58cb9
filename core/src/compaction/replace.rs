//! What takes the place of blocks, and how what they replaced comes back.

use std::sync::Arc;

use crate::block::{Block, BlockKind, Draft, MessageId, Origins, Role};
use crate::engine::Engine;
use crate::strategy::is_system;

/// A block of a request that is in no history.
pub fn passing(kind: BlockKind, role: Role, text: impl Into<Arc<str>>) -> Arc<Block> {
    Draft::synthetic(kind, role, text).build(MessageId(u32::MAX), vec![])
}

/// Everything that blocks stand for.
pub fn origins(blocks: &[Arc<Block>]) -> Origins {
    blocks.iter().map(|b| &b.origin).collect()
}

/// The view in which the provider's own compaction stands for everything but the system part.
pub fn behind_compaction(s: &mut Engine, summary: Arc<str>) -> Vec<Arc<Block>> {
    let blocks = s.context.blocks();
    let origin = origins(blocks);
    let mut shown: Vec<_> = blocks.iter().filter(|b| is_system(b)).cloned().collect();
    shown.push(s.synthetic(BlockKind::Compaction, Role::Assistant, summary, origin));
    shown
}

/// Views as they were before compactions, each under a message of its time: going back behind one
/// brings it back.
#[derive(Default)]
pub struct Replaced(Vec<(MessageId, Vec<Arc<Block>>)>);

impl Replaced {
    /// A view is about to be replaced; it comes back when the conversation goes to before `at`.
    pub fn keep(&mut self, at: MessageId, view: Vec<Arc<Block>>) {
        self.0.push((at, view));
    }

    /// Shows what was shown before the first compaction behind a message, if there is one. What was
    /// said since the message stays in it.
    pub fn back_to(&mut self, s: &mut Engine, to: MessageId) {
        if let Some(i) = self.0.iter().position(|(at, _)| *at > to) {
            let (_, view) = self.0.swap_remove(i);
            self.0.truncate(i);
            // A view that was shown before is always valid.
            let _ = s.context.set(view);
        }
    }
}
