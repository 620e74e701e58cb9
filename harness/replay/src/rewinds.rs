//! Compares the context after a rewind with the earlier one at that message.

use std::collections::BTreeMap;
use std::sync::Arc;

use ctxbench_core::block::{Block, total_tokens};
use ctxbench_core::model::Counting;
use ctxbench_session::{Entry, Session};

/// A view: tokens, and the hash of each block.
type View = (u64, Vec<u64>);

/// Comparison of the context after a rewind with the earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    /// Tokens of the earlier context.
    pub(crate) then: Option<u64>,
    pub(crate) equal: Option<bool>,
}

/// Contexts at the messages to which the session rewinds: after the message was recorded, and at
/// the end of its turn.
#[derive(Debug, Default)]
pub(super) struct Rewinds {
    counting: Counting,
    views: BTreeMap<String, Vec<View>>,
}

fn view(by: &Counting, blocks: &[Arc<Block>]) -> View {
    (total_tokens(by, blocks), blocks.iter().map(|b| b.hash).collect())
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

    /// Compares the context after a rewind with the contexts that were recorded at this message.
    pub(super) fn went_back(&self, to: &str, after: &[Arc<Block>]) -> Compared {
        let Some(seen) = self.views.get(to).filter(|v| !v.is_empty()) else {
            return Compared::default();
        };
        let equal = seen.contains(&view(&self.counting, after));
        Compared { then: seen.last().map(|v| v.0), equal: Some(equal) }
    }
}

#[cfg(test)]
#[path = "rewinds_tests.rs"]
mod tests;
