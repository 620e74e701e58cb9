//! OpenCode according to docs/sources/login-bug.md §4, `opencode@described-002`; `program.rs`
//! follows the releases.
//!
//! Step 1 hides results of old tool calls, without placeholders, if that frees more than 20,000
//! tokens. The newest 40,000 tokens, the last two user turns and results of `skill` always stay.
//! Step 2 follows if that is not enough: a hidden agent writes a summary under five headings in the
//! user's language, everything else is removed, and the last user message is sent again. The
//! description does not say when a step is due, so the release's formula decides. A call is hidden
//! with its result, because providers refuse one without the other.

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_core::compaction::{CompactionKind, PruneRule, origins};
use ctxbench_core::engine::Engine;
use ctxbench_core::request::{ModelError, Phase, Reply, Request};
use ctxbench_core::settings::scale_tokens;
use ctxbench_core::strategy::{Flow, Strategy, Unsupported};

use super::request::{WholeSummary, breakpoints, limits};
use super::rules::{
    BUFFER, OUTPUT_CAP, PRUNE_EXEMPT, RETRIES, is_overflow, is_retryable, max_output, prune_rule,
    prune_view, usable, used,
};
use super::settings::OpenCodeSettings;
use super::words::OpenCodeWords;

pub(crate) struct DescribedArticle {
    auto: bool,
    hide: Option<PruneRule>,
    reserved: Option<u64>,
    cap: u64,
    buffer: u64,
    system: Arc<str>,
    headings: Arc<str>,
    /// Tokens of the last reply.
    count: u64,
}

impl DescribedArticle {
    pub(crate) fn new(s: &OpenCodeSettings, words: OpenCodeWords, scale: f64) -> Self {
        let words = words.headed(s.prompt);
        DescribedArticle {
            auto: s.auto,
            hide: s.prune.unwrap_or(true).then(|| prune_rule(s)),
            reserved: s.reserved,
            cap: scale_tokens(OUTPUT_CAP, scale),
            buffer: scale_tokens(BUFFER, scale),
            system: words.summary_system,
            headings: words.old_prompt,
            count: 0,
        }
    }

    fn usable(&self, s: &Engine) -> u64 {
        usable(limits(s), self.reserved, self.cap, self.buffer)
    }

    /// Runs step 1. Returns the freed tokens.
    fn step_1(&self, s: &mut Engine, phase: Phase) -> u64 {
        let Some(rule) = self.hide else { return 0 };
        let blocks = s.context.blocks();
        let hidden = prune_view(blocks, rule, PRUNE_EXEMPT);
        if hidden.is_empty() {
            return 0;
        }
        let ids: Vec<&str> = hidden.iter().filter_map(|&(i, _)| blocks[i].call_id()).collect();
        let view = blocks
            .iter()
            .filter(|b| !b.call_id().is_some_and(|id| ids.contains(&id)))
            .cloned()
            .collect();
        // Calls and results are removed together, so the edit is always valid.
        let _ = s.compacted(CompactionKind::Drop, "hide", phase, view);
        hidden.iter().map(|(_, tokens)| tokens).sum()
    }

    /// Runs step 2. Returns false if no summary was written.
    async fn step_2(&self, s: &mut Engine, phase: Phase) -> bool {
        let most = max_output(limits(s), self.cap);
        let asked = WholeSummary { system: &self.system, prompt: &self.headings, most };
        let replayed = |s: &mut Engine, text: String, talk: &[Arc<Block>]| {
            let origin = origins(talk);
            let summary = s.synthetic(BlockKind::Summary, Role::User, text, origin);
            std::iter::once(summary).chain(last_user_message(talk)).collect()
        };
        asked.replace(s, phase, replayed).await
    }

    async fn govern(&mut self, s: &mut Engine, phase: Phase) -> Flow {
        let left = self.count.saturating_sub(self.step_1(s, phase));
        if left < self.usable(s) {
            return Flow::Proceed;
        }
        // The last message is sent again and the model continues with it, even if it was already
        // answered.
        if self.step_2(s, phase).await { Flow::Again } else { Flow::Proceed }
    }
}

/// Returns the newest message of the user, which is sent again.
fn last_user_message(talk: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let by_user = |b: &&Arc<Block>| matches!(b.kind, BlockKind::User | BlockKind::ReplayedUser);
    let Some(newest) = talk.iter().rfind(by_user).map(|b| b.message) else { return Vec::new() };
    let own = talk.iter().filter(|b| b.message == newest);
    own.map(|b| {
        if b.kind == BlockKind::User {
            b.map_draft(|d| d.kind = BlockKind::ReplayedUser)
        } else {
            b.clone()
        }
    })
    .collect()
}

#[async_trait]
impl Strategy for DescribedArticle {
    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.max_tokens = Some(max_output(limits(s), self.cap));
        r.breakpoints = breakpoints(s, &r.blocks);
        r
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> Flow {
        self.count = used(&reply.usage);
        Flow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        let usable = self.usable(s);
        if !self.auto || s.model.window == 0 || self.count < usable {
            return Flow::Proceed;
        }
        s.trigger("step_finish", self.count, usable);
        self.govern(s, if had_calls { Phase::MidTurn } else { Phase::PostTurn }).await
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if is_retryable(e) && attempt <= RETRIES {
            return Flow::Again;
        }
        if is_overflow(e) && self.auto && attempt == 1 {
            s.trigger("provider_overflow", s.model.window, self.usable(s));
            let freed = self.step_1(s, Phase::MidTurn) > 0;
            if freed || self.step_2(s, Phase::MidTurn).await {
                return Flow::Again;
            }
        }
        Flow::FailTurn(e.to_string())
    }

    async fn compact(
        &mut self,
        s: &mut Engine,
        _instructions: Option<&str>,
    ) -> Result<(), Unsupported> {
        self.step_2(s, Phase::StandaloneTurn).await;
        Ok(())
    }
}
