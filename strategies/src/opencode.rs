//! OpenCode: the head of the session becomes a summary behind a marker message, the newest steps stay as they are.
//!
//! Follows release 1.18 (facts/opencode.md, sections named at the constants). Two layers: old tool results are cleared after a
//! turn (only if switched on), and when the usage that the provider reported reaches the usable window, the head goes as one
//! text transcript to a summary request with a system prompt of its own; a synthetic message then asks the model to go on.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Origin, Role};
use ctxbench_core::compaction::PruneRule;
use ctxbench_core::descriptor::Build;
use ctxbench_core::engine::{Engine, Incoming};
use ctxbench_core::provider::{self, Provider};
use ctxbench_core::record::CompactionKind;
use ctxbench_core::request::{ModelError, Phase, Reply, Request};
use ctxbench_core::settings::scale_tokens;
use ctxbench_core::strategy::{Flow, Strategy, Unsupported};

use crate::opencode_log::{Entry, Log};
use crate::opencode_rules::{
    BUFFER, Limits, OUTPUT_CAP, PruneMessage, filter_compacted, max_output, overflows, prune, prune_rule, select_tail, tail_budget, usable,
};

/// Builds the strategy.
pub fn build(b: &Build<'_>) -> Box<dyn Strategy> {
    let s = b.settings;
    let text = |name: &str| b.wording.get(&format!("opencode.{name}"));
    let old = b.version == "1.3";
    let known = s.word("model").and_then(|m| provider::find(m).ok()).map(|m| m.scaled(b.scale));
    let context = s.int("model_context").or(known.as_ref().map(|m| m.window));
    let output = s.int("model_output").or(known.as_ref().map(|m| m.max_output));
    Box::new(OpenCode {
        auto: s.flag("auto"),
        old,
        prune: s.given_flag("prune").unwrap_or(old),
        rule: prune_rule(s),
        reserved: s.int("reserved"),
        tail_turns: s.int("tail_turns").map(|n| n as i64),
        preserve: s.int("preserve_recent_tokens"),
        tail_bounds: (s.num("tail_least"), s.num("tail_most")),
        summary_model: s.word("model").map(Arc::from),
        summary_limits: s.word("model").and(context.zip(output)).map(|(context, output)| Limits { context, output, input: None }),
        cap: scale_tokens(OUTPUT_CAP, b.scale),
        buffer: scale_tokens(BUFFER, b.scale),
        words: Words {
            system: text("summary_system"),
            intro: text("intro"),
            first: text("first"),
            prior_open: text("prior_open"),
            prior_close: text("prior_close"),
            template: text("template"),
            marker: text("marker"),
            go_on: text("continue"),
            overflow: text("continue_overflow"),
            old_prompt: text("old_prompt"),
            wrapper: (text("wrapper_open"), text("wrapper_close")),
        },
        log: Log::default(),
        last_count: 0,
        pending: None,
    })
}

struct Words {
    system: Arc<str>,
    intro: Arc<str>,
    first: Arc<str>,
    prior_open: Arc<str>,
    prior_close: Arc<str>,
    template: Arc<str>,
    marker: Arc<str>,
    go_on: Arc<str>,
    overflow: Arc<str>,
    old_prompt: Arc<str>,
    wrapper: (Arc<str>, Arc<str>),
}

struct OpenCode {
    auto: bool,
    /// 1.3: the whole conversation goes to the summariser, and no tail stays.
    old: bool,
    prune: bool,
    rule: PruneRule,
    reserved: Option<u64>,
    tail_turns: Option<i64>,
    preserve: Option<u64>,
    tail_bounds: (u64, u64),
    summary_model: Option<Arc<str>>,
    /// Limits of the summary model where it is another one.
    summary_limits: Option<Limits>,
    cap: u64,
    buffer: u64,
    words: Words,
    log: Log,
    last_count: u64,
    /// A compaction that was asked for and never finished: (auto, overflow).
    pending: Option<(bool, bool)>,
}

/// What became of a compaction.
#[derive(PartialEq, Eq)]
enum Outcome {
    Continue,
    Stop,
}

