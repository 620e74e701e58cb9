//! Aider: finished history above a small budget is summarised beside the conversation; the current turns grow without limit.
//!
//! Follows 0.86 (facts/aider-and-anthropic-sdk.md §1). Two lists: what was said since the last edit (`cur`) and what came before
//! (`done`). Only an edit moves `cur` to `done`, and only `done` is ever summarised: by the weak model, in the background, into one
//! message in front of a verbatim tail. There is no answer to an overflow but a warning.
//!
//! The plain behaviour is the intended one: a summary replaces what it covers, and what was said since stays behind it.
//! `as_shipped=true` does what the released program does in practice: the finished summary is thrown away, because two messages are
//! appended after the worker has copied the history (facts §1.2, surprise 1).
//!
//! Mapping of tool traffic: Aider has no tools. A call becomes a text of the assistant, its result a text of the user, no request
//! offers tools, and a turn counts as an edit turn if a call of an editing tool happened in it. Thinking is not kept. Memory files
//! stand where Aider shows files that may only be read. Retries of a failed summary request are not modelled: the next model is asked.

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{Block, BlockKind, CallRef, Draft, MessageId, Role, total_tokens};
use ctxbench_core::descriptor::Build;
use ctxbench_core::engine::{Engine, Event, Task};
use ctxbench_core::history::Part;
use ctxbench_core::provider::{CacheRule, find};
use ctxbench_core::record::CompactionKind;
use ctxbench_core::request::{ErrorKind, ModelError, Phase, Reply, ReplyPart, Request};
use ctxbench_core::strategy::{Flow, Strategy};

use crate::aider_chunks::Chunks;
use crate::aider_markdown::{self, Speaker};
use crate::aider_summary::{Content, Count, Ending, Exact, Job, Message, Rules, Step, head_limit, history_budget, summarize_end, too_big};
use crate::tool_names::is_edit;

/// Attempts at a request that fails for a passing reason: pauses of 0.25 s doubled up to a minute (facts §1.1).
const ATTEMPTS: u32 = 8;

pub(crate) fn build(b: &Build<'_>) -> Box<dyn Strategy> {
    let s = b.settings;
    let text = |name: &str| b.wording.get(&format!("aider.{name}"));
    Box::new(Aider {
        budget: s.int("max_chat_history_tokens"),
        budget_bounds: (s.num("history_least"), s.num("history_most")),
        as_shipped: s.flag("as_shipped"),
        cache_prompts: s.flag("cache_prompts"),
        decline: s.word("oversize") == Some("decline"),
        restore: s.flag("restore"),
        weak: s.word("weak_model").map(Arc::from),
        scale: b.scale,
        words: Words {
            prompt: text("summary_prompt"),
            prefix: text("summary_prefix"),
            committed: text("committed"),
            ok: text("ok"),
            reminder: text("reminder"),
            too_long: text("too_long"),
        },
        chunks: Chunks::default(),
        edited: false,
        pending: None,
    })
}

struct Words {
    prompt: Arc<str>,
    prefix: Arc<str>,
    committed: Arc<str>,
    ok: Arc<str>,
    reminder: Arc<str>,
    too_long: Arc<str>,
}

struct Aider {
    budget: Option<u64>,
    budget_bounds: (u64, u64),
    as_shipped: bool,
    cache_prompts: bool,
    decline: bool,
    restore: bool,
    weak: Option<Arc<str>>,
    scale: f64,
    words: Words,
    /// The prompt in parts; `cur` is brought up to date by [`Aider::sync`], the reminder stands in requests only.
    chunks: Chunks<Arc<Block>>,
    /// An editing tool was called in this turn.
    edited: bool,
    pending: Option<Pending>,
}

/// A summary under way.
struct Pending {
    task: Task,
    request: Request,
    job: Job,
    /// The finished history that it covers.
    snapshot: Vec<Arc<Block>>,
    /// Models not yet asked at this step.
    fallback: Vec<Arc<str>>,
    /// The text asked about, for the next model.
    asked: String,
}

impl Aider {
    fn max_input(s: &Engine) -> u64 {
        s.model.input_limit.unwrap_or(s.model.window)
    }

    fn budget(&self, s: &Engine) -> f64 {
        let (least, most) = self.budget_bounds;
        self.budget.map_or_else(|| history_budget(Self::max_input(s), least, most), |n| n as f64)
    }

    /// Weak model first, then the main one.
    fn models(&self, s: &Engine) -> Vec<Arc<str>> {
        vec![self.weak.clone().unwrap_or_else(|| s.model.weak.clone()), s.model.name.clone()]
    }

