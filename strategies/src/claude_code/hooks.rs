//! A user's hooks: they add to a compaction or block it (docs/sources/claude-code.md §1.5). A hook
//! is a program; the settings contain its output.
//!
//! `PreCompact` prints instructions for the summary or blocks the compaction. `SessionStart` with
//! the source `compact` prints a text for the new context. `PostCompact` receives the summary and
//! adds nothing, so it has no setting.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_core::engine::Engine;

use super::settings::{ClaudeCodeSettings, HookBlocks};

pub(crate) struct Hooks {
    before: Option<Arc<str>>,
    after: Option<Arc<str>>,
    blocks: HookBlocks,
}

impl Hooks {
    pub fn from_settings(s: &ClaudeCodeSettings) -> Self {
        Hooks { before: s.hook_before.clone(), after: s.hook_after.clone(), blocks: s.hook_blocks }
    }

    /// Returns whether a compaction is blocked: a manual one (`by_hand`) or an automatic one.
    pub fn blocks_compaction(&self, by_hand: bool) -> bool {
        match self.blocks {
            HookBlocks::Nothing => false,
            HookBlocks::ManualCompaction => by_hand,
            HookBlocks::Auto => !by_hand,
            HookBlocks::Both => true,
        }
    }

    /// Returns whether a hook adds instructions; a summary prepared without them is not used.
    pub fn instructs(&self) -> bool {
        self.before.is_some()
    }

    /// Joins the additions to the summary's instruction: the user's, then the hook's.
    pub fn instructions(&self, user: Option<&str>) -> Option<String> {
        let said: Vec<&str> = user.into_iter().chain(self.before.as_deref()).collect();
        (!said.is_empty()).then(|| said.join("\n\n"))
    }

    /// Returns the hook's text to show after the summary and the restored blocks.
    pub fn block(&self, s: &mut Engine) -> Option<Arc<Block>> {
        let text = self.after.clone()?;
        Some(s.synthetic(BlockKind::Marker, Role::User, text, Vec::new()))
    }
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