impl OpenCode {
    fn limits(s: &Engine) -> Limits {
        Limits { context: s.model.window, output: s.model.max_output, input: s.model.input_limit }
    }

    fn usable(&self, s: &Engine) -> u64 {
        usable(Self::limits(s), self.reserved, self.cap, self.buffer)
    }

    fn overflows(&self, s: &Engine) -> bool {
        overflows(self.auto, s.model.window, self.usable(s), self.last_count)
    }

    /// Stores a marker and carries the compaction out.
    async fn compaction(&mut self, s: &mut Engine, phase: Phase, auto: bool, overflow: bool) -> Outcome {
        self.log.sync(s);
        let marker = s.synthetic(BlockKind::Marker, Role::User, self.words.marker.clone(), vec![]);
        let parent = marker.message;
        self.log.push(Entry::marker(marker));
        self.process(s, phase, auto, overflow, parent).await
    }

    /// Summarises the head, keeps the tail, and shows the result (facts §3.2, §3.3).
    async fn process(&mut self, s: &mut Engine, phase: Phase, auto: bool, overflow: bool, parent: MessageId) -> Outcome {
        self.pending = None;
        let view = filter_compacted(&self.log.stored());
        let mut messages = view.clone();
        if !self.old && messages.last().is_some_and(|&i| self.log[i].is_marker()) {
            messages.pop();
        }
        let replay = if overflow { self.replay_point(&messages) } else { None };
        if let Some(at) = replay {
            messages.truncate(at);
        }
        let replayed = replay.map(|at| view[at]);
        let prior = if self.old { None } else { self.hide_compactions(&mut messages) };
        let tail = if self.old { None } else { self.tail_start(s, &messages) };
        let head = &messages[..tail.unwrap_or(messages.len())];
        let (prior, prior_origin) = prior.unzip();
        let prior_origin = prior_origin.unwrap_or_default();
        let request = self.summary_request(s, phase, head, prior);
        let reply = match s.send(&request).await {
            Ok(reply) if !reply.has_calls() => reply,
            Ok(_) => {
                self.log.push(Entry::failed_summary(s, parent, false));
                self.pending = Some((auto, overflow));
                self.show_silently(s);
                return Outcome::Stop;
            }
            Err(e) => {
                let finished = e.is_overflow();
                self.log.push(Entry::failed_summary(s, parent, finished));
                self.pending = (!finished).then_some((auto, overflow));
                self.show_silently(s);
                return Outcome::Stop;
            }
        };
        let text = reply.text().unwrap_or_default();
        // The new summary stands for the head and for what the summary before it stood for.
        let origin = head.iter().flat_map(|&i| self.log[i].origin()).chain(prior_origin).collect();
        let summary = s.synthetic(BlockKind::Summary, Role::Assistant, text, origin);
        let tail_id = tail.map(|t| self.log[messages[t]].id());
        self.log.set_tail(parent, tail_id);
        self.log.push(Entry::summary(summary, parent));
        if auto {
            match replayed {
                Some(i) => self.replay(s, i),
                None => {
                    let text = if overflow { format!("{}{}", self.words.overflow, self.words.go_on) } else { self.words.go_on.to_string() };
                    let block = s.synthetic(BlockKind::Continue, Role::User, text, vec![]);
                    self.log.push(Entry::user(block));
                }
            }
        }
        self.show(s, "summary", CompactionKind::Summarise, phase);
        Outcome::Continue
    }

    /// Position of the nearest earlier real user message, if another one stands before it.
    fn replay_point(&self, messages: &[usize]) -> Option<usize> {
        let at = messages.iter().rposition(|&i| self.log[i].is_user() && !self.log[i].is_marker())?;
        messages[..at].iter().any(|&i| self.log[i].is_user() && !self.log[i].is_marker()).then_some(at)
    }

