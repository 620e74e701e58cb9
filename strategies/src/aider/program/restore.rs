//! Restores the history from its file after a restart (docs/sources/aider.md §1.5,
//! `--restore-chat-history`).

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, CallRef, Draft, Role};
use ctxbench_core::content::{Part, ToolCall};
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

    /// Returns all messages of the session in the form that this program shows.
    fn spoken(&self, s: &Engine) -> Vec<Draft> {
        let mut out = Vec::new();
        for m in s.history.messages().iter().filter(|m| !m.synthetic) {
            for p in &m.parts {
                let call = |id: &str, name: &str| {
                    Some(Arc::new(CallRef { id: id.into(), name: name.into() }))
                };
                let draft = match p {
                    Part::Text(t) if m.role == Role::Assistant => {
                        Draft::text(BlockKind::Assistant, Role::Assistant, t.clone())
                    }
                    Part::Text(t) => Draft::text(BlockKind::User, Role::User, t.clone()),
                    Part::Call(ToolCall { id, name, arguments }) => Draft {
                        call: call(id, name),
                        ..Draft::text(BlockKind::Call, Role::Assistant, arguments.clone())
                    },
                    Part::Result { id, name, output, is_error } => {
                        let d = Draft::text(BlockKind::Output, Role::Tool, output.clone());
                        Draft { call: call(id, name), is_error: *is_error, ..d }
                    }
                    _ => continue,
                };
                out.push(self.admit(draft));
            }
        }
        out
    }
}
