//! Gemini CLI's history: alternating messages of user and model.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Role, is_system};

/// Speaker of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    User,
    Model,
}

/// A message. Consecutive messages of one side are merged.
#[derive(Debug)]
pub(super) struct ContentMessage {
    pub(super) side: Side,
    pub(super) parts: Vec<Arc<Block>>,
}

impl ContentMessage {
    /// Returns true if the message contains tool results.
    pub(super) fn has_results(&self) -> bool {
        self.parts.iter().any(|b| b.kind == BlockKind::Output)
    }

    fn has_calls(&self) -> bool {
        self.parts.iter().any(|b| b.kind == BlockKind::Call)
    }

    /// Returns true if the message ends a turn of the model.
    pub(super) fn is_answer(&self) -> bool {
        self.side == Side::Model && !self.has_calls()
    }
}

/// Returns the side of a block. `None` = the block is not part of the history.
pub(super) fn side(b: &Block) -> Option<Side> {
    match (b.kind, b.role) {
        (BlockKind::RepoMap | BlockKind::File | BlockKind::Reasoning, _) => None,
        _ if is_system(b) => None,
        (_, Role::Assistant) => Some(Side::Model),
        _ => Some(Side::User),
    }
}

/// Groups blocks into messages.
pub(super) fn messages<'a>(blocks: impl Iterator<Item = &'a Arc<Block>>) -> Vec<ContentMessage> {
    let mut out: Vec<ContentMessage> = Vec::new();
    for b in blocks {
        let Some(side) = side(b) else { continue };
        match out.last_mut().filter(|m| m.side == side) {
            Some(last) => last.parts.push(b.clone()),
            None => out.push(ContentMessage { side, parts: vec![b.clone()] }),
        }
    }
    out
}

/// Returns the ID of a call in the history: tool name and call ID. Normal requests omit the name.
pub(super) fn stable_id(b: &Block) -> String {
    b.call.as_ref().map_or_else(String::new, |c| format!("{}__{}", c.name, c.id))
}
