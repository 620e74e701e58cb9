//! Small questions about blocks that several strategies ask.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind};

/// Always shown, whatever is forgotten.
pub fn is_fixed(b: &Block) -> bool {
    matches!(b.kind, BlockKind::Base | BlockKind::Context | BlockKind::RepoMap)
}

/// Positions at which a model reply begins.
pub fn step_starts(blocks: &[Arc<Block>]) -> Vec<usize> {
    let made =
        |b: &Block| matches!(b.kind, BlockKind::Assistant | BlockKind::Reasoning | BlockKind::Call);
    (0..blocks.len())
        .filter(|&i| made(&blocks[i]) && (i == 0 || blocks[i - 1].message != blocks[i].message))
        .collect()
}