    /// The user message again, as one message with its parts; files become notes. 1.3 wraps it in words of its own.
    fn replay(&mut self, s: &mut Engine, i: usize) {
        let texts: Vec<String> = self.log[i]
            .blocks
            .iter()
            .map(|b| match &b.media {
                Some(m) => format!("[Attached {}: {}]", m.media_type, m.name.as_deref().unwrap_or("file")),
                None if self.old => format!("{}{}{}", self.words.wrapper.0, b.text, self.words.wrapper.1),
                None => b.text.to_string(),
            })
            .collect();
        let block = s.synthetic(BlockKind::ReplayedUser, Role::User, texts.concat(), self.log[i].origin());
        let mut at = 0;
        let splits = texts[..texts.len().saturating_sub(1)].iter().map(|t| {
            at += t.len();
            at
        });
        let splits: Vec<usize> = splits.collect();
        self.log.push(Entry::user(block.redraft(|d| d.splits = splits)));
    }

    /// Takes finished marker-summary pairs out and returns the text of the newest summary.
    fn hide_compactions(&self, messages: &mut Vec<usize>) -> Option<(String, Vec<Origin>)> {
        let mut hidden: HashSet<MessageId> = HashSet::new();
        let mut prior: Option<(MessageId, String, Vec<Origin>)> = None;
        for &i in messages.iter() {
            let e = &self.log[i];
            if e.stored.summary
                && e.stored.finished
                && !e.stored.error
                && let Some(p) = e.stored.parent.filter(|p| self.log.is_marker(*p))
            {
                hidden.extend([p, e.id()]);
                if prior.as_ref().is_none_or(|(id, ..)| *id < e.id()) {
                    prior = Some((e.id(), e.text(), e.origin()));
                }
            }
        }
        messages.retain(|&i| !hidden.contains(&self.log[i].id()));
        prior.map(|(_, text, origin)| (text, origin))
    }

    fn tail_start(&self, s: &Engine, messages: &[usize]) -> Option<usize> {
        let usable = match self.summary_limits {
            Some(l) => usable(l, self.reserved, self.cap, self.buffer),
            None => self.usable(s),
        };
        let budget = tail_budget(usable, self.preserve, self.tail_bounds.0, self.tail_bounds.1);
        select_tail(&self.log.turns(messages), self.tail_turns, budget)
    }

    fn summary_request(&self, s: &Engine, phase: Phase, head: &[usize], prior: Option<String>) -> Request {
        let w = &self.words;
        let transcript = if self.old { String::new() } else { self.log.transcript(head) };
        let text = match &prior {
            _ if self.old => w.old_prompt.to_string(),
            None => format!("{}{transcript}{}{}", w.intro, w.first, w.template),
            Some(p) => format!("{}{transcript}{}{p}{}{}", w.intro, w.prior_open, w.prior_close, w.template),
        };
        let mut blocks = if s.fixed.summary_base.is_empty() {
            vec![Draft::synthetic(BlockKind::Base, Role::System, w.system.clone()).build(MessageId(u32::MAX), vec![])]
        } else {
            s.fixed.summary_base.clone()
        };
        if self.old {
            blocks.extend(head.iter().flat_map(|&i| self.log[i].shown()));
        }
        blocks.push(Draft::synthetic(BlockKind::SummaryPrompt, Role::User, text).build(MessageId(u32::MAX), vec![]));
        let mut r = s.summary_request(phase, blocks, false);
        if let Some(m) = &self.summary_model {
            r.model = m.clone();
        }
        r.max_tokens = Some(max_output(self.summary_limits.unwrap_or(Self::limits(s)), self.cap));
        r.breakpoints = breakpoints(s, &r.blocks);
        r
    }

    /// Shows the stored messages as the program would send them.
    fn show(&self, s: &mut Engine, mechanism: &'static str, kind: CompactionKind, phase: Phase) {
        let blocks = self.sent(s);
        // Messages go whole, and calls stand in the message of their results, so the edit is always valid.
        let _ = s.compacted(kind, mechanism, phase, blocks);
    }

    /// The same where nothing became smaller: a compaction that failed leaves its marker behind.
    fn show_silently(&self, s: &mut Engine) {
        let blocks = self.sent(s);
        let _ = s.context.set(blocks);
    }

