//! The dialog that Claude Code shows when a large session is resumed after a long pause: the whole
//! conversation, or a summary and the newest exchanges (docs/sources/claude-code.md §1.5).
//!
//! By then no cache holds the conversation, so the summary reads all of it at the full price, once;
//! the whole conversation is written again at that price and then carried on with every request.

use ctxbench_core::engine::Engine;
use ctxbench_core::request::Phase;

use super::Program;
use crate::claude_code::settings::Resume;

impl Program {
    /// The program was opened again: what the user takes where something is offered.
    pub(super) async fn offer(&mut self, s: &mut Engine) {
        let away = self.state.last_reply.map_or(0, |at| s.now().saturating_sub(at));
        let (believed, least) = (self.believed(s), self.settings.resume_min_tokens);
        let offered = away > self.settings.resume_idle_ms && believed > least;
        if !offered || self.settings.resume != Resume::Summary || self.hooks.block(true) {
            return;
        }
        s.trigger("resume_offer", believed, least);
        let keep = self.settings.resume_keep_messages as usize;
        // One that fails leaves the whole conversation, as if the user had taken that.
        let _ = self.compaction(s, Phase::StandaloneTurn, None, None, keep).await;
    }
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;
