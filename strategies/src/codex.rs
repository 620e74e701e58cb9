//! Codex CLI: the whole history becomes the user's own messages and one handoff summary.
//!
//! Follows releases 0.169, 0.104 and 0.63 (facts/codex.md, sections named at the constants). One layer: when the tokens in
//! use reach the limit, the complete history and a prompt go to the same model without tools; the answer, behind a constant
//! prefix, replaces everything except user messages (newest first, 20,000 tokens, the last one cut in the middle).

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{Block, BlockKind, Draft, Form, MessageId, Role};
use ctxbench_core::compaction::{Kept, middle_cut, newest_first};
use ctxbench_core::descriptor::{Build, Descriptor, Matrix, Standing};
use ctxbench_core::engine::{Engine, Event, Incoming};
use ctxbench_core::record::CompactionKind;
use ctxbench_core::request::{ModelError, Phase, Reply, Request};
use ctxbench_core::settings::{Default, Kind, Setting};
use ctxbench_core::strategy::{Flow, Strategy, Unsupported};
use ctxbench_core::tokens::bytes_div4_up;

use crate::codex_count::{Era, estimate_item, estimate_items, json_estimate};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "codex",
    summary: "Codex CLI: user messages verbatim, everything else becomes one handoff summary",
    versions: &["0.169", "0.104", "0.63"],
    sources: &["facts/codex.md §1-3: released programs 0.169, 0.104 and 0.63 observed, source at 6c0c6759 and 54d22e3f read"],
    settings: &[
        Setting {
            name: "auto_compact_limit",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "tokens in use from which it compacts; auto = 90 % of the window, which is also the cap",
            source: "facts/codex.md §1.2, model_auto_compact_token_limit",
        },
        Setting {
            name: "user_message_tokens",
            kind: Kind::Tokens,
            default: Default::Int(20_000),
            help: "budget for user messages kept verbatim, newest first",
            source: "facts/codex.md §1.4, COMPACT_USER_MESSAGE_MAX_TOKENS",
        },
        Setting {
            name: "tool_output_tokens",
            kind: Kind::Tokens,
            default: Default::Int(10_000),
            help: "tool output longer than this is cut in the middle on its way in; 0 = never",
            source: "facts/codex.md §3, truncation_policy of every bundled model",
        },
        Setting {
            name: "post_turn_percent",
            kind: Kind::Count,
            default: Default::Int(0),
            help: "per cent of the window from which a finished turn is followed by a compaction; 0 = off",
            source: "facts/codex.md §1.1, model_post_turn_compact_threshold_percent",
        },
        Setting {
            name: "stream_retries",
            kind: Kind::Count,
            default: Default::Int(5),
            help: "further attempts after a failed request",
            source: "facts/codex.md §1.5, stream_max_retries",
        },
        Setting {
            name: "base_estimate_bytes",
            kind: Kind::Bytes,
            default: Default::Auto,
            help: "size of the base instructions in the local estimate; auto = their size as sent",
            source: "facts/codex.md §3: the estimate uses the text of session_meta, which may be longer than the one sent",
        },
    ],
    matrix: Matrix {
        layers: "1: handoff summary",
        llm_calls: "1 per compaction (more when the summary request itself overflows)",
        user_messages: "kept verbatim, newest first, 20k tokens; the oldest that fits partly is cut in the middle",
        tool_results: "dropped with the rest; long ones cut in the middle on arrival",
        cache: "summary request rides the conversation prefix but without tools; the prefix is rewritten after it",
        afterwards: "context rebuilt, the turn goes on from the summary",
        token_counting: "last usage reported + bytes / 4 of what is new",
        pre_send_check: "before a turn and between steps, >= 90 % of the window",
        overflow_response: "turn fails, the next turn compacts; in a compaction the oldest item goes and it tries again",
        thinking: "encrypted reasoning is kept until the compaction and counted",
        memory: "AGENTS.md shown again",
        undo: "rollout file keeps everything; no undo of a compaction",
    },
    wording: &[("codex.summary_prompt", PROMPT), ("codex.summary_prefix", PREFIX)],
    standing: Standing::Contender,
    manual: true,
    build,
};

const PROMPT: &str = "Stop working on the task for a moment and write a handoff note. Another assistant will take over from it without \
seeing this conversation.\nCover:\n- Progress so far and the decisions that were made\n- Context that matters: constraints and what the user prefers\n\
- What is left to do, as clear next steps\n- Data, examples and references that are needed to go on\nBe brief and well ordered, and write only what helps the work to continue.";

const PREFIX: &str = "An assistant before you began this task and left the note below. The tools are in the state it left them in. \
Use what it found out instead of doing the same work twice. Its note:";

