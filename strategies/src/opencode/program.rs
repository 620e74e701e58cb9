//! OpenCode as released: 1.18, and 1.3 (docs/sources/opencode.md; comments name the sections).
//!
//! There are two layers. Old tool results are cleared after a turn, if enabled. When the usage that
//! the provider reported reaches the usable window, a summary request with a separate system prompt
//! gets the head as one text transcript; a synthetic message then asks the model to continue.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::block::{Block, BlockKind, MessageId, Origins, Role};
use ctxbench_core::compaction::{CompactionKind, PruneRule, Transcript, is_reply};
use ctxbench_core::engine::Engine;
use ctxbench_core::host::{Event, Incoming};
use ctxbench_core::model;
use ctxbench_core::request::{ErrorKind, ModelError, Phase, Reply, Request};
use ctxbench_core::settings::scale_tokens;
use ctxbench_core::strategy::{Flow, ReplyFlow, Strategy, Unsupported};
use ctxbench_core::tokens::utf16_div4_round;

use super::log::{LogMessage, MessageLog, attachment_note};
use super::request::{breakpoints, limits};
use super::rules::{
    BUFFER, ModelLimits, OUTPUT_CAP, PruneMessage, RETRIES, filter_compacted, is_overflow,
    is_retryable, max_output, overflows, prune, prune_rule, select_tail, size_of, tail_budget,
    usable, used,
};
use super::settings::OpenCodeSettings;
use super::words::OpenCodeWords;
use crate::shared::{is_fixed, joined, summary_base};

pub(crate) struct OpenCodeProgram {
    settings: OpenCodeSettings,
    /// True for 1.3: the summariser gets the whole conversation, and no tail stays.
    old: bool,
    prune: bool,
    rule: PruneRule,
    /// Limits of the summary model if it differs from the session's model.
    summary_limits: Option<ModelLimits>,
    cap: u64,
    buffer: u64,
    words: OpenCodeWords,
    log: MessageLog,
    last_count: u64,
    /// Number of blocks of the view that the newest count covers; `None` after the view changed.
    counted: Option<usize>,
    /// A requested compaction that did not finish.
    pending: Option<Task>,
}

/// A compaction in the form in which its marker stores it.
#[derive(Clone, Copy)]
struct Task {
    marker: MessageId,
    /// Whether the program started the compaction itself. If so, it asks the model to continue.
    auto: bool,
    /// True if the provider refused the request.
    overflow: bool,
}

/// Outcome of a compaction.
#[derive(PartialEq, Eq)]
enum CompactionOutcome {
    Continue,
    /// Complete, without a message to the model: the summary answers the newest message.
    Answered,
    Stop,
}

impl OpenCodeProgram {
    pub(crate) fn new(old: bool, s: OpenCodeSettings, words: OpenCodeWords, scale: f64) -> Self {
        let known = s.model.as_deref().and_then(|m| model::find(m).ok()).map(|m| m.scaled(scale));
        let context = s.model_context.or(known.as_ref().map(|m| m.window));
        let output = s.model_output.or(known.as_ref().map(|m| m.max_output));
        OpenCodeProgram {
            old,
            prune: s.prune.unwrap_or(old),
            rule: prune_rule(&s),
            summary_limits: s.model.as_ref().and(context.zip(output)).map(|(context, output)| {
                ModelLimits {
                    context,
                    output,
                    input: s.model_input.or(known.as_ref().and_then(|m| m.input_limit)),
                }
            }),
            cap: scale_tokens(OUTPUT_CAP, scale),
            buffer: scale_tokens(BUFFER, scale),
            words: words.headed(s.prompt).hooked(&s),
            log: MessageLog::default(),
            last_count: 0,
            counted: None,
            pending: None,
            settings: s,
        }
    }

    fn usable(&self, s: &Engine) -> u64 {
        usable(limits(s), self.settings.reserved, self.cap, self.buffer)
    }

