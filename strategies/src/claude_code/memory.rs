//! Claude Code's session memory: notes kept during the conversation that can replace a summary
//! (docs/sources/claude-code.md §1.5, grade C, off on every machine surveyed).
//!
//! A background request over the same prefix updates the notes and is charged like any other. When
//! the context is full, notes and a verbatim tail replace the conversation without a model call,
//! unless the result is still too large.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, MessageId, Role};
use ctxbench_core::compaction::ephemeral_block;
use ctxbench_core::engine::Engine;

use super::rules::tail_start;
use super::settings::ClaudeCodeSettings;
use super::summary::{IfNotReady, Prepared, Summaries};

#[derive(Default)]
pub(crate) struct SessionMemory {
    /// Size of the context at the last update, tokens.
    updated_at: Option<u64>,
    running: Prepared,
    notes: Option<Notes>,
}

/// Notes about the conversation up to and including a message.
struct Notes {
    text: String,
    upto: MessageId,
}

impl SessionMemory {
    /// Runs after a step: takes over finished notes, and starts the next update if the context has
    /// grown enough.
    pub async fn tend(&mut self, s: &mut Engine, asked: &Summaries, believed: u64) {
        let (set, words) = (&asked.settings, &asked.words);
        if !set.session_memory {
            return;
        }
        self.take_in(s).await;
        let grown = self.updated_at.is_none_or(|n| believed >= n + set.memory_growth_tokens);
        if believed < set.memory_start_tokens || !grown {
            return;
        }
        let so_far = self.notes.as_ref().map(|n| format!("{}\n\n{}", words.memory_so_far, n.text));
        let so_far = so_far.map(|t| ephemeral_block(BlockKind::Summary, Role::User, t));
        let prompt = words.memory_prompt.clone();
        let prompt = ephemeral_block(BlockKind::SummaryPrompt, Role::User, prompt);
        if self.running.begin(s, asked, so_far.into_iter().chain([prompt])).await {
            self.updated_at = Some(believed);
        }
    }

    /// Takes over the answer of a finished update. After a failure the older notes stay, and the
    /// next update tries again.
    async fn take_in(&mut self, s: &mut Engine) {
        if let Some((_, text, upto)) = self.running.answer(s, IfNotReady::Keep).await {
            self.notes = Some(Notes { text, upto });
        }
    }

    /// Returns notes that can replace the history, and the start of the verbatim tail after them.
    pub async fn stand_in(
        &mut self,
        s: &mut Engine,
        set: &ClaudeCodeSettings,
        history: &[Arc<Block>],
    ) -> Option<(String, usize)> {
        if !set.session_memory {
            return None;
        }
        self.take_in(s).await;
        // The earlier notes are used, or else a summary.
        self.running.missed(s);
        let notes = self.notes.as_ref()?;
        let unknown = history.iter().rposition(|b| b.message <= notes.upto).map_or(0, |i| i + 1);
        let from = tail_start(history, unknown, set);
        (from > 0).then(|| (notes.text.clone(), from))
    }

    /// Records that notes replaced the conversation. Growth counts from here.
    pub fn used(&mut self, believed: u64) {
        self.updated_at = Some(believed);
    }

    /// Stops an update in progress because the program ended. The notes stay in their file.
    pub fn stop(&mut self, s: &mut Engine) {
        self.running.cancel(s);
    }

    /// Drops the notes because the conversation has changed.
    pub fn forget(&mut self, s: &mut Engine) {
        self.stop(s);
        self.notes = None;
        self.updated_at = None;
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
