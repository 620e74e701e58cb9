//! The tool runner of Python 0.125 and TypeScript 0.124 (docs/sources/anthropic-sdk.md §2.2, §2.3).
//!
//! The check uses the usage of the reply just received, before that reply is appended and before
//! its tools run. A compaction therefore loses this reply.
//!
//! `described-001` is the runner according to docs/sources/opencode-vs-claude-code.md §8: a threshold
//! of 100,000 tokens on "input + output across all messages" that must be exceeded, and a history
//! replaced by the summary. The account does not mention a lost turn, so the check runs when the step
//! is complete, and the reply and the tool results are summarised as well.

use ctxbench_core::host::CallerAction;
use ctxbench_core::prelude::*;
use ctxbench_core::strategy::PASSING_RETRIES;

use super::{CLIENT_RETRIES, Language, Raised, SdkSettings, SdkWords, admit, only};
use crate::descriptor::BuildRequest;

pub(crate) struct Old {
    /// True for `described-001`.
    described: bool,
    settings: SdkSettings,
    prompt: Arc<str>,
    /// Number of replies in the current turn.
    replies: u64,
}

impl Old {
    pub(crate) fn new(b: &BuildRequest<'_>) -> Self {
        let settings: SdkSettings = b.settings();
        let own = settings.summary_prompt.clone();
        let prompt = own.unwrap_or_else(|| b.texts::<SdkWords>().summary_prompt);
        Old { described: b.version.is_description(), prompt, replies: 0, settings }
    }

    fn is_typescript(&self) -> bool {
        self.settings.language == Language::Typescript
    }
}

#[async_trait]
impl Strategy for Old {
    fn admit(&self, raw: Draft) -> Draft {
        admit(raw)
    }

    async fn on_user(&mut self, _s: &mut Engine, _msg: &Incoming) -> Flow {
        self.replies = 0;
        Flow::Proceed
    }

    async fn on_error(&mut self, _s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let retries = if self.described { PASSING_RETRIES } else { CLIENT_RETRIES };
        again_if_passing(e, attempt, retries)
    }

    async fn before_request(&mut self, _s: &mut Engine) -> Flow {
        if self.settings.is_over(self.replies) { Flow::EndTurn } else { Flow::Proceed }
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.max_tokens = self.settings.max_tokens;
        r.keep_messages = true;
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.replies += 1;
        if self.described {
            return ReplyFlow::Proceed;
        }
        let used = reply.usage.prompt() + reply.usage.output;
        let over = self.settings.enabled && used >= self.settings.threshold;
        if reply.stop == StopReason::Refusal && !(over && self.is_typescript()) {
            return ReplyFlow::EndTurn;
        }
        if !over {
            return ReplyFlow::Proceed;
        }
        s.trigger("after_reply", used, self.settings.threshold);
        let request = self.summary_request(s, reply).await;
        let done = match s.send(&request).await {
            Ok(summary) => self.replace(s, &summary),
            Err(e) => Err(e.to_string()),
        };
        done.map_or_else(ReplyFlow::FailTurn, |()| ReplyFlow::DropReply)
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        if !self.described {
            return Flow::Proceed;
        }
        let mut blocks: Vec<_> =
            s.context.blocks().iter().filter(|b| !is_system(b)).cloned().collect();
        let used = s.tokens_of(&blocks);
        if used <= self.settings.threshold {
            return Flow::Proceed;
        }
        s.trigger("after_step", used, self.settings.threshold);
        let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
        blocks.push(ephemeral_block(BlockKind::SummaryPrompt, Role::User, self.prompt.clone()));
        let mut request = s.summary_request(phase, blocks, false);
        request.max_tokens = self.settings.max_tokens;
        request.keep_messages = true;
        let done = s.send(&request).await.map_err(|e| e.to_string()).and_then(|reply| {
            let (mut shown, block) = only(s, reply.text().unwrap_or_default().into());
            shown.push(block);
            let done = s.compacted(CompactionKind::Summarise, "summary", phase, shown);
            done.map_err(|e| e.to_string())
        });
        match done {
            Ok(()) => Flow::Proceed,
            // The answer of a finished turn is kept even if its summary fails.
            Err(e) if !had_calls => {
                s.note(Event::TurnFailed(e));
                Flow::Proceed
            }
            Err(e) => Flow::FailTurn(e),
        }
    }
}

impl Old {
    /// Replaces the conversation by the texts of a summary.
    fn replace(&self, s: &mut Engine, summary: &Reply) -> Result<(), String> {
        let texts = self.texts(summary).map_err(|e| e.to_string())?;
        let (mut shown, block) = only(s, texts.concat().into());
        let block = |t| block.map_draft(|d| (d.text, d.as_list) = (t, true));
        shown.extend(texts.into_iter().map(block));
        s.compacted(CompactionKind::Summarise, "summary", Phase::MidTurn, shown)
            .map_err(|e| e.to_string())
    }

    /// Builds the summary request: the history without the reply just received, then the prompt,
    /// without system prompt, tools and parameters (docs/sources/anthropic-sdk.md §2.2).
    async fn summary_request(&self, s: &mut Engine, reply: &Reply) -> Request {
        let mut blocks: Vec<_> =
            s.context.blocks().iter().filter(|b| b.kind != BlockKind::Base).cloned().collect();
        // The text of the reply is included only if the caller appended it as plain blocks. Its
        // calls are filtered out.
        if let Some(CallerAction::Append { plain }) = s.host().caller().await {
            let texts = reply.parts.iter().filter_map(|p| match p {
                Part::Text(t) if plain || self.is_typescript() => Some(t.clone()),
                _ => None,
            });
            let last = MessageId(u32::MAX - 1);
            blocks.extend(texts.map(|t| {
                Draft::text(BlockKind::Assistant, Role::Assistant, t).build(last, vec![])
            }));
        }
        let mut prompt =
            Draft::synthetic(BlockKind::SummaryPrompt, Role::User, self.prompt.clone());
        prompt.as_list = self.is_typescript();
        blocks.push(prompt.ephemeral());
        let mut request = s.summary_request(Phase::MidTurn, blocks, false);
        request.breakpoints.clear();
        request.max_tokens = self.settings.max_tokens;
        request.keep_messages = true;
        if let Some(m) = &self.settings.model {
            request.model = s.model.named(m);
        }
        request
    }

    /// Returns the texts of a summary. The first block must be a text. Python uses only this block,
    /// TypeScript all texts. Only Python distinguishes a summary without blocks from one that does
    /// not begin with a text.
    fn texts(&self, summary: &Reply) -> Result<Vec<Arc<str>>, Raised> {
        let text = |p: &Part| match p {
            Part::Text(t) => Some(t.clone()),
            _ => None,
        };
        match summary.parts.first().map(text) {
            Some(Some(_)) if self.is_typescript() => {
                Ok(summary.parts.iter().filter_map(text).collect())
            }
            Some(Some(t)) => Ok(vec![t]),
            None if !self.is_typescript() => Err(Raised::SummaryEmpty),
            _ => Err(Raised::SummaryNotText),
        }
    }
}
