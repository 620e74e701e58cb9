//! OpenCode as released: 1.18, and 1.3 (docs/sources/opencode.md; comments name the sections).
//!
//! There are two layers. Old tool results are cleared after a turn, if enabled. When the usage that
//! the provider reported reaches the usable window, a summary request with a separate system prompt
//! gets the head as one text transcript; a synthetic message then asks the model to continue.

use ctxbench_core::model;
use ctxbench_core::prelude::*;

use super::log::{CLEARED, MessageLog, StoredMessage, attachment_note};
use super::rules::{
    CompactionPlan, ModelLimits, OpenCodeSettings, OpenCodeWords, PRUNE_EXEMPT, RETRIES, TailRule,
    breakpoints, filter_compacted, is_overflow, is_retryable, overflows, plan_compaction, prune,
    prune_rule, size_of, tail_budget, used,
};
use crate::descriptor::BuildRequest;
use crate::shared::{is_fixed, joined, summary_base};

pub(crate) struct OpenCodeProgram {
    settings: OpenCodeSettings,
    /// True for 1.3: the summariser gets the whole conversation, and no tail stays.
    old: bool,
    prune: bool,
    /// Limits of the summary model if it differs from the session's model.
    summary_limits: Option<ModelLimits>,
    scale: f64,
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

#[derive(PartialEq, Eq)]
enum CompactionOutcome {
    Continue,
    /// Complete, without a message to the model: the summary answers the newest message.
    Answered,
    Stop,
}

impl OpenCodeProgram {
    pub(crate) fn new(old: bool, b: &BuildRequest<'_>) -> Self {
        let (s, scale) = (b.settings::<OpenCodeSettings>(), b.scale);
        let known = s.model.as_deref().and_then(|m| model::find(m).ok()).map(|m| m.scaled(scale));
        let context = s.model_context.or(known.as_ref().map(|m| m.window));
        let output = s.model_output.or(known.as_ref().map(|m| m.max_output));
        OpenCodeProgram {
            old,
            prune: s.prune.unwrap_or(old),
            summary_limits: s.model.as_ref().and(context.zip(output)).map(|(context, output)| {
                let input = s.model_input.or(known.as_ref().and_then(|m| m.input_limit));
                ModelLimits::new(context, output, input, scale)
            }),
            scale,
            words: b.texts::<OpenCodeWords>().headed(s.prompt).hooked(&s),
            log: MessageLog::default(),
            last_count: 0,
            counted: None,
            pending: None,
            settings: s,
        }
    }

    fn limits(&self, s: &Engine) -> ModelLimits {
        ModelLimits::for_model(&s.model, self.scale)
    }

    fn usable(&self, s: &Engine) -> u64 {
        self.limits(s).usable(self.settings.reserved)
    }

    fn overflows(&self, s: &Engine, count: u64) -> bool {
        overflows(self.settings.auto, s.model.window, self.usable(s), count)
    }

    /// Returns the limits of the verbatim tail; `None` in 1.3, which keeps none.
    fn tail_rule(&self, s: &Engine) -> Option<TailRule> {
        let set = &self.settings;
        let usable = self.summary_limits.unwrap_or(self.limits(s)).usable(set.reserved);
        let budget = tail_budget(usable, set.preserve_recent_tokens, set.tail_least, set.tail_most);
        (!self.old).then_some(TailRule { turns: set.tail_turns.map(|n| n as i64), budget })
    }

    /// Stores a marker and runs the compaction.
    async fn compaction(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        auto: bool,
        overflow: bool,
    ) -> CompactionOutcome {
        let block = s.synthetic(BlockKind::Marker, Role::User, self.words.marker.clone(), vec![]);
        let marker = block.message;
        self.log.0.push(StoredMessage { marker: Some(None), ..StoredMessage::user(block) });
        self.process(s, phase, Task { marker, auto, overflow }, marker).await
    }

    /// Summarises the head, keeps the tail, and shows the result (docs/sources/opencode.md §3.2,
    /// §3.3). `parent` is as in [`plan_compaction`].
    async fn process(
        &mut self,
        s: &mut Engine,
        phase: Phase,
        task: Task,
        parent: MessageId,
    ) -> CompactionOutcome {
        self.pending = None;
        let plan = plan_compaction(&self.log.0, parent, task.overflow, self.tail_rule(s));
        let request = self.summary_request(s, phase, &plan);
        match s.send_retrying(&request, RETRIES.into(), is_retryable).await {
            Ok(reply) if !reply.has_calls() => self.store_summary(s, &plan, parent, &reply),
            // The end of the session is not a failure.
            Err(e) if e.kind == ErrorKind::SessionEnd => return CompactionOutcome::Stop,
            // A refusal for length ends the summary message; anything else leaves it open and the
            // task pending (docs/sources/opencode.md §3.4).
            answer => {
                let finished = answer.is_err_and(|e| is_overflow(&e));
                let failed = StoredMessage::failed(s, Some(parent));
                self.log.0.push(StoredMessage { summary: true, finished, ..failed });
                self.pending = (!finished).then_some(task);
                self.set_view(s, None);
                s.note(Event::CompactionFailed { mechanism: "summary", dangling: true });
                return CompactionOutcome::Stop;
            }
        }
        let goes_on = task.auto && self.ask_to_continue(s, &plan, task);
        self.set_view(s, Some((CompactionKind::Summarise, "summary", phase)));
        if goes_on { CompactionOutcome::Continue } else { CompactionOutcome::Answered }
    }

