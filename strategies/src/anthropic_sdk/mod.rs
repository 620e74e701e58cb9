//! The Anthropic SDK's tool runner: above a threshold everything becomes one summary, and the turn
//! that crossed it is lost.
//!
//! Follows Python 0.125 (docs/sources/anthropic-sdk.md §2.2). The check runs on the usage of the
//! reply just received, before that reply is appended and before its tools run; a compaction
//! therefore forgets it. The newer runner is in `runner.rs`; what is told of the old
//! one in `described.rs`.

mod described;
pub(crate) mod descriptor;
pub mod errors;
mod runner;
mod settings;
#[cfg(test)]
mod tests;
mod version;

use std::sync::Arc;

use crate::descriptor::{Build, Need, Product};
use async_trait::async_trait;
use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::compaction::CompactionKind;
use ctxbench_core::content::Part;
use ctxbench_core::engine::{CallerAct, Engine, Incoming};
use ctxbench_core::model::Wire;
use ctxbench_core::request::{ModelError, Phase, Reply, Request, StopReason};
use ctxbench_core::strategy::{Flow, Strategy, again_if_passing};

use crate::anthropic_sdk::described::Described;
use crate::anthropic_sdk::errors::Raised;
use crate::anthropic_sdk::runner::Runner;
use crate::anthropic_sdk::settings::{Language, SdkSettings};
use crate::anthropic_sdk::version::SdkVersion;

pub use crate::anthropic_sdk::descriptor::DESCRIPTOR;

impl Product for AnthropicSdk {
    type Version = SdkVersion;
    type Settings = SdkSettings;

    /// What 0.125 does is done by its client and works over any wire; threads and compaction on
    /// demand are the provider's.
    fn needs(version: SdkVersion, _settings: &SdkSettings) -> Option<Need> {
        (version == SdkVersion::V2_12).then_some(Need {
            wire: Wire::AnthropicMessages,
            why: "threads and compaction on demand exist on the Anthropic API only",
        })
    }

    fn build(b: &Build<'_, AnthropicSdk>) -> Box<dyn Strategy> {
        let prompt = b.wording.get("anthropic-sdk.summary_prompt");
        let limit = Iterations { most: b.settings.max_iterations, done: 0 };
        if b.version == SdkVersion::Described001 {
            return Box::new(Described {
                threshold: b.settings.threshold,
                max_tokens: b.settings.max_tokens,
                limit,
                prompt,
            });
        }
        if b.version == SdkVersion::V2_12 {
            return Box::new(Runner::new(b, limit));
        }
        Box::new(AnthropicSdk {
            typescript: b.settings.language == Language::Typescript,
            threshold: b.settings.threshold,
            model: b.settings.model.clone(),
            max_tokens: b.settings.max_tokens,
            limit,
            prompt,
        })
    }
}

/// Further attempts of the SDK's client at a request that fails for a passing reason: its default
/// `max_retries`, which nobody here changes (the client's documentation; the facts say nothing of
/// it).
pub(crate) const CLIENT_RETRIES: u32 = 2;

/// Results travel in user messages on this wire.
pub(crate) fn admit(mut raw: Draft) -> Draft {
    if raw.kind == BlockKind::Output {
        raw.role = Role::User;
    }
    raw
}

/// The view after a summary of everything: the system prompt and the summary, which stands for the
/// rest.
pub(crate) fn only(s: &mut Engine, text: Arc<str>) -> (Vec<Arc<Block>>, Arc<Block>) {
    let origin = s.context.blocks().iter().flat_map(|b| b.origin.iter().copied()).collect();
    let shown = s.context.blocks().iter().filter(|b| b.kind == BlockKind::Base).cloned().collect();
    (shown, s.synthetic(BlockKind::Summary, Role::User, text, origin))
}

/// Replies of the present turn, and how many the caller allows.
pub(crate) struct Iterations {
    most: Option<u64>,
    done: u64,
}

impl Iterations {
    /// A new turn, which is a new run of the runner.
    pub(crate) fn begin(&mut self) {
        self.done = 0;
    }

    /// A reply came.
    pub(crate) fn count(&mut self) {
        self.done += 1;
    }

