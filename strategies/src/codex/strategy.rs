//! Codex CLI as released: 0.169, 0.104 and 0.63 (docs/sources/codex.md; comments name the
//! sections).
//!
//! There is one layer: when the tokens in use reach the limit, the same model gets the complete
//! history and a prompt, without tools. The answer, after a constant prefix, replaces everything
//! except user messages (newest first, 20,000 tokens, the last one cut in the middle).

use ctxbench_core::prelude::*;
use ctxbench_formats::codex::{Record, TokenTotals, reconstruct, surviving};

use super::items::{
    fit_into_window, kept_users, layout, request_summary, sample_request, show_fixed,
};
use super::rules::{
    CodexSettings, CodexWords, LimitScope, OutputPolicy, Release, bytes_estimate, cut_draft,
    effective_limit, estimate_items, output_policy, reached_after_prefix, tokens_in_use,
    usable_window,
};
use crate::descriptor::BuildRequest;

/// Maximum number of retries that can be configured (docs/sources/codex.md §1.5).
const MAX_RETRIES: u64 = 100;
/// Maximum number of retries if the provider compacts (docs/sources/codex.md §2).
const MAX_REMOTE_RETRIES: u64 = 2;
pub(crate) struct CodexProgram {
    settings: CodexSettings,
    words: CodexWords,
    release: Release,
    outputs: Option<OutputPolicy>,
    counted: TokenTotals,
    /// Input tokens of the first response since the last compaction, counted by the provider.
    prefix_tokens: Option<u64>,
    /// Whether the session was reopened after the last user message.
    reopened: bool,
    /// The rollout: the lines that a resume reads.
    log: Vec<Record<Arc<Block>>>,
}

impl CodexProgram {
    pub(crate) fn new(release: Release, b: &BuildRequest<'_>) -> Self {
        let settings: CodexSettings = b.settings();
        CodexProgram {
            words: b.texts(),
            release,
            outputs: output_policy(&settings, b.scale),
            counted: TokenTotals::default(),
            prefix_tokens: None,
            reopened: false,
            log: Vec::new(),
            settings,
        }
    }

    fn retries(&self) -> u64 {
        self.settings.stream_retries.min(MAX_RETRIES)
    }

    fn limit(&self, s: &Engine) -> Option<u64> {
        effective_limit(self.release, s.model.window, self.settings.auto_compact_limit)
    }

    fn active(&self, s: &Engine) -> u64 {
        tokens_in_use(self.release, self.counted.last, s.context.blocks())
    }

    /// Returns whether the tokens in use require a compaction.
    fn over(&self, s: &mut Engine, check: &'static str) -> bool {
        let (active, limit) = (self.active(s), self.limit(s));
        let reached = match self.settings.limit_scope {
            LimitScope::Total => limit.filter(|l| active >= *l),
            LimitScope::AfterPrefix => {
                let prefix = self.prefix_tokens.unwrap_or(active).min(active);
                let limit = self.settings.auto_compact_limit.or(limit);
                reached_after_prefix(active, prefix, limit, s.model.window)
            }
        };
        if let Some(limit) = reached {
            s.trigger(check, active, limit);
        }
        reached.is_some()
    }

    /// Runs a compaction: sends the summary request, then replaces the history.
    async fn compaction(&mut self, s: &mut Engine, phase: Phase) -> Result<(), String> {
        let reply = self.summarise(s, phase).await?;
        if self.settings.remote {
            return self.remote_replacement(s, phase, &reply);
        }
        let texts = reply.parts.iter().rev().filter_map(Part::as_text);
        let answer = match texts.into_iter().find(|t| !t.is_empty()) {
            Some(text) => text.to_string(),
            // An empty answer is an error only in this phase (docs/sources/codex.md §1.1).
            None if phase == Phase::PostTurn => return Err("the summary was empty".into()),
            // The previous reply replaces the summary (docs/sources/codex.md §1.4).
            None => {
                let previous = s.context.blocks().iter().rfind(|b| b.kind == BlockKind::Assistant);
                previous.map(|b| b.text.to_string()).unwrap_or_default()
            }
        };
        let text: Arc<str> = format!("{}\n{answer}", self.words.summary_prefix).into();
        let origin = origins(s.context.blocks());
        let summary = s.synthetic(BlockKind::Summary, Role::User, text, origin);
        self.replace(s, phase, "handoff", summary)
    }

    /// Replaces the context with the provider's opaque item. There must be exactly one
    /// (docs/sources/codex.md §2).
    fn remote_replacement(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        reply: &Reply,
    ) -> Result<(), String> {
        let mut opaque = reply.parts.iter().filter_map(|p| match p {
            Part::Compaction(Some(o)) => Some(o.clone()),
            _ => None,
        });
        let (Some(item), None) = (opaque.next(), opaque.next()) else {
            return Err("the provider's answer does not hold exactly one compaction".into());
        };
        let origin = origins(s.context.blocks());
        let block = s.synthetic(BlockKind::Compaction, Role::Assistant, "", origin);
        let block = block.map_draft(|d| d.opaque = Some(item));
        self.replace(s, phase, "remote", block)
    }

