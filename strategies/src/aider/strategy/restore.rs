//! Restores the history from its file after a restart (docs/sources/aider.md §1.5,
//! `--restore-chat-history`).

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, Role};
use ctxbench_core::content::Part;
use ctxbench_core::engine::Engine;
use ctxbench_core::strategy::Strategy;

use super::AiderProgram;
use crate::aider::markdown::{self, MarkdownSpeaker};

impl AiderProgram {
    /// Returns the history as read from its file (docs/sources/aider.md §1.5).
    pub(super) fn restored(&self, s: &mut Engine) -> Vec<Arc<Block>> {
        let mut file = String::new();
        markdown::append_start(&mut file, "");
        for b in self.spoken(s) {
            let who = if b.role == Role::Assistant {
                MarkdownSpeaker::Assistant
            } else {
                MarkdownSpeaker::User
            };
            markdown::append(&mut file, who, &b.text);
        }
        markdown::split_chat_history_markdown(&file, false)
            .into_iter()
            .map(|(who, text)| match who {
                MarkdownSpeaker::Assistant => {
                    s.synthetic(BlockKind::Assistant, Role::Assistant, text, vec![])
                }
                _ => s.synthetic(BlockKind::User, Role::User, text, vec![]),
            })
            .collect()
    }

    /// Returns all messages of the session in the form that this program shows, without reasoning and
    /// images.
    fn spoken(&self, s: &Engine) -> Vec<Draft> {
        let said = s.history.messages().iter().filter(|m| !m.synthetic);
        let parts = said.flat_map(|m| m.parts.iter().map(|p| (m.role, p)));
        let kept =
            parts.filter(|(_, p)| matches!(p, Part::Text(_) | Part::Call(_) | Part::Result { .. }));
        kept.filter_map(|(role, p)| p.draft(role)).map(|d| self.admit(d)).collect()
    }
}