fn build(b: &Build<'_>) -> Box<dyn Strategy> {
    let s = b.settings;
    Box::new(Codex {
        era: Era::of(b.version),
        configured: s.int("auto_compact_limit"),
        user_budget: s.num("user_message_tokens"),
        output_budget: s.num("tool_output_tokens"),
        post_turn_percent: s.num("post_turn_percent"),
        retries: s.num("stream_retries") as u32,
        base_bytes: s.int("base_estimate_bytes"),
        prompt: b.wording.get("codex.summary_prompt"),
        prefix: b.wording.get("codex.summary_prefix"),
        last_total: 0,
        reopened: false,
    })
}

struct Codex {
    era: Era,
    configured: Option<u64>,
    user_budget: u64,
    output_budget: u64,
    post_turn_percent: u64,
    retries: u32,
    base_bytes: Option<u64>,
    prompt: Arc<str>,
    prefix: Arc<str>,
    /// Total of the last usage, or the local estimate after a compaction.
    last_total: u64,
    /// Opened again since the last user message.
    reopened: bool,
}

/// `min(configured, 90 % of the window)`; 0.63 takes the configured value as it is and has none of its own (facts/codex.md §1.2).
pub fn effective_limit(era: Era, window: u64, configured: Option<u64>) -> Option<u64> {
    match era {
        Era::V063 => configured,
        _ => Some(configured.map_or(window * 9 / 10, |c| c.min(window * 9 / 10))),
    }
}

/// The user messages that a compaction keeps, oldest first, each as its text parts (facts/codex.md §1.4).
pub fn retained_user_messages(era: Era, messages: &[&str], budget: u64) -> Vec<Vec<String>> {
    let sizes: Vec<u64> = messages.iter().map(|m| bytes_div4_up(m)).collect();
    let kept = newest_first(&sizes, budget);
    messages
        .iter()
        .zip(kept)
        .filter_map(|(m, k)| match k {
            Kept::No => None,
            Kept::Whole => Some(vec![(*m).to_string()]),
            Kept::Cut(tokens) => Some(cut_message(era, m, tokens)),
        })
        .collect()
}

/// One message cut to a token budget: head, marker, tail; one part each in 0.169, one part in all before.
pub fn cut_message(era: Era, text: &str, tokens: u64) -> Vec<String> {
    let budget = 4 * tokens as usize;
    let Some(cut) = middle_cut(text, budget) else { return vec![text.to_string()] };
    let marker = format!("…{} tokens truncated…", (text.len() - budget).div_ceil(4));
    let parts = vec![cut.head.to_string(), marker, cut.tail.to_string()];
    if era == Era::V169 { parts } else { vec![parts.concat()] }
}

/// A tool output as it enters the history: cut in the middle, with a header that says so (facts/codex.md §3).
pub fn cut_output(era: Era, text: &str, policy: OutputPolicy) -> String {
    let budget = match policy {
        OutputPolicy::Bytes(n) => n,
        OutputPolicy::Tokens(n) => 4 * n,
    } as usize;
    let Some(cut) = middle_cut(text, budget) else { return text.to_string() };
    let marker = match policy {
        OutputPolicy::Bytes(_) => format!("…{} chars truncated…", cut.removed_chars),
        OutputPolicy::Tokens(_) => format!("…{} tokens truncated…", (text.len() - budget).div_ceil(4)),
    };
    let lines = text.lines().count();
    let header = match era {
        Era::V063 => format!("Total output lines: {lines}\n\n"),
        _ => format!("Warning: truncated output (original token count: {})\nTotal output lines: {lines}\n\n", bytes_div4_up(text)),
    };
    format!("{header}{}{marker}{}", cut.head, cut.tail)
}

/// Unit of the limit on tool output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPolicy {
    /// Bytes.
    Bytes(u64),
    /// Tokens of four bytes.
    Tokens(u64),
}

impl Codex {
    fn limit(&self, s: &Engine) -> Option<u64> {
        effective_limit(self.era, s.model.window, self.configured)
    }

    /// Last total + estimates of the items after the last one the model made + encrypted reasoning before the last user message.
    fn active(&self, s: &Engine) -> u64 {
        if self.era == Era::V063 {
            return self.last_total;
        }
        let blocks = s.context.blocks();
        let after = blocks.iter().rposition(|b| is_model_made(b)).map_or(blocks.len(), |i| i + 1);
        let last_user = blocks.iter().rposition(|b| b.kind == BlockKind::User).unwrap_or(0);
        let reasoning = blocks[..last_user].iter().filter(|b| b.kind == BlockKind::Reasoning);
        self.last_total + estimate_items(self.era, &blocks[after..]) + reasoning.map(|b| estimate_item(self.era, b)).sum::<u64>()
    }