    fn overflows(&self, s: &Engine, count: u64) -> bool {
        overflows(self.settings.auto, s.model.window, self.usable(s), count)
    }

    /// Stores a marker and runs the compaction.
    async fn compaction(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        auto: bool,
        overflow: bool,
    ) -> CompactionOutcome {
        self.log.sync(s);
        let marker = s.synthetic(BlockKind::Marker, Role::User, self.words.marker.clone(), vec![]);
        let parent = marker.message;
        self.log.push(LogMessage::marker(marker));
        self.process(s, phase, Task { marker: parent, auto, overflow }, parent).await
    }

    /// Summarises the head, keeps the tail, and shows the result (docs/sources/opencode.md §3.2,
    /// §3.3). The parent is the marker, or the newest user message if the compaction is older than
    /// that message.
    async fn process(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        task: Task,
        parent: MessageId,
    ) -> CompactionOutcome {
        self.pending = None;
        let view = filter_compacted(&self.log.stored());
        let at_parent = view.iter().position(|&i| self.log[i].id() == parent).unwrap_or(view.len());
        let replay = if task.overflow { self.replay_point(&view[..at_parent]) } else { None };
        let mut messages = view[..replay.unwrap_or(view.len())].to_vec();
        if !self.old
            && messages
                .last()
                .is_some_and(|&i| self.log[i].id() == parent && self.log[i].is_marker())
        {
            messages.pop();
        }
        let prior = if self.old { None } else { self.strip_compactions(&mut messages) };
        let tail = if self.old { None } else { self.tail_start(s, &messages) };
        let head = &messages[..tail.unwrap_or(messages.len())];
        let (prior, prior_origin) = prior.unzip();
        let prior_origin = prior_origin.unwrap_or_default();
        let request = self.summary_request(s, phase, head, prior);
        let failed = match self.ask(s, &request).await {
            Ok(reply) if !reply.has_calls() => {
                let text = reply.text().unwrap_or_default();
                // The new summary covers the head and the parts that the previous summary covered.
                let covered = head.iter().flat_map(|&i| self.log[i].blocks.iter());
                let covered = covered.map(|b| &b.origin).chain([&prior_origin]);
                let origin: Origins = covered.collect();
                let summary = s.synthetic(BlockKind::Summary, Role::Assistant, text, origin);
                let tail_id = tail.map(|t| self.log[messages[t]].id());
                self.log.set_tail(parent, tail_id);
                self.log.push(LogMessage::summary(summary, parent));
                None
            }
            // A refusal for length ends the summary message; anything else leaves it open and the
            // task pending (docs/sources/opencode.md §3.4).
            Ok(_) => Some(false),
            // The end of the session is not a failure.
            Err(e) if e.kind == ErrorKind::SessionEnd => return CompactionOutcome::Stop,
            Err(e) => Some(is_overflow(&e)),
        };
        if let Some(finished) = failed {
            self.log.push(LogMessage::failed_summary(s, parent, finished));
            self.pending = (!finished).then_some(task);
            self.refresh_view(s);
            s.note(Event::CompactionFailed { mechanism: "summary", dangling: true });
            return CompactionOutcome::Stop;
        }
        let mut outcome = CompactionOutcome::Answered;
        if task.auto {
            match replay {
                Some(at) => {
                    self.replay(s, view[at]);
                    outcome = CompactionOutcome::Continue;
                }
                None if !self.settings.autocontinue => {}
                None => {
                    let text =
                        if task.overflow { &self.words.go_on_overflow } else { &self.words.go_on };
                    let block = s.synthetic(BlockKind::Continue, Role::User, text.clone(), vec![]);
                    self.log.push(LogMessage::user(block));
                    outcome = CompactionOutcome::Continue;
                }
            }
        }
        self.set_view(s, "summary", CompactionKind::Summarise, phase);
        outcome
    }