    fn store_summary(
        &mut self,
        s: &mut Engine,
        plan: &CompactionPlan,
        parent: MessageId,
        reply: &Reply,
    ) {
        let log = &self.log.0;
        // The new summary covers the head and the parts that the previous summary covered.
        let covered = plan.head.iter().chain(&plan.prior).flat_map(|&i| &log[i].blocks);
        let origin: Origins = covered.map(|b| &b.origin).collect();
        let tail = plan.tail.map(|i| log[i].id);
        let text = reply.text().unwrap_or_default();
        let summary = s.synthetic(BlockKind::Summary, Role::Assistant, text, origin);
        if let Some(marker) = self.log.find_marker(parent) {
            marker.marker = Some(tail);
        }
        self.log.0.push(StoredMessage::summary(summary, parent));
    }

    /// Adds the message after a summary that keeps the model going: the refused message again, with
    /// files as notes, or a synthetic one, unless a plugin switches that off. Returns whether there is
    /// one.
    fn ask_to_continue(&mut self, s: &mut Engine, plan: &CompactionPlan, task: Task) -> bool {
        let block = if let Some(replayed) = plan.replay.map(|i| &self.log.0[i]) {
            let parts = replayed.blocks.iter().flat_map(|b| match b.media {
                Some(_) => vec![attachment_note(b)],
                None => b.parts().map(str::to_string).collect(),
            });
            let (text, splits) = joined(&parts.collect::<Vec<_>>());
            let origin = origins(&replayed.blocks);
            let block = s.synthetic(BlockKind::ReplayedUser, Role::User, text, origin);
            block.map_draft(|d| d.splits = splits)
        } else if self.settings.autocontinue {
            let (plain, overflow) = (&self.words.go_on, &self.words.go_on_overflow);
            let text = if task.overflow { overflow } else { plain };
            s.synthetic(BlockKind::Continue, Role::User, text.clone(), vec![])
        } else {
            return false;
        };
        self.log.0.push(StoredMessage::user(block));
        true
    }

    fn summary_request(&self, s: &Engine, phase: Phase, plan: &CompactionPlan) -> Request {
        let (log, words) = (&self.log.0, &self.words);
        let prior = plan.prior.map(|i| log[i].text());
        let text = match self.old {
            true => Transcript::from(&*words.old_prompt),
            false if self.settings.hook_prompt.is_some() => {
                words.prompt_of_plugin(&self.log.transcript(&plan.head))
            }
            false => words.prompt(&self.log.transcript(&plan.head), prior.as_deref()),
        };
        let mut blocks = summary_base(s, Role::System, &words.summary_system);
        if self.old {
            blocks.extend(plan.head.iter().flat_map(|&i| log[i].shown_without_media()));
        }
        blocks.push(text.draft(BlockKind::SummaryPrompt, Role::User).ephemeral());
        let mut r = s.summary_request(phase, blocks, false);
        if let Some(m) = &self.settings.model {
            r.model = s.model.named(m);
        }
        r.max_tokens = Some(self.summary_limits.unwrap_or(self.limits(s)).max_output());
        r.breakpoints = breakpoints(s.model.provider, &r.blocks);
        r
    }

