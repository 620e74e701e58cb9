//! What a user's hooks add to a compaction, or that they forbid it (docs/sources/claude-code.md
//! §1.5). A hook is a program; here it is what it prints.
//!
//! `PreCompact` prints instructions for the summary or blocks the compaction, `SessionStart` with
//! the source `compact` prints what stands in the context afterwards. `PostCompact` is told the
//! summary and adds nothing, so there is nothing to set.

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
    pub fn of(s: &ClaudeCodeSettings) -> Self {
        Hooks { before: s.hook_before.clone(), after: s.hook_after.clone(), blocks: s.hook_blocks }
    }

    /// Whether a compaction is forbidden that the user asked for (`by_hand`), or that comes by
    /// itself.
    pub fn block(&self, by_hand: bool) -> bool {
        match self.blocks {
            HookBlocks::Nothing => false,
            HookBlocks::ManualCompaction => by_hand,
            HookBlocks::Auto => !by_hand,
            HookBlocks::Both => true,
        }
    }

    /// Whether a hook has a word in the summary; one that was prepared without it is not used.
    pub fn instructs(&self) -> bool {
        self.before.is_some()
    }

    /// What is added to the summary's instruction: the user's words, then the hook's.
    pub fn instructions(&self, user: Option<&str>) -> Option<String> {
        let said: Vec<&str> = user.into_iter().chain(self.before.as_deref()).collect();
        (!said.is_empty()).then(|| said.join("\n\n"))
    }

    /// What is shown behind the summary and what came back with it.
    pub fn shown(&self, s: &mut Engine) -> Option<Arc<Block>> {
        let text = self.after.clone()?;
        Some(s.synthetic(BlockKind::Marker, Role::User, text, Vec::new()))
    }
}

#[cfg(test)]
#[path = "hooks_tests.rs"]
mod tests;
