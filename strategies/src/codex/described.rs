//! Codex CLI according to two published descriptions.
//!
//! `codex@described-000` is docs/sources/chat-history.md §3.4 and docs/sources/token-budgeting.md
//! §3: there is no summary. If the estimate exceeds 95 % of the window, the oldest items are
//! removed until it fits. `codex@described-002` is docs/sources/login-bug.md §2: a model receives
//! the conversation with a short prompt. The system prompt, the verbatim user messages and an
//! assistant message with the note remain. Anything else follows the release: tool outputs are cut
//! on arrival, a call is removed together with its result, and the fixed blocks are always shown.

use super::items::{kept_users, remove_item, request_summary, sample_request, show_fixed};
use super::rules::{
    CodexSettings, CodexWords, OutputPolicy, Release, bytes_estimate, cut_draft, effective_limit,
    estimate_items, output_policy, usable_window,
};
use crate::descriptor::BuildRequest;
use ctxbench_core::prelude::*;

/// Both documents estimate the JSON form (docs/sources/token-budgeting.md §3.1).
const RELEASE: Release = Release::V104;

pub(crate) struct DescribedCodex {
    /// True if a note as a message of the assistant replaces a full context; false if its oldest items
    /// are removed.
    hands_over: bool,
    settings: CodexSettings,
    words: CodexWords,
    outputs: Option<OutputPolicy>,
    /// Tokens that the provider reported last, and the number of blocks that they cover.
    counted: Option<(u64, usize)>,
}

impl DescribedCodex {
    pub(crate) fn new(hands_over: bool, b: &BuildRequest<'_>) -> Self {
        let settings: CodexSettings = b.settings();
        let outputs = output_policy(&settings, b.scale);
        DescribedCodex { hands_over, settings, words: b.texts(), outputs, counted: None }
    }

    /// Tokens counted by the provider up to its last response, plus an estimate at four bytes a
    /// token for later items; without a count everything is estimated (docs/sources/chat-history.md
    /// §3.4).
    fn estimate(&self, s: &Engine) -> u64 {
        let blocks = s.context.blocks();
        let base = blocks.iter().filter(|b| b.kind == BlockKind::Base);
        let base = || bytes_estimate(base.map(|b| b.bytes() as u64).sum());
        let (counted, upto) = self.counted.unwrap_or_else(|| (base(), 0));
        counted + estimate_items(RELEASE, &blocks[upto.min(blocks.len())..])
    }

    /// Removes the oldest items until the estimate is at most `most` or nothing more can be
    /// removed.
    fn trim(&mut self, s: &mut Engine, check: &'static str, most: u64) {
        let mut estimate = self.estimate(s);
        if estimate <= most {
            return;
        }
        s.trigger(check, estimate, most);
        let mut items = s.context.blocks().to_vec();
        while estimate > most {
            let before = estimate_items(RELEASE, &items);
            if !drop_oldest(&mut items) {
                break;
            }
            // The provider's count covers the removed item too.
            estimate = estimate.saturating_sub(before - estimate_items(RELEASE, &items));
        }
        self.set_view(s, CompactionKind::Drop, "trim_oldest", items);
        self.counted = Some((estimate, s.context.blocks().len()));
    }

    fn set_view(
        &mut self,
        s: &mut Engine,
        kind: CompactionKind,
        mechanism: &'static str,
        blocks: Vec<Arc<Block>>,
    ) {
        // Calls go together with their results, so the edit is always valid.
        let _ = s.compacted(kind, mechanism, Phase::MidTurn, blocks);
        self.counted = None;
    }

    /// Hands over near the window, then removes items if that is not enough.
    async fn make_room(&mut self, s: &mut Engine, phase: Phase) -> Flow {
        let (window, configured) = (s.model.window, self.settings.auto_compact_limit);
        let limit = effective_limit(RELEASE, window, configured).unwrap_or(window);
        let estimate = self.estimate(s);
        if estimate < limit {
            return Flow::Proceed;
        }
        s.trigger("near_the_window", estimate, limit);
        if let Err(e) = self.hand_off(s, phase).await {
            return Flow::FailTurn(e);
        }
        // "If space is still insufficient after compression": from the earliest messages.
        self.trim(s, "still_insufficient", limit.saturating_sub(1));
        Flow::Proceed
    }

