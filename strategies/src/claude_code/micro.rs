//! Claude Code's first layer, which clears old tool results before anything is summarised
//! (docs/sources/claude-code.md §1.2).

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockForm, BlockKind};
use ctxbench_core::compaction::clear_outputs;
use ctxbench_core::engine::Engine;
use ctxbench_core::request::ServerEdit;

/// Results that the provider removes from its cached prefix. The view shows them cleared, like the
/// model sees them. The request contains them unchanged and lists them in an edit.
#[derive(Default)]
pub(crate) struct Deleted(HashMap<Arc<str>, Arc<Block>>);

impl Deleted {
    /// Returns a view without the results at these positions, and remembers them.
    pub fn delete(
        &mut self,
        blocks: &[Arc<Block>],
        at: &[usize],
        placeholder: &Arc<str>,
    ) -> Vec<Arc<Block>> {
        for b in at.iter().map(|&i| &blocks[i]) {
            if let Some(id) = b.call_id() {
                self.0.insert(id.into(), b.clone());
            }
        }
        clear_outputs(blocks, at, placeholder)
    }

    /// Returns the blocks of the view for a request, with deleted results restored, and the edit
    /// that lists them.
    pub fn as_sent(&self, blocks: &[Arc<Block>]) -> (Vec<Arc<Block>>, Vec<ServerEdit>) {
        let mut results: Vec<Arc<str>> = Vec::new();
        let mut as_it_was = |b: &Arc<Block>| {
            let known = (b.kind == BlockKind::Output && b.form == BlockForm::Cleared)
                .then(|| self.0.get_key_value(b.call_id()?))
                .flatten();
            known.map_or_else(
                || b.clone(),
                |(id, was)| {
                    results.push(id.clone());
                    was.clone()
                },
            )
        };
        let blocks = blocks.iter().map(&mut as_it_was).collect();
        let edits =
            if results.is_empty() { Vec::new() } else { vec![ServerEdit::CacheEdits { results }] };
        (blocks, edits)
    }
}

/// Returns whether the provider supports clearing tool results on the server.
pub(crate) fn provider_deletes(s: &Engine) -> bool {
    s.model.capabilities.context_editing
}
