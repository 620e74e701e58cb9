//! Claude Code's dialog for a large session that resumes after a long pause: continue with the
//! whole conversation, or with a summary and the newest exchanges (docs/sources/claude-code.md
//! §1.5).
//!
//! The cache has expired by then, so the summary reads the conversation once at the full price. The
//! whole conversation would be written again at that price and read with every request.

use ctxbench_core::engine::Engine;
use ctxbench_core::request::Phase;

use super::ClaudeCodeProgram;
use crate::claude_code::settings::Resume;

impl ClaudeCodeProgram {
    /// Applies the user's choice if the reopened session offers one.
    pub(super) async fn offer(&mut self, s: &mut Engine) {
        let away = self.state.last_reply.map_or(0, |at| s.now().saturating_sub(at));
        let (believed, least) = (self.believed(s), self.asked.settings.resume_min_tokens);
        let offered = away > self.asked.settings.resume_idle_ms && believed > least;
        if !offered
            || self.asked.settings.resume != Resume::Summary
            || self.asked.settings.blocks_compaction(true)
        {
            return;
        }
        s.trigger("resume_offer", believed, least);
        let keep = self.asked.settings.resume_keep_messages as usize;
        // After a failure the whole conversation stays, as if the user had chosen that.
        let _ = self.compaction(s, Phase::StandaloneTurn, None, None, keep).await;
    }
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;