    fn over(&self, s: &mut Engine, check: &'static str) -> bool {
        let (active, Some(limit)) = (self.active(s), self.limit(s)) else { return false };
        if active >= limit {
            s.trigger(check, active, limit);
        }
        active >= limit
    }

    /// One compaction: summary request, then the replacement history.
    async fn compaction(&mut self, s: &mut Engine, phase: Phase) -> Result<(), String> {
        let answer = self.summarise(s, phase).await?;
        let answer = match answer.or_else(|| last_assistant(s)) {
            Some(a) => a,
            None if phase == Phase::PostTurn => return Err("the summary was empty".into()),
            None => String::new(),
        };
        let text: Arc<str> = format!("{}\n{answer}", self.prefix).into();
        let origin = s.context.blocks().iter().flat_map(|b| b.origin.iter().copied()).collect();
        let summary = s.synthetic(BlockKind::Summary, Role::User, text, origin);
        let blocks = self.replacement(s, summary);
        // Calls go together with their results, so the edit is always valid.
        if s.compacted(CompactionKind::Summarise, "handoff", phase, blocks).is_err() {
            return Err("the replacement history would separate a call from its result".into());
        }
        self.last_total = self.estimate_context(s);
        s.note(Event::Estimated(self.last_total));
        Ok(())
    }

    /// Asks for the summary; the oldest item goes each time that the request is refused as too long.
    async fn summarise(&mut self, s: &mut Engine, phase: Phase) -> Result<Option<String>, String> {
        let prompt = Draft::synthetic(BlockKind::SummaryPrompt, Role::User, self.prompt.clone()).build(MessageId(u32::MAX), vec![]);
        let mut items = s.context.blocks().to_vec();
        let mut attempts = 0;
        loop {
            let mut blocks = items.clone();
            blocks.push(prompt.clone());
            let request = s.summary_request(phase, blocks, false);
            match s.send(&request).await {
                Ok(reply) => return Ok(last_text(&reply)),
                Err(e) if e.is_overflow() => {
                    attempts = 0;
                    if !remove_first(&mut items) {
                        self.last_total = s.model.window;
                        return Err(format!("the summary request does not fit: {e}"));
                    }
                }
                Err(_) if attempts < self.retries => attempts += 1,
                Err(e) => return Err(e.to_string()),
            }
        }
    }

    /// The history after a compaction: user messages, context where this version puts it, the summary last.
    fn replacement(&self, s: &Engine, summary: Arc<Block>) -> Vec<Arc<Block>> {
        let blocks = s.context.blocks();
        let mut users = self.kept_users(blocks);
        let context = s.fixed.context.iter().cloned();
        let mut out: Vec<Arc<Block>> = blocks.iter().filter(|b| b.kind == BlockKind::Base).cloned().collect();
        match (self.era, users.pop()) {
            (Era::V169, Some(last)) => {
                out.append(&mut users);
                out.extend(context);
                out.push(last);
            }
            (_, last) => {
                out.extend(context);
                out.append(&mut users);
                out.extend(last);
            }
        }
        out.push(summary);
        out
    }

    fn kept_users(&self, blocks: &[Arc<Block>]) -> Vec<Arc<Block>> {
        let users: Vec<&Arc<Block>> = blocks.iter().filter(|b| matches!(b.kind, BlockKind::User | BlockKind::Image)).collect();
        let sizes: Vec<u64> = users.iter().map(|b| bytes_div4_up(&b.text)).collect();
        let kept = newest_first(&sizes, self.user_budget);
        users
            .into_iter()
            .zip(kept)
            .filter_map(|(b, k)| match k {
                Kept::No => None,
                Kept::Whole => Some(b.clone()),
                Kept::Cut(tokens) => {
                    let parts = cut_message(self.era, &b.text, tokens);
                    let mut at = 0;
                    let splits = parts[..parts.len() - 1].iter().map(|p| {
                        at += p.len();
                        at
                    });
                    let splits: Vec<usize> = splits.collect();
                    Some(b.redraft(|d| {
                        d.text = parts.concat().into();
                        d.splits = splits;
                        d.form = Form::Truncated;
                    }))
                }
            })
            .collect()
    }