    /// Whether no further request may be made.
    pub(crate) fn over(&self) -> bool {
        self.most.is_some_and(|most| self.done >= most)
    }
}

pub(crate) struct AnthropicSdk {
    typescript: bool,
    threshold: u64,
    model: Option<Arc<str>>,
    max_tokens: Option<u64>,
    limit: Iterations,
    prompt: Arc<str>,
}

#[async_trait]
impl Strategy for AnthropicSdk {
    fn admit(&self, raw: Draft) -> Draft {
        admit(raw)
    }

    async fn on_user(&mut self, _s: &mut Engine, _msg: &Incoming) -> Flow {
        self.limit.begin();
        Flow::Proceed
    }

    async fn on_error(&mut self, _s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        again_if_passing(e, attempt, CLIENT_RETRIES)
    }

    async fn before_request(&mut self, _s: &mut Engine) -> Flow {
        if self.limit.over() { Flow::EndTurn } else { Flow::Proceed }
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.max_tokens = self.max_tokens;
        r.keep_messages = true;
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> Flow {
        self.limit.count();
        if reply.stop == StopReason::Refusal && !self.typescript {
            return Flow::EndTurn;
        }
        let used = reply.usage.prompt() + reply.usage.output;
        if used < self.threshold {
            return if reply.stop == StopReason::Refusal { Flow::EndTurn } else { Flow::Proceed };
        }
        s.trigger("after_reply", used, self.threshold);
        let request = self.summary_request(s, reply).await;
        let summary = match s.send(&request).await {
            Ok(summary) => summary,
            Err(e) => return Flow::FailTurn(e.to_string()),
        };
        let texts = match self.texts(&summary) {
            Ok(texts) => texts,
            Err(e) => return Flow::FailTurn(e.to_string()),
        };
        let (mut shown, block) = only(s, texts.concat().into());
        shown.extend(texts.into_iter().map(|t| {
            block.redraft(|d| {
                d.text = t;
                d.listed = true;
            })
        }));
        match s.compacted(CompactionKind::Summarise, "summary", Phase::MidTurn, shown) {
            Ok(()) => Flow::DropReply,
            Err(e) => Flow::FailTurn(e.to_string()),
        }
    }
}

impl AnthropicSdk {
    /// The history without the reply just received, then the prompt; no system, no tools, no
    /// parameters (docs/sources/anthropic-sdk.md §2.2).
    async fn summary_request(&self, s: &mut Engine, reply: &Reply) -> Request {
        let mut blocks: Vec<_> =
            s.context.blocks().iter().filter(|b| b.kind != BlockKind::Base).cloned().collect();
        // Only a caller that appended the reply itself, as plain blocks, brings its text in; its
        // calls are filtered out.
        if let Some(CallerAct::Append { plain }) = s.world().caller().await {
            let texts = reply.parts.iter().filter_map(|p| match p {
                Part::Text(t) if plain || self.typescript => Some(t.clone()),
                _ => None,
            });
            let last = MessageId(u32::MAX - 1);
            blocks.extend(texts.map(|t| {
                Draft::text(BlockKind::Assistant, Role::Assistant, t).build(last, vec![])
            }));
        }
        let mut prompt =
            Draft::synthetic(BlockKind::SummaryPrompt, Role::User, self.prompt.clone());
        prompt.listed = self.typescript;
        blocks.push(prompt.build(MessageId(u32::MAX), vec![]));
        let mut request = s.summary_request(Phase::MidTurn, blocks, false);
        request.breakpoints.clear();
        request.max_tokens = self.max_tokens;
        request.keep_messages = true;
        if let Some(m) = &self.model {
            request.model = m.clone();
        }
        request
    }

    /// Python uses the first block, which must be text; TypeScript uses all.
    fn texts(&self, summary: &Reply) -> Result<Vec<Arc<str>>, Raised> {
        let text = |p: &Part| match p {
            Part::Text(t) => Some(t.clone()),
            _ => None,
        };
        if self.typescript {
            return Ok(summary.parts.iter().filter_map(text).collect());
        }
        match summary.parts.first().map(text) {
            Some(Some(t)) => Ok(vec![t]),
            Some(None) => Err(Raised::SummaryNotText),
            None => Err(Raised::SummaryEmpty),
        }
    }
}
