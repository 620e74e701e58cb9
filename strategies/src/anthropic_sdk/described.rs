//! The Anthropic SDK's compaction as described in docs/sources/opencode-vs-claude-code.md §8.
//!
//! The description has a threshold of 100,000 tokens on "input + output across all messages" that
//! must be exceeded, a prompt of five sections, a configurable model, and a history replaced by the
//! summary. It does not mention a lost turn, so the check runs here when the step is complete, and
//! the reply and the tool results are summarised as well. In fact, only the usage of the last reply
//! counts, system prompt and tools included, the compaction starts at the threshold, and the reply
//! that reached it is lost (docs/sources/anthropic-sdk.md §2.2).

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{BlockKind, Draft, Role};
use ctxbench_core::compaction::{CompactionKind, ephemeral_block};
use ctxbench_core::engine::{Engine, Event, Incoming};
use ctxbench_core::request::{Phase, Reply, Request};
use ctxbench_core::strategy::{Flow, Strategy, is_system};

use super::settings::SdkSettings;
use super::shared::{Iterations, admit, only};
use super::words::SdkWords;

pub(crate) struct DescribedSdk {
    threshold: u64,
    max_tokens: Option<u64>,
    limit: Iterations,
    prompt: Arc<str>,
}

impl DescribedSdk {
    pub(crate) fn new(s: &SdkSettings, words: SdkWords) -> Self {
        DescribedSdk {
            threshold: s.threshold,
            max_tokens: s.max_tokens,
            limit: Iterations::from_settings(s),
            prompt: words.summary_prompt,
        }
    }
}

#[async_trait]
impl Strategy for DescribedSdk {
    fn admit(&self, raw: Draft) -> Draft {
        admit(raw)
    }

    async fn on_user(&mut self, _s: &mut Engine, _msg: &Incoming) -> Flow {
        self.limit.begin();
        Flow::Proceed
    }

    async fn before_request(&mut self, _s: &mut Engine) -> Flow {
        if self.limit.over() { Flow::EndTurn } else { Flow::Proceed }
    }

    fn request(&mut self, s: &Engine) -> Request {
        Request { max_tokens: self.max_tokens, keep_messages: true, ..s.sample_request() }
    }

    async fn on_reply(&mut self, _s: &mut Engine, _reply: &Reply) -> Flow {
        self.limit.count();
        Flow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        let messages: Vec<_> =
            s.context.blocks().iter().filter(|b| !is_system(b)).cloned().collect();
        let used = s.tokens_of(&messages);
        if used <= self.threshold {
            return Flow::Proceed;
        }
        s.trigger("after_step", used, self.threshold);
        let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
        let mut blocks = messages;
        blocks.push(ephemeral_block(BlockKind::SummaryPrompt, Role::User, self.prompt.clone()));
        let mut request = s.summary_request(phase, blocks, false);
        request.max_tokens = self.max_tokens;
        request.keep_messages = true;
        match s.send(&request).await {
            Ok(reply) => {
                let (mut shown, block) = only(s, reply.text().unwrap_or_default().into());
                shown.push(block);
                if let Err(e) = s.compacted(CompactionKind::Summarise, "summary", phase, shown) {
                    return Flow::FailTurn(e.to_string());
                }
                Flow::Proceed
            }
            // The answer of a finished turn is kept even if its summary fails.
            Err(e) if !had_calls => {
                s.note(Event::TurnFailed(e.to_string()));
                Flow::Proceed
            }
            Err(e) => Flow::FailTurn(e.to_string()),
        }
    }
}
