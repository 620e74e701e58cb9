//! Behaviour that all versions of the tool runner share.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, Role};
use ctxbench_core::compaction::origins;
use ctxbench_core::engine::Engine;

use super::settings::SdkSettings;

/// Number of retries of the SDK's client after a temporary failure. This is the default of its
/// `max_retries`, taken from the client's documentation; docs/sources does not mention it.
pub(crate) const CLIENT_RETRIES: u32 = 2;

/// Moves results to user messages, as this API requires.
pub(crate) fn admit(mut raw: Draft) -> Draft {
    if raw.kind == BlockKind::Output {
        raw.role = Role::User;
    }
    raw
}

/// Returns the view after a summary of the whole conversation: the system prompt, and the summary
/// block that replaces the rest.
pub(crate) fn only(s: &mut Engine, text: Arc<str>) -> (Vec<Arc<Block>>, Arc<Block>) {
    let origin = origins(s.context.blocks());
    let shown = s.context.blocks().iter().filter(|b| b.kind == BlockKind::Base).cloned().collect();
    (shown, s.synthetic(BlockKind::Summary, Role::User, text, origin))
}

/// Number of replies in the current turn, and the caller's limit.
pub(crate) struct Iterations {
    most: Option<u64>,
    done: u64,
}

impl Iterations {
    pub(crate) fn from_settings(s: &SdkSettings) -> Self {
        Iterations { most: s.max_iterations, done: 0 }
    }

    /// Begins a new turn, which is a new run of the runner.
    pub(crate) fn begin(&mut self) {
        self.done = 0;
    }

    /// Counts a reply of the current turn.
    pub(crate) fn count(&mut self) {
        self.done += 1;
    }

    /// Returns whether the turn has reached its limit of replies.
    pub(crate) fn over(&self) -> bool {
        self.most.is_some_and(|most| self.done >= most)
    }
}
