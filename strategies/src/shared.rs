//! Steps that several products share.

use ctxbench_core::block;
use ctxbench_core::prelude::*;
use serde::Deserialize;

/// Places of cache breakpoints: after the system part and the last messages, or also at the frontier
/// of cleared results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Places {
    Ends,
    Frontier,
}

/// Returns true if a block is always shown, as files in the chat are.
pub(crate) fn is_fixed(b: &Block) -> bool {
    block::is_fixed(b) || b.kind == BlockKind::File
}

/// Returns the system prompt of a summary request: the session's, or else this text.
pub(crate) fn summary_base(s: &Engine, role: Role, text: &Arc<str>) -> Vec<Arc<Block>> {
    match &s.fixed.summary_base[..] {
        [] => vec![ephemeral_block(BlockKind::Base, role, text.clone())],
        given => given.to_vec(),
    }
}

/// Records an error result for a call that has none, and returns its block.
pub(crate) fn interrupted(s: &mut Engine, call: &Block, text: &str) -> Arc<Block> {
    let id = s.append(Role::Tool, vec![Part::Text(text.into())]);
    let draft = Draft {
        call: call.call.clone(),
        is_error: true,
        ..Draft::synthetic(BlockKind::Output, Role::Tool, text)
    };
    draft.build(id, vec![])
}

/// Concatenates parts. Returns the text and the positions at which the second and later parts begin.
pub(crate) fn joined(parts: &[String]) -> (String, Vec<usize>) {
    let mut at = 0;
    let ends = parts.iter().map(|t| {
        at += t.len();
        at
    });
    let mut splits: Vec<usize> = ends.collect();
    splits.pop();
    (parts.concat(), splits)
}