    fn replace(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        mechanism: &'static str,
        summary: Arc<Block>,
    ) -> Result<(), String> {
        let blocks = self.replacement(s.context.blocks(), &s.fixed.context, &summary);
        // Calls go together with their results, so the edit is always valid.
        s.compacted(CompactionKind::Summarise, mechanism, phase, blocks)
            .map_err(|e| e.to_string())?;
        // In releases before 0.169, local compactions do not store their result in the rollout
        // (docs/sources/codex.md §4).
        let stored = self.settings.remote || self.release == Release::V169;
        let replacement = stored.then(|| s.context.blocks().to_vec());
        self.log.push(Record::Compacted { summary, replacement });
        self.prefix_tokens = None;
        let last = self.estimate_context(s);
        self.count(TokenTotals { last, ..self.counted });
        s.note(Event::Estimated(last));
        Ok(())
    }

    fn replacement(
        &self,
        before: &[Arc<Block>],
        context: &[Arc<Block>],
        summary: &Arc<Block>,
    ) -> Vec<Arc<Block>> {
        let CodexSettings { remote, remote_user_tokens, user_message_tokens, .. } = self.settings;
        let budget = if remote { remote_user_tokens } else { user_message_tokens };
        let users = kept_users(self.release, before, budget, remote);
        layout(self.release, before, context, users, summary.clone())
    }

    /// Requests the summary. A request refused as too long is repeated without its oldest item. A
    /// remote request was already fitted, so a refusal is final (docs/sources/codex.md §1.5, §2).
    async fn summarise(&mut self, s: &mut Engine, phase: Phase) -> Result<Reply, String> {
        let mut items = s.context.blocks().to_vec();
        let remote = self.settings.remote;
        let (prompt, retries) = if remote {
            let (base, usable) = (self.base_tokens(s), usable_window(s.model.window));
            fit_into_window(self.release, &mut items, base, usable);
            let trigger = ephemeral_block(BlockKind::CompactionTrigger, Role::User, "");
            (trigger, self.retries().min(MAX_REMOTE_RETRIES))
        } else {
            let prompt =
                self.settings.compact_prompt.as_ref().unwrap_or(&self.words.summary_prompt);
            let prompt = ephemeral_block(BlockKind::SummaryPrompt, Role::User, prompt.clone());
            (prompt, self.retries())
        };
        match request_summary(s, phase, items, prompt, remote, retries).await {
            Ok(reply) => {
                // The tokens of a compaction by the provider are not counted (docs/sources/codex.md
                // §1.1).
                self.counted.session += if remote { 0 } else { reply.usage.total() };
                Ok(reply)
            }
            Err(e) if e.is_overflow() => {
                self.fill(s.model.window);
                Err(format!("the summary request does not fit: {e}"))
            }
            Err(e) => Err(e.to_string()),
        }
    }

    fn base_tokens(&self, s: &Engine) -> u64 {
        let blocks = s.context.blocks().iter();
        bytes_estimate(self.settings.base_estimate_bytes.unwrap_or_else(|| {
            blocks.filter(|b| b.kind == BlockKind::Base).map(|b| b.bytes() as u64).sum()
        }))
    }

    /// Estimates base and history as the program does.
    fn estimate_context(&self, s: &Engine) -> u64 {
        self.base_tokens(s) + estimate_items(self.release, s.context.blocks())
    }

    /// Records token counters, as a `token_count` line does.
    fn count(&mut self, count: TokenTotals) {
        self.counted = count;
        self.log.push(Record::Counted(count));
    }

    /// Updates the usage after a request that did not fit: the session counts as having used the
    /// usable window, and its growth counts as the newest response (docs/sources/codex.md §1.1).
    fn fill(&mut self, window: u64) {
        let session = usable_window(window);
        self.count(TokenTotals { last: session.saturating_sub(self.counted.session), session });
    }

    /// Appends the shown blocks from an index on to the log. They are not part of the session.
    fn log_shown(&mut self, s: &Engine, from: usize) {
        let shown = s.context.blocks()[from..].iter().cloned();
        self.log.extend(shown.map(|item| Record::Item { item, user: false }));
    }

    /// Shows the log's contents, as a reopened session does.
    fn reopen(&mut self, s: &mut Engine) -> Option<TokenTotals> {
        let context = s.fixed.context.clone();
        let resumed =
            reconstruct(&self.log, |before, summary| self.replacement(before, &context, summary));
        // Every call precedes its output in the log.
        let _ = s.set_view(resumed.items);
        resumed.counted
    }
}

