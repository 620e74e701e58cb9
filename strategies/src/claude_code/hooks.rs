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

impl ClaudeCodeSettings {
    /// Returns whether a hook blocks a compaction: a manual one (`by_hand`) or an automatic one.
    pub fn blocks_compaction(&self, by_hand: bool) -> bool {
        match self.hook_blocks {
            HookBlocks::Nothing => false,
            HookBlocks::ManualCompaction => by_hand,
            HookBlocks::Auto => !by_hand,
            HookBlocks::Both => true,
        }
    }

    /// Joins the additions to the summary's instruction: the user's, then the hook's.
    pub fn instructions(&self, user: Option<&str>) -> Option<String> {
        let said: Vec<&str> = user.into_iter().chain(self.hook_before.as_deref()).collect();
        (!said.is_empty()).then(|| said.join("\n\n"))
    }

    /// Returns the hook's text to show after the summary and the restored blocks.
    pub fn hook_block(&self, s: &mut Engine) -> Option<Arc<Block>> {
        let text = self.hook_after.clone()?;
        Some(s.synthetic(BlockKind::Marker, Role::User, text, Vec::new()))
    }
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