    /// Input limit of the first model less the reserve, both scaled.
    fn head_limit(&self, first: &str) -> i64 {
        head_limit(find(first).ok().map(|m| m.input_limit.unwrap_or(m.window)), self.scale)
    }

    /// A message of the program's own that stands for nothing in the session.
    fn own(kind: BlockKind, role: Role, text: &Arc<str>) -> Arc<Block> {
        Draft::synthetic(kind, role, text.clone()).build(MessageId(u32::MAX), vec![])
    }

    /// A part of the prompt with the assistant's assent behind it; nothing when there is nothing to show.
    fn assented(&self, blocks: &[Arc<Block>]) -> Vec<Arc<Block>> {
        let mut out: Vec<_> = blocks.iter().map(|b| b.redraft(|d| d.role = Role::User)).collect();
        if !out.is_empty() {
            out.push(Self::own(BlockKind::Assistant, Role::Assistant, &self.words.ok));
        }
        out
    }

    /// Shows the chunks as they are.
    fn show(&self, s: &mut Engine) {
        // No block is a call or a result, so nothing can be separated.
        let _ = s.context.set(self.chunks.all());
    }

    /// Takes over what the engine appended; thinking does not stay.
    fn sync(&mut self, s: &mut Engine) {
        let shown = &s.context.blocks()[self.chunks.before_cur()..];
        let thinking = shown.iter().any(|b| b.kind == BlockKind::Reasoning);
        self.chunks.cur = shown.iter().filter(|b| b.kind != BlockKind::Reasoning).cloned().collect();
        if thinking {
            self.show(s);
        }
    }

    /// After an edit the current turns become history, and two messages say so (facts §1.2, `move_back_cur_messages`).
    async fn move_back(&mut self, s: &mut Engine) {
        let mut cur = std::mem::take(&mut self.chunks.cur);
        self.chunks.done.append(&mut cur);
        self.summarize_start(s).await;
        for (kind, role, text) in
            [(BlockKind::User, Role::User, &self.words.committed), (BlockKind::Assistant, Role::Assistant, &self.words.ok)]
        {
            let block = s.synthetic(kind, role, text.clone(), vec![]);
            self.chunks.done.push(block);
        }
        self.show(s);
    }

    async fn summarize_start(&mut self, s: &mut Engine) {
        let budget = self.budget(s);
        if !too_big(&messages(&self.chunks.done), budget, &Exact) {
            return;
        }
        // Another summary may make the history smaller again; the program starts its worker all the same.
        self.summarize_end(s).await;
        let snapshot = self.chunks.done.clone();
        let messages = messages(&snapshot);
        let believed = messages.iter().map(|m| Exact.one(m)).sum();
        s.note(Event::Trigger { check: "summarize_start", believed, billed: total_tokens(&snapshot), limit: budget as u64 });
        let models = self.models(s);
        let rules = Rules { max_tokens: budget, head_limit: self.head_limit(&models[0]), prefix: self.words.prefix.to_string() };
        let mut job = Job::new(messages, rules);
        if let Ok(Step::Ask(text)) = job.start(&Exact) {
            self.pending = Some(self.ask(s, job, snapshot, text, models).await);
        }
    }

    /// Starts a request for the first of the models.
    async fn ask(&self, s: &mut Engine, job: Job, snapshot: Vec<Arc<Block>>, text: String, mut models: Vec<Arc<str>>) -> Pending {
        let model = models.remove(0);
        let blocks = vec![
            Self::own(BlockKind::Base, Role::System, &self.words.prompt),
            Self::own(BlockKind::SummaryPrompt, Role::User, &Arc::from(text.as_str())),
        ];
        let mut request = s.summary_request(Phase::Background, blocks, false);
        request.model = model;
        request.breakpoints.clear();
        let task = s.spawn(&request).await;
        Pending { task, request, job, snapshot, fallback: models, asked: text }
    }

    /// Takes one answer if it is there; true while more is to come.
    async fn advance(&mut self, s: &mut Engine, wait: bool) -> bool {
        let Some(mut p) = self.pending.take() else { return false };
        let Some(result) = s.collect(p.task, &p.request, wait).await else {
            self.pending = Some(p);
            return false;
        };
        let text = result.ok().and_then(|r| r.text());
        let step = match text {
            Some(t) => p.job.answer(&t, &Exact).ok(),
            None if p.fallback.is_empty() => None,
            None => {
                self.pending = Some(self.ask(s, p.job, p.snapshot, p.asked, p.fallback).await);
                return true;
            }
        };
        match step {
            Some(Step::Ask(text)) => {
                let models = self.models(s);
                self.pending = Some(self.ask(s, p.job, p.snapshot, text, models).await);
                true
            }
            Some(Step::Done) => {
                self.finish(s, p.snapshot, Some(&p.job));
                false
            }
            None => {
                self.finish(s, p.snapshot, None);
                false
            }
        }
    }