    /// Sends a summary request. Retries transient failures.
    async fn ask(&self, s: &mut Engine, request: &Request) -> Result<Reply, ModelError> {
        let mut retries = 0;
        loop {
            match s.send(request).await {
                Err(e) if is_retryable(&e) && retries < RETRIES => retries += 1,
                result => return result,
            }
        }
    }

    /// Returns the position of the nearest earlier user message, if another one precedes it.
    fn replay_point(&self, messages: &[usize]) -> Option<usize> {
        let real = |&i: &usize| self.log[i].is_user() && !self.log[i].is_marker();
        let at = messages.iter().rposition(real)?;
        messages[..at].iter().any(real).then_some(at)
    }

    /// Repeats a user message as one message with its parts. Files become notes.
    fn replay(&mut self, s: &mut Engine, i: usize) {
        let parts = self.log[i].blocks.iter().flat_map(|b| match b.media {
            Some(_) => vec![attachment_note(b)],
            None => b.parts().map(str::to_string).collect(),
        });
        let (text, splits) = joined(&parts.collect::<Vec<_>>());
        let block = s.synthetic(BlockKind::ReplayedUser, Role::User, text, self.log[i].origin());
        self.log.push(LogMessage::user(block.map_draft(|d| d.splits = splits)));
    }

    /// Removes finished marker-summary pairs and returns the text of the last summary by position:
    /// if a tail contains an older pair, that pair's summary is passed on and the newer one is
    /// lost.
    fn strip_compactions(&self, messages: &mut Vec<usize>) -> Option<(String, Origins)> {
        let marker_of = |i: usize| {
            let parent = self.log[i].stored.parent.filter(|_| self.log[i].is_summary())?;
            messages
                .iter()
                .copied()
                .find(|&k| self.log[k].id() == parent && self.log[k].is_marker())
        };
        let pairs: Vec<(usize, usize)> =
            messages.iter().filter_map(|&i| marker_of(i).map(|m| (m, i))).collect();
        let hidden: HashSet<usize> = pairs.iter().flat_map(|&(m, i)| [m, i]).collect();
        messages.retain(|i| !hidden.contains(i));
        let last = &self.log[pairs.last()?.1];
        Some((last.text(), last.origin())).filter(|(text, _)| !text.is_empty())
    }

    fn tail_start(&self, s: &Engine, messages: &[usize]) -> Option<usize> {
        let set = &self.settings;
        let usable = match self.summary_limits {
            Some(l) => usable(l, self.settings.reserved, self.cap, self.buffer),
            None => self.usable(s),
        };
        let budget = tail_budget(usable, set.preserve_recent_tokens, set.tail_least, set.tail_most);
        select_tail(&self.log.turns(messages), set.tail_turns.map(|n| n as i64), budget)
    }

    fn summary_request(
        &self,
        s: &Engine,
        phase: Phase,
        head: &[usize],
        prior: Option<String>,
    ) -> Request {
        let text = match self.old {
            true => Transcript::from(&*self.words.old_prompt),
            false if self.settings.hook_prompt.is_some() => {
                self.words.prompt_of_plugin(&self.log.transcript(head))
            }
            false => self.words.prompt(&self.log.transcript(head), prior.as_deref()),
        };
        let mut blocks = summary_base(s, Role::System, &self.words.summary_system);
        if self.old {
            blocks.extend(head.iter().flat_map(|&i| self.log[i].shown_without_media()));
        }
        let text = text.draft(BlockKind::SummaryPrompt, Role::User);
        blocks.push(text.build(MessageId(u32::MAX), vec![]));
        let mut r = s.summary_request(phase, blocks, false);
        if let Some(m) = &self.settings.model {
            r.model = s.model.named(m);
        }
        r.max_tokens = Some(max_output(self.summary_limits.unwrap_or(limits(s)), self.cap));
        r.breakpoints = breakpoints(s, &r.blocks);
        r
    }

