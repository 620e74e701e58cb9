//! Codex CLI: the whole history becomes the user's own messages and one handoff summary.
//!
//! Follows releases 0.169, 0.104 and 0.63 (facts/codex.md, sections named at the constants). One layer: when the tokens in
//! use reach the limit, the complete history and a prompt go to the same model without tools; the answer, behind a constant
//! prefix, replaces everything except user messages (newest first, 20,000 tokens, the last one cut in the middle).

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{Block, BlockKind, Draft, Form, MessageId, Role};
use ctxbench_core::compaction::{Kept, middle_cut, newest_first};
use ctxbench_core::context::Edit;
use ctxbench_core::descriptor::Build;
use ctxbench_core::engine::{Engine, Event, Incoming};
use ctxbench_core::provider::Provider;
use ctxbench_core::record::CompactionKind;
use ctxbench_core::request::{ModelError, Phase, Reply, ReplyPart};
use ctxbench_core::strategy::{Flow, Strategy, Unsupported};
use ctxbench_core::tokens::bytes_div4_up;

use crate::codex_count::{Era, active_tokens, estimate_item, history_estimate, must_compact};

/// Builds the strategy.
pub fn build(b: &Build<'_>) -> Box<dyn Strategy> {
    let s = b.settings;
    Box::new(Codex {
        era: Era::of(b.version),
        configured: s.int("auto_compact_limit"),
        remote: s.flag("remote"),
        user_budget: s.num(if s.flag("remote") { "remote_user_tokens" } else { "user_message_tokens" }),
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
    remote: bool,
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

/// The user messages that a compaction keeps, oldest first, each with its place and its text parts (facts/codex.md §1.4).
pub fn retained_user_messages(era: Era, messages: &[&str], budget: u64) -> Vec<(usize, Vec<String>)> {
    let sizes: Vec<u64> = messages.iter().map(|m| bytes_div4_up(m)).collect();
    let kept = newest_first(&sizes, budget);
    messages
        .iter()
        .zip(kept)
        .enumerate()
        .filter_map(|(i, (m, k))| match k {
            Kept::No => None,
            Kept::Whole => Some((i, vec![(*m).to_string()])),
            Kept::Cut(tokens) => Some((i, cut_message(era, m, tokens))),
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
    let Some(short) = shortened(text, policy) else { return text.to_string() };
    let lines = text.lines().count();
    let header = match era {
        Era::V063 => format!("Total output lines: {lines}\n\n"),
        _ => format!("Warning: truncated output (original token count: {})\nTotal output lines: {lines}\n\n", bytes_div4_up(text)),
    };
    format!("{header}{short}")
}

/// The second cut, when an output is recorded: without a header (facts/codex.md §3).
pub fn cut_record(text: &str, policy: OutputPolicy) -> String {
    shortened(text, policy).unwrap_or_else(|| text.to_string())
}

/// Head, marker and tail; `None` when the text fits.
fn shortened(text: &str, policy: OutputPolicy) -> Option<String> {
    let budget = match policy {
        OutputPolicy::Bytes(n) => n,
        OutputPolicy::Tokens(n) => 4 * n,
    } as usize;
    let cut = middle_cut(text, budget)?;
    let marker = match policy {
        OutputPolicy::Bytes(_) => format!("…{} chars truncated…", cut.removed_chars),
        OutputPolicy::Tokens(_) => format!("…{} tokens truncated…", (text.len() - budget).div_ceil(4)),
    };
    Some(format!("{}{marker}{}", cut.head, cut.tail))
}

/// Unit of the limit on tool output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPolicy {
    /// Bytes.
    Bytes(u64),
    /// Tokens of four bytes.
    Tokens(u64),
}

impl OutputPolicy {
    /// The limit at recording: a fifth more (facts/codex.md §3).
    fn at_recording(self) -> Self {
        let more = |n: u64| (n * 6).div_ceil(5);
        match self {
            OutputPolicy::Bytes(n) => OutputPolicy::Bytes(more(n)),
            OutputPolicy::Tokens(n) => OutputPolicy::Tokens(more(n)),
        }
    }
}

impl Codex {
    fn limit(&self, s: &Engine) -> Option<u64> {
        effective_limit(self.era, s.model.window, self.configured)
    }

    /// Last total + estimates of the items after the last one the model made + encrypted reasoning before the last user message.
    fn active(&self, s: &Engine) -> u64 {
        let blocks = s.context.blocks();
        let after = blocks.iter().rposition(|b| is_model_made(b)).map_or(blocks.len(), |i| i + 1);
        let last_user = blocks.iter().rposition(|b| b.kind == BlockKind::User).unwrap_or(0);
        let reasoning = blocks[..last_user].iter().filter(|b| b.kind == BlockKind::Reasoning);
        let tokens = |b: &Arc<Block>| estimate_item(self.era, b);
        active_tokens(self.era, self.last_total, blocks[after..].iter().map(tokens), reasoning.map(tokens))
    }

    fn over(&self, s: &mut Engine, check: &'static str) -> bool {
        let (active, Some(limit)) = (self.active(s), self.limit(s)) else { return false };
        let over = must_compact(active, Some(limit));
        if over {
            s.trigger(check, active, limit);
        }
        over
    }

    /// One compaction: summary request, then the replacement history.
    async fn compaction(&mut self, s: &mut Engine, phase: Phase) -> Result<(), String> {
        let reply = self.summarise(s, phase).await?;
        if self.remote {
            return self.remote_replacement(s, phase, &reply);
        }
        let answer = match last_text(&reply).or_else(|| last_assistant(s)) {
            Some(a) => a,
            None if phase == Phase::PostTurn => return Err("the summary was empty".into()),
            None => String::new(),
        };
        let text: Arc<str> = format!("{}\n{answer}", self.prefix).into();
        let origin = s.context.blocks().iter().flat_map(|b| b.origin.iter().copied()).collect();
        let summary = s.synthetic(BlockKind::Summary, Role::User, text, origin);
        self.replace(s, phase, "handoff", summary)
    }

    /// The opaque item of a provider stands where the summary would; it must be the only one of its kind (facts §2).
    fn remote_replacement(&mut self, s: &mut Engine, phase: Phase, reply: &Reply) -> Result<(), String> {
        let mut opaque = reply.parts.iter().filter_map(|p| match p {
            ReplyPart::Compaction(Some(o)) => Some(o.clone()),
            _ => None,
        });
        let (Some(item), None) = (opaque.next(), opaque.next()) else {
            return Err("the provider's answer does not hold exactly one compaction".into());
        };
        let origin = s.context.blocks().iter().flat_map(|b| b.origin.iter().copied()).collect();
        // Anthropic's item is readable, OpenAI's is not.
        let readable = s.model.provider == Provider::Anthropic;
        let block = s.synthetic(BlockKind::Compaction, Role::Assistant, "", origin);
        let block = block.redraft(|d| if readable { d.text = item } else { d.opaque = Some(item) });
        self.replace(s, phase, "remote", block)
    }

    fn replace(&mut self, s: &mut Engine, phase: Phase, mechanism: &'static str, summary: Arc<Block>) -> Result<(), String> {
        let blocks = self.replacement(s, summary);
        // Calls go together with their results, so the edit is always valid.
        s.compacted(CompactionKind::Summarise, mechanism, phase, blocks).map_err(|e| e.to_string())?;
        self.last_total = self.estimate_context(s);
        s.note(Event::Estimated(self.last_total));
        Ok(())
    }

    /// Asks for the summary; the oldest item goes each time that the request is refused as too long.
    async fn summarise(&mut self, s: &mut Engine, phase: Phase) -> Result<Reply, String> {
        let asks = if self.remote {
            Draft::synthetic(BlockKind::CompactionTrigger, Role::User, "")
        } else {
            Draft::synthetic(BlockKind::SummaryPrompt, Role::User, self.prompt.clone())
        };
        let prompt = asks.build(MessageId(u32::MAX), vec![]);
        let mut items = s.context.blocks().to_vec();
        let mut attempts = 0;
        loop {
            let mut blocks = items.clone();
            blocks.push(prompt.clone());
            let request = s.summary_request(phase, blocks, self.remote);
            match s.send(&request).await {
                Ok(reply) => return Ok(reply),
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
        let texts: Vec<&str> = users.iter().map(|b| &*b.text).collect();
        retained_user_messages(self.era, &texts, self.user_budget)
            .into_iter()
            .map(|(i, parts)| {
                let text = parts.concat();
                if text == texts[i] {
                    return users[i].clone();
                }
                let mut at = 0;
                let splits = parts[..parts.len() - 1].iter().map(|p| {
                    at += p.len();
                    at
                });
                let splits: Vec<usize> = splits.collect();
                users[i].redraft(|d| {
                    d.text = text.into();
                    d.splits = splits;
                    d.form = Form::Truncated;
                })
            })
            .collect()
    }

    /// The program's own estimate of base and history.
    fn estimate_context(&self, s: &Engine) -> u64 {
        let blocks = s.context.blocks();
        let base: u64 = blocks.iter().filter(|b| b.kind == BlockKind::Base).map(|b| b.bytes() as u64).sum();
        let items = blocks.iter().filter(|b| b.kind != BlockKind::Base).map(|b| estimate_item(self.era, b));
        history_estimate(self.base_bytes.unwrap_or(base), items)
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

/// A call whose program was killed gets a synthetic output right behind it (facts §3, normalize.rs).
fn answer_aborted_calls(s: &mut Engine) {
    let blocks = s.context.blocks();
    let answered: HashSet<&str> = blocks.iter().filter(|b| b.kind == BlockKind::Output).filter_map(|b| b.call_id()).collect();
    let open: Vec<usize> = (0..blocks.len())
        .filter(|&i| blocks[i].kind == BlockKind::Call && !blocks[i].call_id().is_some_and(|id| answered.contains(id)))
        .collect();
    for i in open.into_iter().rev() {
        let call = s.context.blocks()[i].call.clone();
        let block = s.synthetic(BlockKind::Output, Role::Tool, "aborted", vec![]).redraft(|d| d.call = call);
        // Adding the partner of a call separates nothing.
        let _ = s.context.apply(Edit::Insert(i + 1, block));
    }
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
            let policy = OutputPolicy::Tokens(self.output_budget);
            let cut = cut_record(&cut_output(self.era, &raw.text, policy), policy.at_recording());
            if cut != *raw.text {
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

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        answer_aborted_calls(s);
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
}