    /// Waits for the summary and applies it or throws it away (facts §1.2, `summarize_end`).
    async fn summarize_end(&mut self, s: &mut Engine) {
        while self.advance(s, true).await {}
    }

    fn finish(&mut self, s: &mut Engine, snapshot: Vec<Arc<Block>>, job: Option<&Job>) {
        let same = |a: &[Arc<Block>]| a.iter().map(|b| (b.message, b.hash)).collect::<Vec<_>>();
        let (done, covered) = (same(&self.chunks.done), same(&snapshot));
        // Which blocks stay is decided by place; the blocks follow below.
        let kept = match summarize_end(&done, &covered, job.map(|_| Vec::new()), self.as_shipped) {
            Ending::Applied(kept) => kept.len(),
            Ending::Discarded => return,
            Ending::Emptied => {
                self.chunks.done.clear();
                // Nothing is separated, so the edit is always valid.
                let _ = s.compacted(CompactionKind::Drop, "emptied", Phase::Background, self.chunks.all());
                return;
            }
        };
        let Some((job, summary)) = job.and_then(|j| j.summary().map(|m| (j, m))) else { return };
        let groups = groups(&snapshot);
        let from = groups.get(job.tail()).map_or(snapshot.len(), |g| g.start);
        let origin = snapshot[..from].iter().flat_map(|b| b.origin.iter().copied()).collect();
        let text = match &summary.content {
            Content::Text(t) => t.as_str(),
            _ => "",
        };
        let mut new = vec![s.synthetic(BlockKind::Summary, Role::User, text, origin)];
        new.extend_from_slice(&snapshot[from..]);
        if new.last().is_some_and(|b| b.role != Role::Assistant) {
            new.push(s.synthetic(BlockKind::Assistant, Role::Assistant, self.words.ok.clone(), vec![]));
        }
        let rest = self.chunks.done.len() - kept;
        new.extend_from_slice(&self.chunks.done[rest..]);
        self.chunks.done = new;
        let _ = s.compacted(CompactionKind::Summarise, "summary", Phase::Background, self.chunks.all());
    }

    /// Tokens of the prompt with the reminder, `cur` counted twice as the program does where it decides on the reminder (facts §1.4).
    fn reminder_fits(&self, s: &Engine, reminder: &Block) -> bool {
        let cur = total_tokens(&s.context.blocks()[self.chunks.before_cur()..]);
        s.context.tokens() + reminder.tokens() + cur < Self::max_input(s)
    }

    /// The history as its file gives it back (facts §1.5).
    fn restored(&self, s: &mut Engine) -> Vec<Arc<Block>> {
        let mut file = String::new();
        aider_markdown::append_start(&mut file, "");
        for b in self.spoken(s) {
            let who = if b.role == Role::Assistant { Speaker::Assistant } else { Speaker::User };
            aider_markdown::append(&mut file, who, &b.text);
        }
        aider_markdown::split_chat_history_markdown(&file, false)
            .into_iter()
            .map(|(who, text)| match who {
                Speaker::Assistant => s.synthetic(BlockKind::Assistant, Role::Assistant, text, vec![]),
                _ => s.synthetic(BlockKind::User, Role::User, text, vec![]),
            })
            .collect()
    }

    /// Everything that people, the model and tools said, as this program would have shown it.
    fn spoken(&self, s: &Engine) -> Vec<Draft> {
        let mut out = Vec::new();
        for m in s.history.messages().iter().filter(|m| !m.synthetic) {
            for p in &m.parts {
                let call = |id: &str, name: &str| Some(Arc::new(CallRef { id: id.into(), name: name.into() }));
                let draft = match p {
                    Part::Text(t) if m.role == Role::Assistant => Draft::text(BlockKind::Assistant, Role::Assistant, t.clone()),
                    Part::Text(t) => Draft::text(BlockKind::User, Role::User, t.clone()),
                    Part::Call { id, name, arguments } => {
                        Draft { call: call(id, name), ..Draft::text(BlockKind::Call, Role::Assistant, arguments.clone()) }
                    }
                    Part::Result { id, name, output, is_error } => {
                        let d = Draft::text(BlockKind::Output, Role::Tool, output.clone());
                        Draft { call: call(id, name), is_error: *is_error, ..d }
                    }
                    _ => continue,
                };
                out.push(self.admit(draft));
            }
        }
        out
    }
}