    /// Shows the stored messages as the program would send them.
    fn set_view(
        &mut self,
        s: &mut Engine,
        mechanism: &'static str,
        kind: CompactionKind,
        phase: Phase,
    ) {
        let blocks = self.view(s);
        self.counted = None;
        // Whole messages are removed, and calls share the message of their results, so the edit is
        // always valid.
        let _ = s.compacted(kind, mechanism, phase, blocks);
    }

    /// Sets the view without a compaction event: a failed compaction leaves its marker.
    fn refresh_view(&mut self, s: &mut Engine) {
        let blocks = self.view(s);
        self.counted = None;
        let _ = s.set_view(blocks);
    }

    fn view(&self, s: &Engine) -> Vec<Arc<Block>> {
        let mut blocks: Vec<Arc<Block>> =
            s.context.blocks().iter().filter(|b| is_fixed(b)).cloned().collect();
        blocks.extend(
            filter_compacted(&self.log.stored()).into_iter().flat_map(|i| self.log[i].blocks()),
        );
        blocks
    }

    /// Clears old tool results: all messages, newest first, the last two user turns left alone
    /// (docs/sources/opencode.md §1).
    fn prune(&mut self, s: &mut Engine) {
        self.log.sync(s);
        let messages: Vec<PruneMessage<'_>> =
            (0..self.log.count()).map(|i| self.log[i].for_pruning()).collect();
        let chosen =
            prune(&messages, self.prune.then_some(self.rule), size_of(self.settings.count));
        if chosen.is_empty() {
            return;
        }
        for (i, nth) in chosen {
            self.log.clear(i, nth);
        }
        self.set_view(s, "prune", CompactionKind::Clear, Phase::PostTurn);
    }

    /// Estimates the next request: the provider's count plus an estimate of the later blocks
    /// (docs/sources/opencode-vs-claude-code.md §10.5).
    fn believed(&self, s: &Engine) -> u64 {
        let blocks = s.context.blocks();
        let estimate = |blocks: &mut dyn Iterator<Item = &Arc<Block>>| {
            blocks.map(|b| utf16_div4_round(&b.text)).sum::<u64>()
        };
        match self.counted.filter(|n| *n <= blocks.len()) {
            // The reply itself is in the count.
            Some(n) => self.last_count + estimate(&mut blocks[n..].iter().filter(|b| !is_reply(b))),
            None => estimate(&mut blocks.iter()) + s.fixed.tools.as_ref().map_or(0, |t| t.o200k()),
        }
    }

    /// Returns the phase of the turn: before its first reply, or between its steps.
    fn moment(s: &Engine) -> Phase {
        let said = s
            .context
            .blocks()
            .last()
            .is_some_and(|b| matches!(b.kind, BlockKind::User | BlockKind::Image));
        if said { Phase::PreTurn } else { Phase::MidTurn }
    }

    /// Gives up a request. Finished messages are pruned, as after every loop
    /// (docs/sources/opencode.md §1).
    fn give_up(&mut self, s: &mut Engine, e: &ModelError) -> Flow {
        self.log.sync(s);
        self.log.push_failed_reply(s);
        self.prune(s);
        Flow::FailTurn(e.to_string())
    }

    /// Ends the loop after a failed compaction.
    fn stop(&mut self, s: &mut Engine) -> Flow {
        self.prune(s);
        Flow::FailTurn(
            "the summary for a compaction could not be had; the history stays as it is".into(),
        )
    }
}

#[async_trait]
impl Strategy for OpenCodeProgram {
    async fn on_start(&mut self, s: &mut Engine) {
        self.log.clear_all(s);
        (self.pending, self.counted, self.last_count) = (None, None, 0);
        s.show_fixed();
    }