    /// Requests the note for the whole conversation. If the request is refused as too long, it is
    /// repeated without the oldest items. The note and the user's messages replace the
    /// conversation.
    async fn hand_off(&mut self, s: &mut Engine, phase: Phase) -> Result<(), String> {
        let prompt = self.words.summary_prompt.clone();
        let prompt = ephemeral_block(BlockKind::SummaryPrompt, Role::User, prompt);
        let items = s.context.blocks().to_vec();
        let users = kept_users(RELEASE, &items, self.settings.user_message_tokens, false);
        let retries = self.settings.stream_retries;
        let asked = request_summary(s, phase, items, prompt, false, retries).await;
        let reply = asked.map_err(|e| e.to_string())?;
        let note = reply.text().unwrap_or_default();
        let origin = origins(s.context.blocks());
        let summary = s.synthetic(BlockKind::Summary, Role::Assistant, note, origin);
        let fixed = |b: &&Arc<Block>| matches!(b.kind, BlockKind::Base | BlockKind::Context);
        let fixed = s.context.blocks().iter().filter(fixed).cloned();
        let blocks = fixed.chain(users.into_iter().flatten()).chain([summary]).collect();
        self.set_view(s, CompactionKind::Summarise, "handoff_note", blocks);
        Ok(())
    }
}

/// Removes the oldest item with its partner, and the model's messages before the next user message.
/// Providers require a user message first, which the descriptions ignore, so the newest one is
/// kept. A note is kept too. Returns false if there is nothing to remove.
fn drop_oldest(items: &mut Vec<Arc<Block>>) -> bool {
    let newest = items.iter().rfind(|b| b.kind == BlockKind::User).map(|b| b.message);
    let stays = |b: &Block| match b.kind {
        BlockKind::Base | BlockKind::Summary => true,
        BlockKind::User | BlockKind::Image => newest == Some(b.message),
        _ => false,
    };
    let Some(at) = items.iter().position(|b| !stays(b)) else { return false };
    remove_item(items, at);
    let of_model = |b: &Block| {
        newest.is_some()
            && matches!(b.role, Role::Assistant | Role::Tool)
            && b.kind != BlockKind::Summary
    };
    while let Some(first) =
        items.iter().position(|b| b.kind != BlockKind::Base).filter(|&i| of_model(&items[i]))
    {
        remove_item(items, first);
    }
    true
}

#[async_trait]
impl Strategy for DescribedCodex {
    fn admit(&self, raw: Draft) -> Draft {
        cut_draft(RELEASE, self.outputs, raw)
    }

    async fn on_start(&mut self, s: &mut Engine) {
        self.counted = None;
        show_fixed(RELEASE, s);
    }

    async fn on_user(&mut self, s: &mut Engine, msg: &Incoming) -> Flow {
        // Trimming happens after the message arrived, because the message must fit too.
        if !self.hands_over {
            return Flow::Proceed;
        }
        let flow = self.make_room(s, Phase::PreTurn).await;
        if matches!(flow, Flow::FailTurn(_)) {
            s.record_user(self, msg);
        }
        flow
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        if !self.hands_over {
            self.trim(s, "above_95_percent", usable_window(s.model.window));
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        sample_request(s)
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        // The reply itself is counted and will be recorded next.
        self.counted = Some((reply.usage.total(), s.context.blocks().len() + reply.parts.len()));
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        if self.hands_over && had_calls {
            return self.make_room(s, Phase::MidTurn).await;
        }
        Flow::Proceed
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let mut items = s.context.blocks().to_vec();
        // The oldest item is removed, then the request is repeated
        // (docs/sources/token-budgeting.md §3.4).
        if e.is_overflow() && drop_oldest(&mut items) {
            self.set_view(s, CompactionKind::Drop, "trim_oldest", items);
            return Flow::Again;
        }
        again_if(!e.is_overflow() && u64::from(attempt) <= self.settings.stream_retries, e)
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        s.truncate_after(to);
        self.counted = None;
    }

    async fn compact(&mut self, s: &mut Engine, _instructions: Option<&str>) -> Manual {
        if !self.hands_over {
            // The description has no manual compaction.
            return Err(Unsupported);
        }
        let _ = self.hand_off(s, Phase::StandaloneTurn).await;
        Ok(())
    }
}

#[cfg(test)]
#[path = "described_tests.rs"]
mod tests;
