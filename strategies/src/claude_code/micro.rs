//! Claude Code's first layer, which clears old tool results before anything is summarised
//! (docs/sources/claude-code.md §1.2).

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockForm, BlockKind};
use ctxbench_core::compaction::clear_outputs;
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
            let cleared = b.kind == BlockKind::Output && b.form == BlockForm::Cleared;
            let id = b.call_id().filter(|_| cleared);
            let Some((id, was)) = id.and_then(|id| self.0.get_key_value(id)) else {
                return b.clone();
            };
            results.push(id.clone());
            was.clone()
        };
        let blocks = blocks.iter().map(&mut as_it_was).collect();
        let edit = (!results.is_empty()).then_some(ServerEdit::CacheEdits { results });
        (blocks, edit.into_iter().collect())
    }
}