    /// Shows the stored messages as the program would send them: after a compaction, or else without
    /// an event, since a failed compaction leaves its marker.
    fn set_view(
        &mut self,
        s: &mut Engine,
        compaction: Option<(CompactionKind, &'static str, Phase)>,
    ) {
        let blocks = self.view(s);
        self.counted = None;
        // Whole messages are removed, and calls share the message of their results, so the edit is
        // always valid.
        let _ = match compaction {
            Some((kind, mechanism, phase)) => s.compacted(kind, mechanism, phase, blocks),
            None => s.set_view(blocks),
        };
    }

    fn view(&self, s: &Engine) -> Vec<Arc<Block>> {
        let fixed = s.context.blocks().iter().filter(|b| is_fixed(b));
        let sent = filter_compacted(&self.log.0);
        fixed.chain(sent.iter().flat_map(|&i| &self.log.0[i].blocks)).cloned().collect()
    }

    /// Clears old tool results: all messages, newest first, the last two user turns left alone
    /// (docs/sources/opencode.md §1).
    fn prune(&mut self, s: &mut Engine) {
        if !self.prune {
            return;
        }
        let size = size_of(self.settings.count);
        let chosen = prune(&self.log.0, prune_rule(&self.settings), PRUNE_EXEMPT, size);
        for &(message, block) in &chosen {
            let result = &mut self.log.0[message].blocks[block];
            *result = result.with_text(BlockForm::Cleared, CLEARED);
        }
        if !chosen.is_empty() {
            self.set_view(s, Some((CompactionKind::Clear, "prune", Phase::PostTurn)));
        }
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

    /// Returns the loop's next action after a compaction; `go_on` if the model continues.
    fn after_compaction(
        &mut self,
        s: &mut Engine,
        outcome: CompactionOutcome,
        go_on: Flow,
    ) -> Flow {
        match outcome {
            CompactionOutcome::Continue => go_on,
            // Without a synthetic message after it the summary itself answers the newest message,
            // and the loop ends (docs/sources/opencode.md §3.1).
            CompactionOutcome::Answered => Flow::EndTurn,
            CompactionOutcome::Stop => self.fail(
                s,
                "the summary for a compaction could not be had; the history stays as it is".into(),
            ),
        }
    }

    /// Fails the turn. Finished messages are pruned, as after every loop (docs/sources/opencode.md
    /// §1).
    fn fail(&mut self, s: &mut Engine, reason: String) -> Flow {
        self.prune(s);
        Flow::FailTurn(reason)
    }
}

#[async_trait]
impl Strategy for OpenCodeProgram {
    async fn on_start(&mut self, s: &mut Engine) {
        self.log = MessageLog::default();
        (self.pending, self.counted, self.last_count) = (None, None, 0);
        s.show_fixed();
    }

    fn on_recorded(&mut self, s: &mut Engine, id: MessageId) {
        if self.log.record(s, id) {
            // The counted blocks precede the new message and do not change.
            let blocks = self.view(s);
            let _ = s.set_view(blocks);
        }
    }

    async fn on_user(&mut self, s: &mut Engine, _msg: &Incoming) -> Flow {
        if self.log.close_calls(s) {
            self.set_view(s, None);
        }
        Flow::Proceed
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        // A compaction that never finished is still waiting; it now answers the new user message
        // (docs/sources/opencode.md §3.4).
        if let Some(task) = self.pending
            && let Some(parent) = self.log.newest_user()
        {
            let outcome = self.process(s, Phase::PreTurn, task, parent).await;
            return self.after_compaction(s, outcome, Flow::Proceed);
        }
        // The step was made in another window or restored by a rewind (docs/sources/opencode.md
        // §2b).
        let sent = filter_compacted(&self.log.0).into_iter();
        let newest = sent.filter(|&i| !self.log.0[i].user && self.log.0[i].finished).max();
        let newest = newest.map(|i| (self.log.0[i].summary, self.log.0[i].used));
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
        let outcome = self.compaction(s, Self::moment(s), true, false).await;
        self.after_compaction(s, outcome, Flow::Proceed)
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
        r.max_tokens = Some(self.limits(s).max_output());
        r.breakpoints = breakpoints(s.model.provider, &r.blocks);
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.last_count = used(&reply.usage);
        self.counted = Some(s.context.blocks().len());
        ReplyFlow::Proceed
    }

    async fn after_step(&mut self, s: &mut Engine, had_calls: bool) -> Flow {
        if let Some(reply) = self.log.newest_reply() {
            reply.used = self.last_count;
        }
        if !self.overflows(s, self.last_count) {
            return Flow::Proceed;
        }
        s.trigger("step_finish", self.last_count, self.usable(s));
        let phase = if had_calls { Phase::MidTurn } else { Phase::PostTurn };
        let outcome = self.compaction(s, phase, true, false).await;
        self.after_compaction(s, outcome, Flow::Again)
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if is_retryable(e) && attempt <= RETRIES {
            return Flow::Again;
        }
        let failed = StoredMessage::failed(s, self.log.newest_user());
        self.log.0.push(failed);
        if !is_overflow(e) || !self.settings.auto {
            return self.fail(s, e.to_string());
        }
        s.trigger("provider_overflow", s.model.window, self.usable(s));
        let outcome = self.compaction(s, Phase::MidTurn, true, true).await;
        self.after_compaction(s, outcome, Flow::Again)
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        self.prune(s);
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        self.log.rewind(to);
        self.pending = self.pending.filter(|t| self.log.find_marker(t.marker).is_some());
        self.set_view(s, None);
    }

    async fn compact(&mut self, s: &mut Engine, _instructions: Option<&str>) -> Manual {
        self.compaction(s, Phase::StandaloneTurn, false, false).await;
        Ok(())
    }
}
