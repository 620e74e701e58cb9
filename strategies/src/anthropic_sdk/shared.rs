//! What all versions of the tool runner do alike.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, Role};
use ctxbench_core::compaction::origins;
use ctxbench_core::engine::Engine;

use super::settings::SdkSettings;

/// Further attempts of the SDK's client at a request that fails for a passing reason: its default
/// `max_retries`, which nobody here changes (the client's documentation; the facts say nothing of
/// it).
pub(crate) const CLIENT_RETRIES: u32 = 2;

/// Results travel in user messages on this wire.
pub(crate) fn admit(mut raw: Draft) -> Draft {
    if raw.kind == BlockKind::Output {
        raw.role = Role::User;
    }
    raw
}

/// The view after a summary of everything: the system prompt and the summary, which stands for the
/// rest.
pub(crate) fn only(s: &mut Engine, text: Arc<str>) -> (Vec<Arc<Block>>, Arc<Block>) {
    let origin = origins(s.context.blocks());
    let shown = s.context.blocks().iter().filter(|b| b.kind == BlockKind::Base).cloned().collect();
    (shown, s.synthetic(BlockKind::Summary, Role::User, text, origin))
}

/// Replies of the present turn, and how many the caller allows.
pub(crate) struct Iterations {
    most: Option<u64>,
    done: u64,
}

impl Iterations {
    pub(crate) fn of(s: &SdkSettings) -> Self {
        Iterations { most: s.max_iterations, done: 0 }
    }

    /// A new turn, which is a new run of the runner.
    pub(crate) fn begin(&mut self) {
        self.done = 0;
    }

    /// A reply came.
    pub(crate) fn count(&mut self) {
        self.done += 1;
    }

    /// Whether no further request may be made.
    pub(crate) fn over(&self) -> bool {
        self.most.is_some_and(|most| self.done >= most)
    }
}
