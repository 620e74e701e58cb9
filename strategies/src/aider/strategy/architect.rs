//! Architect mode: the main model describes the change, and an editor model writes it in a separate
//! context that is discarded afterwards (docs/sources/aider.md §1.6).

use ctxbench_core::model::Model;
use ctxbench_core::prelude::*;

use super::{ATTEMPTS, AiderProgram, as_text, has_edit, max_input};

/// Pairs of main model and editor model from the program's table. Every other model edits by itself
/// (docs/sources/aider.md §1.6).
const EDITORS: &[(&str, &str)] = &[("claude-opus-4-6", "claude-sonnet-4-5"), ("o3", "gpt-4.1")];

impl AiderProgram {
    /// Returns whether a reply is passed to the editor. A reply with an edit always is. Without
    /// `auto_accept`, the user declines all others. With it, the answer to a question is passed on
    /// as well. A reply with tool calls that are not edits is not yet complete, and a reply after
    /// an edit only closes a turn that has ended in the program.
    pub(super) fn is_proposal(&self, reply: &Reply) -> bool {
        let says = reply.text().is_some_and(|t| !t.trim().is_empty());
        let answers = reply.calls().next().is_none() && says && !self.edited;
        has_edit(reply) || (self.settings.auto_accept && answers)
    }

    /// Returns the editor model and its input limit, tokens.
    fn editor(&self, s: &Engine) -> (Arc<Model>, u64) {
        let listed = || EDITORS.iter().find(|(main, _)| **main == *s.model.name).map(|(_, e)| *e);
        let name = self.settings.editor_model.as_deref().or_else(listed);
        match name.filter(|n| **n != *s.model.name) {
            Some(name) => {
                let model = s.model.named(name);
                let limit = max_input(&model.scaled(self.scale));
                (model, limit)
            }
            None => (s.model.clone(), max_input(&s.model)),
        }
    }

    /// Returns the editor's prompt: its rules, the files, and the proposal as the user message. The
    /// history and the repository map are not included.
    fn editors_prompt(&mut self, s: &Engine, reply: &Reply, limit: u64) -> Vec<Arc<Block>> {
        let mut text = Transcript::default();
        for draft in reply.parts.iter().filter_map(|p| p.draft(Role::Assistant)) {
            if draft.kind == BlockKind::Reasoning {
                continue;
            }
            text.push(if text.is_empty() { "" } else { "\n" });
            text.push_block(&as_text(draft));
        }
        let parts = [&self.chunks.system, &self.chunks.readonly_files, &self.chunks.chat_files];
        let mut blocks: Vec<_> = parts.into_iter().flatten().cloned().collect();
        let from = blocks.len();
        blocks.push(text.draft(BlockKind::User, Role::User).ephemeral());
        self.reminded(s, blocks, from, limit)
    }

    /// Runs the editor, while the user waits. Its conversation ends with the edit. It sets no
    /// breakpoints, and no keep-alive request follows.
    pub(super) async fn have_edited(&mut self, s: &mut Engine, reply: &Reply) {
        self.keep_alive.forbid();
        let (model, limit) = self.editor(s);
        let request = Request {
            purpose: Purpose::Edit,
            blocks: self.editors_prompt(s, reply, limit),
            tools: None,
            breakpoints: Vec::new(),
            model,
            ..s.sample_request()
        };
        let believed = self.counted.list(&request.blocks);
        if !self.sends(s, &request.blocks, believed, limit) {
            return;
        }
        for _ in 0..=ATTEMPTS {
            match s.send(&request).await {
                Err(e) if e.is_passing() => {}
                // The main model is informed that the changes were made, even if the request
                // failed.
                _ => return,
            }
        }
    }
}