    /// The program's own estimate of base and history.
    fn estimate_context(&self, s: &Engine) -> u64 {
        let blocks = s.context.blocks();
        let base: u64 = blocks.iter().filter(|b| b.kind == BlockKind::Base).map(|b| b.bytes() as u64).sum();
        self.base_bytes.unwrap_or(base).div_ceil(4)
            + blocks.iter().filter(|b| b.kind != BlockKind::Base).map(|b| estimate_item(self.era, b)).sum::<u64>()
    }
}

fn is_model_made(b: &Block) -> bool {
    matches!(b.kind, BlockKind::Assistant | BlockKind::Reasoning | BlockKind::Call)
}

fn last_text(reply: &Reply) -> Option<String> {
    reply.text().filter(|t| !t.is_empty())
}

/// Without an answer the previous reply stands in for the summary, as the program does (facts/codex.md §1.4).
fn last_assistant(s: &Engine) -> Option<String> {
    s.context.blocks().iter().rev().find(|b| b.kind == BlockKind::Assistant).map(|b| b.text.to_string())
}

/// Removes the first item that is not the base, with its partner; false when nothing is left.
fn remove_first(items: &mut Vec<Arc<Block>>) -> bool {
    let Some(first) = items.iter().position(|b| b.kind != BlockKind::Base) else { return false };
    let gone = items.remove(first);
    if let Some(id) = gone.call_id()
        && let Some(partner) = items.iter().position(|b| b.call_id() == Some(id))
    {
        items.remove(partner);
    }
    true
}

#[async_trait]
impl Strategy for Codex {
    fn admit(&self, mut raw: Draft) -> Draft {
        if raw.kind == BlockKind::Output && self.output_budget > 0 {
            let cut = cut_output(self.era, &raw.text, OutputPolicy::Tokens(self.output_budget));
            if cut.len() != raw.text.len() {
                raw.form = Form::Truncated;
                raw.text = cut.into();
            }
        }
        raw
    }

    async fn on_start(&mut self, s: &mut Engine) {
        let role = if self.era == Era::V169 { Role::Developer } else { Role::Instructions };
        for b in &s.fixed.base.clone() {
            s.context.push(b.redraft(|d| d.role = role));
        }
        for b in &s.fixed.context.clone() {
            s.context.push(b.clone());
        }
    }

    async fn on_restart(&mut self, _s: &mut Engine) {
        self.reopened = true;
    }

    async fn on_user(&mut self, s: &mut Engine, msg: &Incoming) -> Flow {
        if std::mem::take(&mut self.reopened) && self.era == Era::V104 {
            // This version shows the context again after a resume, and counts it (facts/codex.md §8).
            for b in &s.fixed.context.clone() {
                s.context.push(b.clone());
            }
        }
        if self.era != Era::V063
            && self.over(s, "pre_turn")
            && let Err(e) = self.compaction(s, Phase::PreTurn).await
        {
            s.record_user(self, msg);
            return Flow::FailTurn(e);
        }
        Flow::Proceed
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> Flow {
        self.last_total = reply.usage.total();
        Flow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        if self.era != Era::V063 && !had_calls {
            return Flow::Proceed;
        }
        if !self.over(s, "mid_turn") {
            return Flow::Proceed;
        }
        match self.compaction(s, Phase::MidTurn).await {
            Err(e) => Flow::FailTurn(e),
            Ok(()) if self.era == Era::V063 => Flow::Again,
            Ok(()) => Flow::Proceed,
        }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if e.is_overflow() {
            self.last_total = s.model.window;
            return Flow::FailTurn(format!("the model's context window is full: {e}"));
        }
        if attempt <= self.retries { Flow::Again } else { Flow::FailTurn(e.to_string()) }
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        let threshold = s.model.window * self.post_turn_percent / 100;
        let active = self.active(s);
        if self.post_turn_percent > 0 && active >= threshold {
            s.trigger("post_turn", active, threshold);
            // A failure here must leave the finished turn alone (facts/codex.md §1.1).
            let _ = self.compaction(s, Phase::PostTurn).await;
        }
    }

    async fn compact(&mut self, s: &mut Engine, _instructions: Option<&str>) -> Result<(), Unsupported> {
        // A failed manual compaction changes nothing and is shown to the user.
        let _ = self.compaction(s, Phase::StandaloneTurn).await;
        Ok(())
    }

    fn request(&mut self, s: &Engine) -> Request {
        s.sample_request()
    }
}

/// The estimate right after a compaction from the sizes of base and items, as the program reports it.
pub fn history_estimate(era: Era, base_bytes: u64, items: &[u64]) -> u64 {
    let item = |bytes: u64| if era == Era::V169 { bytes.div_ceil(4) } else { json_estimate(bytes) };
    base_bytes.div_ceil(4) + items.iter().map(|&b| item(b)).sum::<u64>()
}
