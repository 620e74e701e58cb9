//! The Anthropic SDK's tool runner: above a threshold everything becomes one summary, and the turn that crossed it is lost.
//!
//! Follows Python 0.125 (facts/aider-and-anthropic-sdk.md §2.2). The check runs on the usage of the reply just received, before
//! that reply is appended and before its tools run; a compaction therefore forgets it.

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{BlockKind, Draft, MessageId, Role};
use ctxbench_core::descriptor::{Build, Descriptor, Matrix, Standing};
use ctxbench_core::engine::Engine;
use ctxbench_core::record::CompactionKind;
use ctxbench_core::request::{Phase, Reply, ReplyPart, StopReason};
use ctxbench_core::settings::{Default, Kind, Setting};
use ctxbench_core::strategy::{Flow, Strategy};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "anthropic-sdk",
    summary: "Anthropic SDK tool runner: at 100k tokens everything becomes one summary; the crossing turn is lost",
    versions: &["0.125"],
    sources: &["facts/aider-and-anthropic-sdk.md §2.2: PyPI anthropic 0.125.0 read and observed"],
    settings: &[
        Setting {
            name: "threshold",
            kind: Kind::Tokens,
            default: Default::Int(100_000),
            help: "usage of one reply from which it compacts",
            source: "facts/aider-and-anthropic-sdk.md §2.2, context_token_threshold",
        },
        Setting {
            name: "model",
            kind: Kind::Text,
            default: Default::Auto,
            help: "model of the summary; auto = the runner's",
            source: "facts/aider-and-anthropic-sdk.md §2.2, CompactionControl.model",
        },
        Setting {
            name: "max_tokens",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "largest reply, also of the summary; auto = the model's",
            source: "facts/aider-and-anthropic-sdk.md §2.2: the caller's max_tokens",
        },
    ],
    matrix: Matrix {
        layers: "1: summary of everything",
        llm_calls: "1 per compaction",
        user_messages: "gone; only the summary is left",
        tool_results: "gone; those of the crossing turn never ran",
        cache: "summary request without system and tools reads nothing; everything is rewritten after it",
        afterwards: "the model is asked again with the summary as the only message",
        token_counting: "usage of the last reply",
        pre_send_check: "none: after each reply",
        overflow_response: "the error goes to the caller",
        thinking: "not passed to the summary request's parameters",
        memory: "none",
        undo: "none",
    },
    wording: &[("anthropic-sdk.summary_prompt", PROMPT)],
    standing: Standing::Contender,
    manual: false,
    build,
};

const PROMPT: &str = "The task is not finished, and this conversation is about to be cut off here. Write a summary from which the work can be \
continued. Be structured, brief and practical:\n\
1. Task Overview: what was asked, how success is judged, what was clarified\n\
2. Current State: what is done, which files were read, changed or made (with paths), important outputs\n\
3. Important Discoveries: constraints, decisions with their reasons, errors and how they were solved, what was tried and did not work\n\
4. Next Steps: what to do next, what stands in the way, in which order\n\
5. Context to Preserve: wishes of the user, details of the field, promises made\n\
When in doubt include what keeps work from being done twice. Put the summary between <summary> and </summary>.";

fn build(b: &Build<'_>) -> Box<dyn Strategy> {
    Box::new(AnthropicSdk {
        threshold: b.settings.num("threshold"),
        model: b.settings.word("model").map(Arc::from),
        max_tokens: b.settings.int("max_tokens"),
        prompt: b.wording.get("anthropic-sdk.summary_prompt"),
    })
}

struct AnthropicSdk {
    threshold: u64,
    model: Option<Arc<str>>,
    max_tokens: Option<u64>,
    prompt: Arc<str>,
}

#[async_trait]
impl Strategy for AnthropicSdk {
    fn admit(&self, mut raw: Draft) -> Draft {
        // Results travel in user messages on this wire.
        if raw.kind == BlockKind::Output {
            raw.role = Role::User;
        }
        raw
    }

    fn request(&mut self, s: &Engine) -> ctxbench_core::request::Request {
        let mut r = s.sample_request();
        r.max_tokens = self.max_tokens;
        r.keep_messages = true;
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> Flow {
        if reply.stop == StopReason::Refusal {
            return Flow::EndTurn;
        }
        let used = reply.usage.prompt() + reply.usage.output;
        if used < self.threshold {
            return Flow::Proceed;
        }
        s.trigger("after_reply", used, self.threshold);
        let mut blocks: Vec<_> = s.context.blocks().iter().filter(|b| b.kind != BlockKind::Base).cloned().collect();
        blocks.push(Draft::synthetic(BlockKind::SummaryPrompt, Role::User, self.prompt.clone()).build(MessageId(u32::MAX), vec![]));
        let mut request = s.summary_request(Phase::MidTurn, blocks, false);
        request.breakpoints.clear();
        request.max_tokens = self.max_tokens;
        request.keep_messages = true;
        if let Some(m) = &self.model {
            request.model = m.clone();
        }
        let summary = match s.send(&request).await {
            Ok(summary) => summary,
            Err(e) => return Flow::FailTurn(e.to_string()),
        };
        let text = match summary.parts.first() {
            Some(ReplyPart::Text(t)) => t.clone(),
            Some(_) => return Flow::FailTurn("the summary does not begin with a text block".into()),
            None => return Flow::FailTurn("the summary is empty".into()),
        };
        let origin = s.context.blocks().iter().flat_map(|b| b.origin.iter().copied()).collect();
        let block = s.synthetic(BlockKind::Summary, Role::User, text, origin).redraft(|d| d.listed = true);
        let mut shown: Vec<_> = s.context.blocks().iter().filter(|b| b.kind == BlockKind::Base).cloned().collect();
        shown.push(block);
        match s.compacted(CompactionKind::Summarise, "summary", Phase::MidTurn, shown) {
            Ok(()) => Flow::DropReply,
            Err(e) => Flow::FailTurn(e.to_string()),
        }
    }
}
