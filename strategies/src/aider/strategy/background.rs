//! Background summary of the finished history (docs/sources/aider.md §1.2), and keep-alive requests,
//! which send the prompt up to the last cache breakpoint again shortly before the cache entry would
//! expire (§1.4).

use std::mem::take;

use ctxbench_core::model::find;
use ctxbench_core::prelude::*;

use super::{AiderProgram, groups, max_input, messages};
use crate::aider::rules::{AiderSettings, Ending, Job, SummaryRules, ending, head_limit};
use crate::shared::summary_base;

/// Interval between two checks for an answer, ms. The program's worker waits continuously; one
/// second is close enough.
const LOOK_MS: Millis = 1_000;

pub(super) struct PendingSummary {
    pub(super) task: Task,
    /// Time of the next check for its answer if nothing happens before, ms of virtual time.
    pub(super) look_at: Millis,
    request: Request,
    job: Job,
    /// The finished history that the summary covers.
    snapshot: Vec<Arc<Block>>,
    /// Models not yet used at this step.
    fallback: Vec<Arc<str>>,
    /// Text of the request, for the next model.
    asked: Transcript,
}

impl AiderProgram {
    /// Starts a summary if the finished history is larger than its budget.
    pub(super) async fn summarize_start(&mut self, s: &mut Engine) {
        let budget = self.budget(s);
        let tokens = |blocks| messages(blocks).iter().map(self.count().message).sum::<u64>();
        if tokens(&self.chunks.done) as f64 <= budget {
            return;
        }
        // The program starts its worker even if the summary in progress makes the history small
        // enough again.
        self.summarize_end(s).await;
        let snapshot = self.chunks.done.clone();
        s.note(Event::Trigger {
            check: "summarize_start",
            believed: messages(&snapshot).iter().map(self.count().message).sum(),
            billed: s.tokens_of(&snapshot),
            limit: budget as u64,
        });
        let (models, words) = (self.models(s), &self.words);
        let prefix = if self.described { &words.described_prefix } else { &words.summary_prefix };
        let rules = SummaryRules {
            max_tokens: budget,
            head_limit: head_limit(find(&models[0]).ok().map(max_input), self.scale),
            prefix: prefix.to_string(),
            count: self.count(),
            described: self.described,
        };
        let mut job = Job::new(messages(&snapshot), rules);
        if let Some(text) = job.start() {
            self.pending = Some(self.ask(s, None, (job, snapshot), text, models).await);
        }
    }

    /// Starts a request to the first of the models. `before` is the previous request for the same
    /// summary.
    async fn ask(
        &self,
        s: &mut Engine,
        before: Option<Task>,
        (job, snapshot): (Job, Vec<Arc<Block>>),
        asked: Transcript,
        mut models: Vec<Arc<str>>,
    ) -> PendingSummary {
        let model = models.remove(0);
        let mut blocks = summary_base(s, Role::System, &self.words.summary_prompt);
        blocks.push(asked.clone().draft(BlockKind::SummaryPrompt, Role::User).ephemeral());
        let mut request = s.summary_request(Phase::Background, blocks, false);
        request.model = s.model.named(&model);
        request.breakpoints.clear();
        let task = match before {
            Some(before) => s.spawn_next(before, &request).await,
            None => s.spawn(&request).await,
        };
        let look_at = s.now() + LOOK_MS;
        PendingSummary { task, look_at, request, job, snapshot, fallback: models, asked }
    }

    /// Takes an answer if it is ready. Returns true while more requests follow.
    pub(super) async fn advance(&mut self, s: &mut Engine, wait: bool) -> bool {
        let Some(mut p) = self.pending.take() else { return false };
        let Some(result) = s.collect(p.task, &p.request, wait).await else {
            p.look_at = s.now() + LOOK_MS;
            self.pending = Some(p);
            return false;
        };
        let (next, summarised) = match result.ok().and_then(|r| r.text()) {
            Some(answer) => (p.job.answer(&answer).map(|text| (text, self.models(s))), true),
            None if p.fallback.is_empty() => (None, false),
            None => (Some((take(&mut p.asked), take(&mut p.fallback))), false),
        };
        match next {
            Some((text, models)) => {
                let covered = (p.job, p.snapshot);
                self.pending = Some(self.ask(s, Some(p.task), covered, text, models).await);
                true
            }
            None => {
                self.finish(s, p, summarised);
                false
            }
        }
    }