#[async_trait]
impl Strategy for CodexProgram {
    fn admit(&self, raw: Draft) -> Draft {
        cut_draft(self.release, self.outputs, raw)
    }

    async fn on_start(&mut self, s: &mut Engine) {
        (self.counted, self.prefix_tokens, self.reopened) = (TokenTotals::default(), None, false);
        self.log.clear();
        show_fixed(self.release, s);
        self.log_shown(s, 0);
    }

    fn on_recorded(&mut self, s: &mut Engine, id: MessageId) {
        let of_user = s.history.get(id).is_some_and(|m| m.role == Role::User);
        self.log.extend(s.newest_blocks().into_iter().map(|item| {
            // Images of tools appear as user items too.
            let user = of_user && matches!(item.kind, BlockKind::User | BlockKind::Image);
            Record::Item { item, user }
        }));
    }

    async fn on_restart(&mut self, s: &mut Engine) {
        let counted = self.reopen(s);
        // 0.63 discards the count (docs/sources/codex.md §1.1). Every version determines the size
        // of the prefix again (§1.2).
        self.counted = counted.filter(|_| self.release != Release::V063).unwrap_or_default();
        self.prefix_tokens = None;
        self.reopened = true;
    }

    async fn on_user(&mut self, s: &mut Engine, msg: &Incoming) -> Flow {
        self.log.push(Record::TurnStarted);
        if std::mem::take(&mut self.reopened) && self.release == Release::V104 {
            // This version shows the context again after a resume and counts it
            // (docs/sources/codex.md §8).
            let from = s.context.blocks().len();
            for b in &s.fixed.context.clone() {
                s.show(b.clone());
            }
            self.log_shown(s, from);
        }
        if self.release != Release::V063
            && self.over(s, "pre_turn")
            && let Err(e) = self.compaction(s, Phase::PreTurn).await
        {
            if self.release == Release::V169 {
                s.record_user(self, msg);
            } else {
                // 0.104 records the message only after the compaction. The model never sees it, but
                // our log contains it.
                s.append_unseen(msg);
            }
            return Flow::FailTurn(e);
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        sample_request(s)
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.prefix_tokens.get_or_insert(reply.usage.prompt());
        let last = reply.usage.total();
        self.count(TokenTotals { last, session: self.counted.session + last });
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        if self.release != Release::V063 && !had_calls {
            return Flow::Proceed;
        }
        if !self.over(s, "mid_turn") {
            return Flow::Proceed;
        }
        match self.compaction(s, Phase::MidTurn).await {
            Err(e) => Flow::FailTurn(e),
            Ok(()) if self.release == Release::V063 => Flow::Again,
            Ok(()) => Flow::Proceed,
        }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if e.is_overflow() {
            self.fill(s.model.window);
            return Flow::FailTurn(format!("the model's context window is full: {e}"));
        }
        again_if(u64::from(attempt) <= self.retries(), e)
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        let threshold = s.model.window * self.settings.post_turn_percent / 100;
        let active = self.active(s);
        if self.settings.post_turn_percent > 0 && active >= threshold {
            s.trigger("post_turn", active, threshold);
            // A failure here must not affect the finished turn (docs/sources/codex.md §1.1).
            let _ = self.compaction(s, Phase::PostTurn).await;
        }
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        let item = |r: &Record<Arc<Block>>| match r {
            Record::Item { item, user: true } if item.message > to => Some(item.message),
            _ => None,
        };
        let mut taken_back: Vec<MessageId> =
            surviving(&self.log).into_iter().filter_map(|i| item(&self.log[i])).collect();
        taken_back.dedup();
        self.log.push(Record::RolledBack { turns: taken_back.len() });
        self.reopen(s);
        // The program rewinds whole turns, but a session may ask for part of one.
        let said = |b: &Block| {
            b.message > to
                && !b.origin.is_empty()
                && !matches!(b.kind, BlockKind::Summary | BlockKind::Compaction)
        };
        let kept: Vec<Arc<Block>> =
            s.context.blocks().iter().filter(|b| !said(b)).cloned().collect();
        if kept.len() < s.context.blocks().len() && s.set_view(kept).is_ok() {
            // For a resume this is a compaction: the history continues from this view.
            let replacement = Some(s.context.blocks().to_vec());
            let summary = Draft::synthetic(BlockKind::Marker, Role::User, "").build(to, vec![]);
            self.log.push(Record::Compacted { summary, replacement });
        }
        self.prefix_tokens = None;
        let last = self.estimate_context(s);
        self.count(TokenTotals { last, ..self.counted });
    }

    async fn compact(&mut self, s: &mut Engine, _instructions: Option<&str>) -> Manual {
        self.log.push(Record::TurnStarted);
        // A failed manual compaction changes nothing and is shown to the user.
        let _ = self.compaction(s, Phase::StandaloneTurn).await;
        Ok(())
    }
}