    async fn on_user(&mut self, s: &mut Engine, _msg: &Incoming) -> Flow {
        self.log.sync(s);
        if self.log.close_calls(s) {
            self.refresh_view(s);
        }
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        if self.log.sync(s) {
            // The counted blocks precede the incoming message and do not change.
            let blocks = self.view(s);
            let _ = s.set_view(blocks);
        }
        // A compaction that never finished is still waiting; it now answers the new user message
        // (docs/sources/opencode.md §3.4).
        if let Some(task) = self.pending
            && let Some(parent) = self.log.newest_user()
        {
            return match self.process(s, Phase::PreTurn, task, parent).await {
                CompactionOutcome::Stop => self.stop(s),
                CompactionOutcome::Continue => Flow::Proceed,
                // Without a synthetic message after it the summary itself answers the newest
                // message, and the loop ends (docs/sources/opencode.md §3.1).
                CompactionOutcome::Answered => Flow::EndTurn,
            };
        }
        // The step was made in another window or restored by a rewind (docs/sources/opencode.md
        // §2b).
        let newest = self.log.newest_finished().map(|e| (e.stored.summary, e.used));
        let usable = self.usable(s);
        let (check, believed, limit) = match (newest, self.settings.proactive) {
            (Some((false, used)), _) if self.overflows(s, used) => ("newest_step", used, usable),
            (_, Some(share)) if self.settings.auto && s.model.window > 0 => {
                ("proactive", self.believed(s), (usable as f64 * share) as u64)
            }
            _ => return Flow::Proceed,
        };
        if check == "proactive" && believed <= limit {
            return Flow::Proceed;
        }
        s.trigger(check, believed, limit);
        match self.compaction(s, Self::moment(s), true, false).await {
            CompactionOutcome::Continue => Flow::Proceed,
            CompactionOutcome::Answered => Flow::EndTurn,
            CompactionOutcome::Stop => self.stop(s),
        }
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        // 1.3 wraps a user message that arrived while the model was working, until a reply has
        // arrived (docs/sources/opencode.md §10, 1.3.2).
        if let (true, Some(b)) =
            (self.old, r.blocks.last_mut().filter(|b| b.kind == BlockKind::ReplayedUser))
        {
            let (open, close) = (&self.words.wrapper_open, &self.words.wrapper_close);
            let wrapped: Vec<_> = b.parts().map(|t| format!("{open}{t}{close}")).collect();
            let (text, splits) = joined(&wrapped);
            *b = b.map_draft(|d| (d.text, d.splits) = (text.into(), splits));
        }
        r.max_tokens = Some(max_output(limits(s), self.cap));
        r.breakpoints = breakpoints(s, &r.blocks);
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.last_count = used(&reply.usage);
        self.counted = Some(s.context.blocks().len());
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        self.log.sync(s);
        self.log.note_used(self.last_count);
        if !self.overflows(s, self.last_count) {
            return Flow::Proceed;
        }
        s.trigger("step_finish", self.last_count, self.usable(s));
        let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
        match self.compaction(s, phase, true, false).await {
            CompactionOutcome::Continue => Flow::Again,
            CompactionOutcome::Answered => Flow::EndTurn,
            CompactionOutcome::Stop => self.stop(s),
        }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if is_retryable(e) && attempt <= RETRIES {
            return Flow::Again;
        }
        if !is_overflow(e) || !self.settings.auto {
            return self.give_up(s, e);
        }
        self.log.sync(s);
        self.log.push_failed_reply(s);
        s.trigger("provider_overflow", s.model.window, self.usable(s));
        match self.compaction(s, Phase::MidTurn, true, true).await {
            CompactionOutcome::Continue => Flow::Again,
            CompactionOutcome::Answered => Flow::EndTurn,
            CompactionOutcome::Stop => self.stop(s),
        }
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        self.prune(s);
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.log.sync(s);
        self.log.rewind(to);
        self.pending = self.pending.filter(|t| self.log.is_marker(t.marker));
        self.refresh_view(s);
    }

    async fn compact(
        &mut self,
        s: &mut Engine,
        _instructions: Option<&str>,
    ) -> Result<(), Unsupported> {
        self.compaction(s, Phase::StandaloneTurn, false, false).await;
        Ok(())
    }
}