    /// Waits for the summary and applies or discards it (docs/sources/aider.md §1.2,
    /// `summarize_end`).
    pub(super) async fn summarize_end(&mut self, s: &mut Engine) {
        while self.advance(s, true).await {}
    }

    fn finish(&mut self, s: &mut Engine, p: PendingSummary, summarised: bool) {
        let PendingSummary { task, job, snapshot, .. } = p;
        if !summarised {
            s.note_background(task, BackgroundStep::Unusable);
        }
        let same = |a: &[Arc<Block>]| a.iter().map(|b| (b.message, b.hash)).collect::<Vec<_>>();
        let (done, known) = (same(&self.chunks.done), same(&snapshot));
        match ending(&done, &known, summarised, self.as_released) {
            Ending::Discarded if summarised => s.note_background(task, BackgroundStep::Stale),
            Ending::Discarded => {}
            Ending::Emptied => {
                self.chunks.done.clear();
                self.compacted(s, CompactionKind::Drop, "emptied");
            }
            Ending::Applied => {
                let Some(summary) = job.summary() else { return };
                let from = groups(&snapshot).take(job.tail()).map(<[_]>::len).sum();
                let origin = origins(&snapshot[..from]);
                let mut new =
                    vec![s.synthetic(BlockKind::Summary, Role::User, &*summary.text, origin)];
                new.extend_from_slice(&snapshot[from..]);
                if !self.described && new.last().is_some_and(|b| b.role != Role::Assistant) {
                    let ok = self.words.ok.clone();
                    new.push(s.synthetic(BlockKind::Assistant, Role::Assistant, ok, vec![]));
                }
                new.extend_from_slice(&self.chunks.done[snapshot.len()..]);
                self.chunks.done = new;
                self.compacted(s, CompactionKind::Summarise, "summary");
            }
        }
    }

    fn compacted(&self, s: &mut Engine, kind: CompactionKind, mechanism: &'static str) {
        // No call is separated from its result, so the change is always valid.
        let _ = s.compacted(kind, mechanism, Phase::Background, self.chunks.all());
    }
}

/// Schedule of keep-alive requests: the due time, the request, and the number left. The program
/// checks the clock once a second; this delay is not modelled.
#[derive(Debug, Default)]
pub(crate) struct KeepAlive {
    /// Delay between a request and the next keep-alive request, ms.
    delay: Millis,
    next: Millis,
    left: u64,
    /// True if further requests are forbidden until the program ends.
    forbidden: bool,
    request: Option<Request>,
    /// Requests sent, possibly without an answer yet. The conversation does not wait for them.
    sent: Vec<(Task, Request)>,
}

impl KeepAlive {
    /// Restarts the delay and the number of keep-alive requests after a normal request. Does
    /// nothing if the request has no breakpoint.
    pub(crate) fn begin(&mut self, now: Millis, request: &Request, set: &AiderSettings) {
        let (pings, delay) = (set.keepalive_pings, set.keepalive_delay_ms);
        let last = request.breakpoints.last().filter(|_| pings > 0 && !self.forbidden);
        let Some(last) = last else { return };
        let ping = Request {
            purpose: Purpose::Ping,
            max_tokens: Some(1),
            blocks: request.blocks[..=*last].to_vec(),
            ..request.clone()
        };
        (self.delay, self.next, self.left) = (delay, now.saturating_add(delay), pings);
        self.request = Some(ping);
    }

    /// Stops because the program ended. The next one may send requests again.
    pub(crate) fn stop(&mut self) {
        (self.left, self.forbidden) = (0, false);
    }

    /// Stops until the program ends.
    pub(crate) fn forbid(&mut self) {
        (self.left, self.forbidden) = (0, true);
    }

    /// Returns the virtual time of the next request, ms.
    pub(crate) fn due(&self) -> Option<Millis> {
        (self.left > 0).then_some(self.next)
    }

    /// Sends the next keep-alive request in the background.
    pub(crate) async fn send(&mut self, s: &mut Engine) {
        self.settle(s).await;
        let Some(request) = self.request.clone().filter(|_| self.left > 0) else { return };
        self.left -= 1;
        self.next = s.now().saturating_add(self.delay);
        let task = s.spawn(&request).await;
        self.sent.push((task, request));
    }

    /// Collects the answers that have arrived. Ignores failures, as the program does.
    pub(crate) async fn settle(&mut self, s: &mut Engine) {
        for (task, request) in std::mem::take(&mut self.sent) {
            if s.collect(task, &request, false).await.is_none() {
                self.sent.push((task, request));
            }
        }
    }
}