    fn sent(&self, s: &Engine) -> Vec<Arc<Block>> {
        let fixed = |b: &&Arc<Block>| matches!(b.kind, BlockKind::Base | BlockKind::Context | BlockKind::RepoMap);
        let mut blocks: Vec<Arc<Block>> = s.context.blocks().iter().filter(fixed).cloned().collect();
        blocks.extend(filter_compacted(&self.log.stored()).into_iter().flat_map(|i| self.log[i].shown()));
        blocks
    }

    /// Clears old tool results: all messages, newest first, the last two user turns left alone (facts §1).
    fn prune(&mut self, s: &mut Engine) {
        self.log.sync(s);
        let messages: Vec<PruneMessage<'_>> = (0..self.log.count()).map(|i| self.log[i].for_pruning()).collect();
        let chosen = prune(&messages, self.prune.then_some(self.rule));
        if chosen.is_empty() {
            return;
        }
        for (i, nth) in chosen {
            self.log.clear(i, nth);
        }
        self.show(s, "prune", CompactionKind::Clear, Phase::PostTurn);
    }
}

/// Anthropic only: the first two system messages and the last two others (facts §6).
fn breakpoints(s: &Engine, blocks: &[Arc<Block>]) -> Vec<usize> {
    if s.model.provider != Provider::Anthropic {
        return Vec::new();
    }
    let systems: Vec<usize> = (0..blocks.len()).filter(|&i| blocks[i].role == Role::System).take(2).collect();
    let ends = |i: usize| {
        i + 1 == blocks.len() || {
            let (a, b) = (&blocks[i], &blocks[i + 1]);
            !(a.message == b.message || (a.role == Role::Tool && b.role == Role::Tool))
        }
    };
    let mut last: Vec<usize> = (0..blocks.len()).rev().filter(|&i| blocks[i].role != Role::System && ends(i)).take(2).collect();
    last.reverse();
    systems.into_iter().chain(last).collect()
}

#[async_trait]
impl Strategy for OpenCode {
    async fn on_user(&mut self, s: &mut Engine, _msg: &Incoming) -> Flow {
        self.log.sync(s);
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        // A compaction that never finished is still waiting; it now answers the new user message (facts §3.4).
        if let Some((auto, overflow)) = self.pending {
            self.log.sync(s);
            if let Some(parent) = self.log.newest_user()
                && self.process(s, Phase::PreTurn, auto, overflow, parent).await == Outcome::Stop
            {
                return Flow::EndTurn;
            }
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        r.max_tokens = Some(max_output(Self::limits(s), self.cap));
        r.breakpoints = breakpoints(s, &r.blocks);
        r
    }

    async fn on_reply(&mut self, _s: &mut Engine, reply: &Reply) -> Flow {
        self.last_count = reply.usage.total();
        Flow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        self.log.sync(s);
        if !self.overflows(s) {
            return Flow::Proceed;
        }
        s.trigger("step_finish", self.last_count, self.usable(s));
        let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
        match self.compaction(s, phase, true, false).await {
            Outcome::Continue => Flow::Again,
            Outcome::Stop => Flow::EndTurn,
        }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if !e.is_overflow() {
            // Retryable errors are tried five times more (facts §2).
            return if attempt <= 5 { Flow::Again } else { Flow::FailTurn(e.to_string()) };
        }
        if !self.auto {
            return Flow::FailTurn(e.to_string());
        }
        self.log.sync(s);
        self.log.push_failed_reply(s);
        s.trigger("provider_overflow", s.model.window, self.usable(s));
        match self.compaction(s, Phase::MidTurn, true, true).await {
            Outcome::Continue => Flow::Again,
            Outcome::Stop => Flow::EndTurn,
        }
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        if self.prune {
            self.prune(s);
        }
    }

    async fn compact(&mut self, s: &mut Engine, _instructions: Option<&str>) -> Result<(), Unsupported> {
        self.compaction(s, Phase::StandaloneTurn, false, false).await;
        Ok(())
    }
}
