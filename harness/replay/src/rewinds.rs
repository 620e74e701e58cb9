//! Compares the context after a rewind with the earlier one at that message.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctxbench_core::block::{Block, total_tokens};
use ctxbench_core::model::Counting;
use ctxbench_core::tokens::content_hash;
use ctxbench_reports::record::RewindRecord;
use ctxbench_session::{Entry, Session};

/// A view: tokens, and a hash of its blocks.
type View = (u64, u64);

/// Contexts at the messages to which the session rewinds: after the message was recorded, and at
/// the end of its turn.
#[derive(Debug, Default)]
pub(super) struct Rewinds {
    counting: Counting,
    views: BTreeMap<String, Vec<View>>,
}

fn view(by: &Counting, blocks: &[Arc<Block>]) -> View {
    let hashes: Vec<u8> = blocks.iter().flat_map(|b| b.hash.to_le_bytes()).collect();
    (total_tokens(by, blocks), content_hash(&hashes))
}

impl Rewinds {
    /// Prepares for the messages to which the session rewinds. The contexts at other messages are
    /// not stored.
    pub(super) fn new(session: &Session, counting: Counting) -> Self {
        let target = |e: &Entry| match e {
            Entry::Rewind { to, .. } => Some((to.clone(), Vec::new())),
            _ => None,
        };
        Rewinds { counting, views: session.entries.iter().filter_map(target).collect() }
    }

    /// Records the context at a message, or at the end of its turn.
    pub(super) fn record_view(&mut self, key: &str, blocks: &[Arc<Block>]) {
        if let Some(seen) = self.views.get_mut(key) {
            seen.push(view(&self.counting, blocks));
        }
    }

    /// Measures the contexts before and after a rewind, and compares the second one with the contexts
    /// that were recorded at this message.
    pub(super) fn measure(
        &self,
        to: &str,
        before: &[Arc<Block>],
        after: &[Arc<Block>],
    ) -> RewindRecord {
        let seen = self.views.get(to).map_or(&[][..], Vec::as_slice);
        let after = view(&self.counting, after);
        RewindRecord {
            context_before: Some(total_tokens(&self.counting, before)),
            context_after: Some(after.0),
            context_then: seen.last().map(|v| v.0),
            context_equal: (!seen.is_empty()).then(|| seen.contains(&after)),
            ..RewindRecord::default()
        }
    }
}

#[cfg(test)]
#[path = "rewinds_tests.rs"]
mod tests;
