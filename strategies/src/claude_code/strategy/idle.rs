//! Claude Code's compaction of an idle session: shortly before the one-hour cache expires, a large
//! conversation is summarised while reads still hit the cache. The next message then writes a small
//! context (docs/sources/claude-code.md §1.5).
//!
//! The summary runs in the background. A user who returns earlier waits for it, as for any
//! compaction in progress (ours; the sources do not say).

use ctxbench_core::prelude::*;
use ctxbench_core::usage::Ttl;

use super::ClaudeCodeProgram;
use crate::claude_code::rules::Resume;
use crate::claude_code::summary::Prepared;

/// Interval between two checks whether the summary has arrived, ms; ours.
const LOOK_MS: Millis = 1_000;

/// State of the current pause.
#[derive(Default)]
pub(crate) struct Pause {
    /// Time to compact or to check for the summary, ms of virtual time. `None` = nothing to do.
    at: Option<Millis>,
    summary: Prepared,
}

impl Pause {
    /// Returns the time of the next action, ms of virtual time.
    pub fn at(&self) -> Option<Millis> {
        self.at
    }

    /// Cancels the work because the conversation was replaced or the program ended.
    pub fn cancel(&mut self, s: &mut Engine) {
        self.at = None;
        self.summary.cancel(s);
    }
}

impl ClaudeCodeProgram {
    /// Schedules a compaction at the end of a turn, if the settings and the conversation call for
    /// one.
    pub fn pause_begins(&mut self, s: &Engine) {
        let long_lived = self.asked.ttl(s) == Ttl::OneHour;
        let worth_it = self.asked.settings.idle_compaction
            && long_lived
            && !self.gave_up()
            && !self.asked.settings.blocks_compaction(false)
            && self.believed(s) >= self.asked.settings.idle_min_tokens;
        let wait = s.model.cache.lifetime(Ttl::OneHour) as f64 * self.asked.settings.idle_share;
        self.state.pause.at = worth_it.then(|| s.now() + wait.round() as Millis);
    }

    /// Starts the summary, or checks for its answer, at the scheduled time.
    pub async fn pause_goes_on(&mut self, s: &mut Engine) {
        if self.state.pause.summary.is_under_way() {
            self.pause_summary(s, false).await;
        } else {
            s.trigger("idle", self.believed(s), self.asked.settings.idle_min_tokens);
            self.state.prepared.cancel(s);
            let extra = self.asked.settings.instructions(None);
            let prompt = self.asked.instruction(extra.as_deref());
            self.state.pause.summary.begin(s, &self.asked, [prompt]).await;
        }
        let looks = self.state.pause.summary.is_under_way();
        self.state.pause.at = looks.then(|| s.now() + LOOK_MS);
    }

    pub async fn pause_ends(&mut self, s: &mut Engine) {
        self.state.pause.at = None;
        if self.state.pause.summary.is_under_way() {
            self.pause_summary(s, true).await;
        }
    }

    async fn pause_summary(&mut self, s: &mut Engine, wait: bool) {
        let (fixed, history) = self.split_fixed(s);
        let written = self.state.pause.summary.take(s, &history, wait).await;
        if self.state.pause.summary.is_under_way() {
            return;
        }
        let done = match written {
            Some(written) => {
                let kept = self.tail_start(&history, None);
                self.install_summary(s, Phase::Background, &written, fixed, &history, kept).is_ok()
            }
            None => false,
        };
        self.state.failures = if done { 0 } else { self.state.failures + 1 };
    }
}

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
        let keep = Some(self.asked.settings.resume_keep_messages as usize);
        // After a failure the whole conversation stays, as if the user had chosen that.
        let _ = self.compaction(s, Phase::StandaloneTurn, None, None, keep).await;
    }
}

#[cfg(test)]
#[path = "resume_tests.rs"]
mod tests;
