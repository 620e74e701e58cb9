//! The Anthropic SDK's tool runner: above a threshold everything becomes one summary, and the turn that crossed it is lost.
//!
//! Follows Python 0.125 (facts/aider-and-anthropic-sdk.md §2.2). The check runs on the usage of the reply just received, before
//! that reply is appended and before its tools run; a compaction therefore forgets it.

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{BlockKind, Draft, MessageId, Role};
use ctxbench_core::descriptor::{Build, Descriptor, Matrix, Standing, fits_any};
use ctxbench_core::engine::{CallerAct, Engine};
use ctxbench_core::record::CompactionKind;
use ctxbench_core::request::{Phase, Reply, ReplyPart, Request, StopReason};
use ctxbench_core::settings::{Default, Kind, Setting};
use ctxbench_core::strategy::{Flow, Strategy};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "anthropic-sdk",
    summary: "Anthropic SDK tool runner: at 100k tokens everything becomes one summary; the crossing turn is lost",
    versions: &["0.125"],
    sources: &[
        "facts/aider-and-anthropic-sdk.md §2.2: PyPI anthropic 0.125.0 read and observed",
        "facts/aider-and-anthropic-sdk.md §2.3: npm @anthropic-ai/sdk 0.124.0 read and observed",
    ],
    settings: &[
        Setting {
            name: "language",
            kind: Kind::Choice(&["python", "typescript"]),
            default: Default::Word("python"),
            help: "typescript checks refusals too, keeps every block of the summary, and what the caller appended",
            source: "facts/aider-and-anthropic-sdk.md §2.3",
        },
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
    unfit: fits_any,
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
        typescript: b.settings.word("language") == Some("typescript"),
        threshold: b.settings.num("threshold"),
        model: b.settings.word("model").map(Arc::from),
        max_tokens: b.settings.int("max_tokens"),
        prompt: b.wording.get("anthropic-sdk.summary_prompt"),
    })
}

struct AnthropicSdk {
    typescript: bool,
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

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.max_tokens = self.max_tokens;
        r.keep_messages = true;
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> Flow {
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
            Err(e) => return Flow::FailTurn(e.into()),
        };
        let origin = s.context.blocks().iter().flat_map(|b| b.origin.iter().copied()).collect();
        let mut shown: Vec<_> = s.context.blocks().iter().filter(|b| b.kind == BlockKind::Base).cloned().collect();
        let block = s.synthetic(BlockKind::Summary, Role::User, texts.concat(), origin);
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
    /// The history without the reply just received, then the prompt; no system, no tools, no parameters (facts §2.2).
    async fn summary_request(&self, s: &mut Engine, reply: &Reply) -> Request {
        let mut blocks: Vec<_> = s.context.blocks().iter().filter(|b| b.kind != BlockKind::Base).cloned().collect();
        // Only a caller that appended the reply itself, as plain blocks, brings its text in; its calls are filtered out.
        if let Some(CallerAct::Append { plain }) = s.world().caller().await {
            let texts = reply.parts.iter().filter_map(|p| match p {
                ReplyPart::Text(t) if plain || self.typescript => Some(t.clone()),
                _ => None,
            });
            let last = MessageId(u32::MAX - 1);
            blocks.extend(texts.map(|t| Draft::text(BlockKind::Assistant, Role::Assistant, t).build(last, vec![])));
        }
        let mut prompt = Draft::synthetic(BlockKind::SummaryPrompt, Role::User, self.prompt.clone());
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
    fn texts(&self, summary: &Reply) -> Result<Vec<Arc<str>>, &'static str> {
        let text = |p: &ReplyPart| match p {
            ReplyPart::Text(t) => Some(t.clone()),
            _ => None,
        };
        if self.typescript {
            return Ok(summary.parts.iter().filter_map(text).collect());
        }
        match summary.parts.first().map(text) {
            Some(Some(t)) => Ok(vec![t]),
            Some(None) => Err("the summary does not begin with a text block"),
            None => Err("the summary is empty"),
        }
    }
}
