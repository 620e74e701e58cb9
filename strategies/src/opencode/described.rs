//! OpenCode according to two published accounts; `strategy.rs` follows the releases.
//!
//! `opencode@described-001` (docs/sources/opencode-vs-claude-code.md §2 and §7): before a request the
//! tokens of the last reply are compared with the window minus the largest reply, "100 % overflow".
//! Above it, the model gets the whole conversation with a plain request for a summary, and the summary
//! becomes the first message. After a turn, results of old tool calls are cleared. The last two user
//! turns and the newest 40,000 tokens stay, and clearing must free more than 20,000 tokens. Only the
//! summary stays, nothing is repeated, no tool is exempt. The account does not mention a provider that
//! refuses a prompt, so the turn fails then.
//!
//! `opencode@described-002` (docs/sources/login-bug.md §4): step 1 hides results of old tool calls,
//! without placeholders, if that frees more than 20,000 tokens. The newest 40,000 tokens, the last two
//! user turns and results of `skill` always stay. Step 2 follows if that is not enough: a hidden agent
//! writes a summary under five headings in the user's language, everything else is removed, and the
//! last user message is sent again. The account does not say when a step is due, so the release's
//! formula decides. A call is hidden with its result, because providers refuse one without the other.

use ctxbench_core::prelude::*;

use super::log::{CLEARED, StoredMessage};
use super::rules::{
    ModelLimits, OpenCodeSettings, OpenCodeWords, PRUNE_EXEMPT, RETRIES, breakpoints, is_overflow,
    is_retryable, prune, prune_rule, used,
};
use crate::descriptor::BuildRequest;
use crate::shared::is_fixed;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// `described-001`, a comparison of two products.
    Comparison,
    /// `described-002`, an article.
    Article,
}

pub(crate) struct DescribedOpenCode {
    account: Account,
    settings: OpenCodeSettings,
    words: OpenCodeWords,
    scale: f64,
    /// Tokens of the last reply.
    count: u64,
}

impl DescribedOpenCode {
    pub(crate) fn new(account: Account, b: &BuildRequest<'_>) -> Self {
        let settings: OpenCodeSettings = b.settings();
        let words = b.texts::<OpenCodeWords>().headed(settings.prompt);
        DescribedOpenCode { account, words, scale: b.scale, count: 0, settings }
    }

    /// Returns the limits that the account knows. The comparison ignores a separate input limit.
    fn limits(&self, s: &Engine) -> ModelLimits {
        let all = ModelLimits::for_model(&s.model, self.scale);
        ModelLimits { input: all.input.filter(|_| self.account == Account::Article), ..all }
    }

    fn usable(&self, s: &Engine) -> u64 {
        self.limits(s).usable(self.settings.reserved)
    }

    /// Returns the positions of old results, if they are worth removing.
    fn old_results(&self, s: &Engine) -> Vec<usize> {
        if self.settings.prune == Some(false) {
            return Vec::new();
        }
        let exempt = if self.account == Account::Article { PRUNE_EXEMPT } else { &[] };
        let (mut messages, mut starts, mut at) = (Vec::new(), Vec::new(), 0);
        for m in s.context.blocks().chunk_by(|a, b| a.message == b.message) {
            let user = m.iter().any(|b| b.kind == BlockKind::User);
            messages.push(StoredMessage::new(m[0].message, user, m.to_vec()));
            starts.push(at);
            at += m.len();
        }
        let chosen = prune(&messages, prune_rule(&self.settings), exempt, utf16_div4_round);
        chosen.into_iter().map(|(message, block)| starts[message] + block).collect()
    }

    /// Hides old results with their calls. Returns the freed tokens.
    fn hide(&self, s: &mut Engine, phase: Phase) -> u64 {
        let blocks = s.context.blocks();
        let hidden = self.old_results(s);
        if hidden.is_empty() {
            return 0;
        }
        let ids: Vec<&str> = hidden.iter().filter_map(|&i| blocks[i].call_id()).collect();
        let freed = hidden.iter().map(|&i| utf16_div4_round(&blocks[i].text)).sum();
        let stays = |b: &&Arc<Block>| !b.call_id().is_some_and(|id| ids.contains(&id));
        let view = blocks.iter().filter(stays).cloned().collect();
        // Calls and results are removed together, so the edit is always valid.
        let _ = s.compacted(CompactionKind::Drop, "hide", phase, view);
        freed
    }

