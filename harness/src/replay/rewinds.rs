//! Whether a rewind shows what the product showed at that message.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ctxbench_core::block::{Block, total_tokens};
use ctxbench_core::engine::{Event, RewindKind, RewindStatus, Stamped};
use ctxbench_core::record::RewindRecord;
use ctxbench_core::session::Session;

use crate::rewind::targets;

/// A view: tokens, and the hash of each block.
type View = (u64, Vec<u64>);

/// What a rewind shows, held against what was shown then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    /// Tokens of the view then.
    then: Option<u64>,
    equal: Option<bool>,
}

/// Views at the messages that the session goes back to.
#[derive(Debug, Default)]
pub(super) struct Rewinds {
    /// By message: right after it was recorded, and when its turn was over.
    views: BTreeMap<String, Vec<View>>,
    held: VecDeque<Held>,
}

fn view(blocks: &[Arc<Block>]) -> View {
    (total_tokens(blocks), blocks.iter().map(|b| b.hash).collect())
}

impl Rewinds {
    /// Nothing is kept for messages that nobody goes back to.
    pub(super) fn new(session: &Session) -> Self {
        let views = targets(session).into_iter().map(|t| (t, Vec::new())).collect();
        Rewinds { views, held: VecDeque::new() }
    }

    /// A message was recorded, or its turn is over.
    pub(super) fn shown(&mut self, key: &str, blocks: &[Arc<Block>]) {
        if let Some(seen) = self.views.get_mut(key) {
            seen.push(view(blocks));
        }
    }

    /// The context after a rewind.
    pub(super) fn went_back(&mut self, to: &str, after: &[Arc<Block>]) {
        let seen = self.views.get(to).filter(|v| !v.is_empty());
        let now = view(after);
        let held = seen.map(|seen| Held { then: seen.last().map(|v| v.0), equal: Some(seen.contains(&now)) });
        self.held.push_back(held.unwrap_or_default());
    }

    /// The conversation's half of every rewind that the run reached.
    pub(super) fn records(&mut self, events: &[Stamped]) -> Vec<RewindRecord> {
        let mut out = Vec::new();
        for e in events {
            let Event::Rewound { to, kind, status, before, after } = &e.event else { continue };
            let held = self.held.pop_front().unwrap_or_default();
            let back = *kind == RewindKind::Conversation;
            out.push(RewindRecord {
                seq: out.len() as u64,
                to: to.clone(),
                status: match status {
                    RewindStatus::Done => "done".into(),
                    RewindStatus::Failed => "failed".into(),
                    RewindStatus::Unsupported => "n/a".into(),
                },
                before_request: e.before_request,
                at_ms: e.at_ms,
                context_before: Some(total_tokens(before)),
                context_after: Some(total_tokens(after)),
                context_then: held.then.filter(|_| back),
                context_equal: held.equal.filter(|_| back && *status == RewindStatus::Done),
                ..RewindRecord::default()
            });
        }
        out
    }
}

#[cfg(test)]
#[path = "rewinds_tests.rs"]
mod tests;