/// Ranges of blocks that make one message of Aider's: those of one message and one side.
fn groups(blocks: &[Arc<Block>]) -> Vec<std::ops::Range<usize>> {
    let mut out: Vec<std::ops::Range<usize>> = Vec::new();
    for (i, b) in blocks.iter().enumerate() {
        match out.last_mut() {
            Some(g) if blocks[g.start].message == b.message && blocks[g.start].role == b.role => g.end = i + 1,
            _ => out.push(i..i + 1),
        }
    }
    out
}

fn message(blocks: &[Arc<Block>]) -> Message {
    let role = if blocks[0].role == Role::Assistant { "assistant" } else { "user" };
    let texts: Vec<&str> = blocks.iter().map(|b| &*b.text).collect();
    Message::text(role, texts.join("\n"))
}

fn messages(blocks: &[Arc<Block>]) -> Vec<Message> {
    groups(blocks).into_iter().map(|g| message(&blocks[g])).collect()
}

#[async_trait]
impl Strategy for Aider {
    fn admit(&self, mut raw: Draft) -> Draft {
        let name = raw.call.as_ref().map(|c| c.name.clone()).unwrap_or_default();
        match raw.kind {
            BlockKind::Call => {
                raw.text = format!("{name} {}", raw.text).into();
                raw.kind = BlockKind::Assistant;
                raw.call = None;
            }
            BlockKind::Output => {
                let failed = if raw.is_error { " failed" } else { "" };
                raw.text = format!("{name}{failed}:\n{}", raw.text).into();
                (raw.kind, raw.role, raw.is_error) = (BlockKind::User, Role::User, false);
                raw.call = None;
            }
            _ => {}
        }
        raw.splits.clear();
        raw
    }

    async fn on_start(&mut self, s: &mut Engine) {
        if let Some(p) = self.pending.take() {
            s.world().cancel(p.task);
        }
        self.edited = false;
        self.chunks = Chunks {
            system: s.fixed.base.iter().map(|b| b.redraft(|d| d.role = Role::System)).collect(),
            readonly_files: self.assented(&s.fixed.context),
            repo: self.assented(&s.fixed.repo_map),
            chat_files: self.assented(&s.fixed.files),
            ..Chunks::default()
        };
        self.show(s);
    }

    async fn on_restart(&mut self, s: &mut Engine) {
        self.on_start(s).await;
        if self.restore {
            self.chunks.done = self.restored(s);
            self.show(s);
            // Nothing is appended behind this one, so its summary holds even as shipped.
            self.summarize_start(s).await;
        }
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        self.sync(s);
        self.summarize_end(s).await;
        let (believed, limit) = (s.context.tokens(), Self::max_input(s));
        if believed >= limit {
            s.note(Event::Trigger { check: "check_tokens", believed, billed: believed, limit });
            let answer = if self.decline { "no" } else { "yes" };
            s.note(Event::Intervention(format!("{believed} tokens for a window of {limit}: send anyway? {answer}")));
            if self.decline {
                return Flow::FailTurn(format!("not sent: {believed} tokens do not fit into {limit}"));
            }
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.tools = None;
        let explicit = matches!(s.model.cache, CacheRule::Explicit { .. });
        r.breakpoints = if self.cache_prompts && explicit { self.chunks.breakpoints() } else { Vec::new() };
        let reminder = Self::own(BlockKind::Reminder, Role::System, &self.words.reminder);
        if self.reminder_fits(s, &reminder) {
            r.blocks.push(reminder);
        }
        r
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> Flow {
        self.edited |= reply.parts.iter().any(|p| matches!(p, ReplyPart::Call { name, .. } if is_edit(name)));
        Flow::Proceed
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        self.sync(s);
        if std::mem::take(&mut self.edited) {
            self.move_back(s).await;
        }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let passing = matches!(e.kind, ErrorKind::RateLimited | ErrorKind::Server | ErrorKind::Stream);
        if passing && attempt <= ATTEMPTS {
            return Flow::Again;
        }
        if e.is_overflow() {
            // The program answers in the model's place and leaves everything as it is (facts §1.2).
            let block = s.synthetic(BlockKind::Assistant, Role::Assistant, self.words.too_long.clone(), vec![]);
            s.context.push(block);
        }
        Flow::FailTurn(e.to_string())
    }

    async fn on_idle(&mut self, s: &mut Engine, _gap_ms: u64) {
        // A second step may start while nobody waits; the program's worker does the same.
        self.sync(s);
        while self.advance(s, false).await {}
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.sync(s);
        let stays = |b: &Arc<Block>| b.origin.iter().map(|o| o.message).min().unwrap_or(b.message) <= to;
        self.chunks.done.retain(stays);
        self.chunks.cur.retain(stays);
        self.show(s);
    }
}

#[cfg(test)]
#[path = "aider_tests.rs"]
mod tests;