    /// Replaces the whole conversation by a summary: a system prompt, the messages, a request for a
    /// summary. Returns false without a text.
    async fn summarise(&mut self, s: &mut Engine, phase: Phase) -> bool {
        let (mut view, talk): (Vec<Arc<Block>>, Vec<Arc<Block>>) =
            s.context.blocks().iter().cloned().partition(|b| is_fixed(b));
        let words = &self.words;
        let prompt = match self.account {
            Account::Comparison => &words.plain_prompt,
            Account::Article => &words.old_prompt,
        };
        let system = ephemeral_block(BlockKind::Base, Role::System, words.summary_system.clone());
        let prompt = ephemeral_block(BlockKind::SummaryPrompt, Role::User, prompt.clone());
        let blocks = [&[system], &talk[..], &[prompt]].concat();
        let mut request = s.summary_request(phase, blocks, false);
        request.max_tokens = Some(self.limits(s).max_output());
        request.breakpoints = breakpoints(s.model.provider, &request.blocks);
        let text = s.send(&request).await.ok().filter(|r| !r.has_calls()).and_then(|r| r.text());
        let Some(text) = text else {
            s.note(Event::CompactionFailed { mechanism: "summary", dangling: false });
            return false;
        };
        let origin = origins(&talk);
        match self.account {
            Account::Comparison => {
                let marker = self.words.marker.clone();
                view.push(s.synthetic(BlockKind::Marker, Role::User, marker, vec![]));
                view.push(s.synthetic(BlockKind::Summary, Role::Assistant, text, origin));
            }
            Account::Article => {
                view.push(s.synthetic(BlockKind::Summary, Role::User, text, origin));
                view.extend(last_user_message(&talk));
            }
        }
        let done = s.compacted(CompactionKind::Summarise, "summary", phase, view).is_ok();
        if done && self.account == Account::Comparison {
            // The summary's own tokens are never compared with the window.
            self.count = 0;
        }
        done
    }
}

/// Returns the newest message of the user, which is sent again.
fn last_user_message(talk: &[Arc<Block>]) -> Vec<Arc<Block>> {
    let by_user = |b: &&Arc<Block>| matches!(b.kind, BlockKind::User | BlockKind::ReplayedUser);
    let Some(newest) = talk.iter().rfind(by_user).map(|b| b.message) else { return Vec::new() };
    let replayed = |b: &Arc<Block>| match b.kind {
        BlockKind::User => b.map_draft(|d| d.kind = BlockKind::ReplayedUser),
        _ => b.clone(),
    };
    talk.iter().filter(|b| b.message == newest).map(replayed).collect()
}

/// Returns the tokens that the comparison counts, which ignores those written to a cache.
fn count(u: &Usage) -> u64 {
    u.input + u.cache_read + u.output
}

#[async_trait]
impl Strategy for DescribedOpenCode {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let usable = self.usable(s);
        let full = s.model.window > 0 && self.count > usable;
        if self.account == Account::Comparison && self.settings.auto && full {
            s.trigger("overflow", self.count, usable);
            let said = s.context.blocks().last().is_some_and(|b| b.role == Role::User);
            self.summarise(s, if said { Phase::PreTurn } else { Phase::MidTurn }).await;
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.max_tokens = Some(self.limits(s).max_output());
        r.breakpoints = breakpoints(s.model.provider, &r.blocks);
        r
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.count = match self.account {
            Account::Comparison => count(&reply.usage),
            Account::Article => used(&reply.usage),
        };
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        let usable = self.usable(s);
        let full = s.model.window > 0 && self.count >= usable;
        if self.account == Account::Comparison || !self.settings.auto || !full {
            return Flow::Proceed;
        }
        s.trigger("step_finish", self.count, usable);
        let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
        let left = self.count.saturating_sub(self.hide(s, phase));
        // The last message is sent again and the model continues with it, even if it was already
        // answered.
        let again = left >= usable && self.summarise(s, phase).await;
        if again { Flow::Again } else { Flow::Proceed }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if self.account == Account::Comparison {
            return again_if_passing(e, attempt, RETRIES);
        }
        if is_retryable(e) && attempt <= RETRIES {
            return Flow::Again;
        }
        if is_overflow(e) && self.settings.auto && attempt == 1 {
            s.trigger("provider_overflow", s.model.window, self.usable(s));
            let freed = self.hide(s, Phase::MidTurn) > 0;
            if freed || self.summarise(s, Phase::MidTurn).await {
                return Flow::Again;
            }
        }
        Flow::FailTurn(e.to_string())
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        if self.account == Account::Article {
            return;
        }
        let at = self.old_results(s);
        if !at.is_empty() {
            let cleared = clear_outputs(s.context.blocks(), &at, &CLEARED.into());
            // Calls keep their results, so the edit is always valid.
            let _ = s.compacted(CompactionKind::Clear, "prune", Phase::PostTurn, cleared);
        }
    }

    async fn compact(&mut self, s: &mut Engine, _instructions: Option<&str>) -> Manual {
        self.summarise(s, Phase::StandaloneTurn).await;
        Ok(())
    }
}
