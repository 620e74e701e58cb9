//! Background summary of the finished history (docs/sources/aider.md §1.2).

use std::sync::Arc;

use ctxbench_core::Millis;
use ctxbench_core::block::{Block, BlockKind, MessageId, Role};
use ctxbench_core::compaction::{CompactionKind, Transcript, ephemeral_block, origins};
use ctxbench_core::engine::Engine;
use ctxbench_core::host::{Event, Task};
use ctxbench_core::model::find;
use ctxbench_core::request::{Phase, Request};

use super::{AiderProgram, groups, messages};
use crate::aider::summary::{
    Ending, Job, JobStep, LineContent, SummaryRules, head_limit, summarize_end, too_big,
};

/// Interval between two checks for an answer, ms. The program's worker waits continuously; one
/// second is close enough.
const LOOK_MS: Millis = 1_000;

/// Summary in progress.
pub(super) struct PendingSummary {
    pub(super) task: Task,
    /// Time of the next check for its answer if nothing happens before, ms of virtual time.
    pub(super) look_at: Millis,
    request: Request,
    job: Job,
    /// Finished history that the summary covers.
    snapshot: Vec<Arc<Block>>,
    /// Models not yet used at this step.
    fallback: Vec<Arc<str>>,
    /// Text of the request, for the next model.
    asked: Transcript,
}

impl AiderProgram {
    /// Returns the input limit of the first model without the reserve, both scaled.
    fn head_limit(&self, first: &str) -> i64 {
        head_limit(find(first).ok().map(|m| m.input_limit.unwrap_or(m.window)), self.scale)
    }

    pub(super) async fn summarize_start(&mut self, s: &mut Engine) {
        let budget = self.budget(s);
        if !too_big(&messages(&self.chunks.done), budget, self.behaviour.count) {
            return;
        }
        // The program starts its worker even if the summary in progress makes the history small
        // enough again.
        self.summarize_end(s).await;
        let snapshot = self.chunks.done.clone();
        let messages = messages(&snapshot);
        let believed = messages.iter().map(|m| self.behaviour.count.message_tokens(m)).sum();
        s.note(Event::Trigger {
            check: "summarize_start",
            believed,
            billed: s.tokens_of(&snapshot),
            limit: budget as u64,
        });
        let models = self.models(s);
        let rules = SummaryRules {
            max_tokens: budget,
            head_limit: self.head_limit(&models[0]),
            prefix: self.prefix.to_string(),
            split_rules: self.behaviour.split_rules,
        };
        let mut job = Job::new(messages, rules);
        if let Some(JobStep::Ask(text)) = job.start(self.behaviour.count) {
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
        text: Transcript,
        mut models: Vec<Arc<str>>,
    ) -> PendingSummary {
        let model = models.remove(0);
        let blocks = vec![
            ephemeral_block(BlockKind::Base, Role::System, self.words.summary_prompt.clone()),
            text.clone()
                .draft(BlockKind::SummaryPrompt, Role::User)
                .build(MessageId(u32::MAX), vec![]),
        ];
        let mut request = s.summary_request(Phase::Background, blocks, false);
        request.model = s.model.named(&model);
        request.breakpoints.clear();
        let task = match before {
            Some(before) => s.spawn_next(before, &request).await,
            None => s.spawn(&request).await,
        };
        PendingSummary {
            task,
            look_at: s.now() + LOOK_MS,
            request,
            job,
            snapshot,
            fallback: models,
            asked: text,
        }
    }

    /// Takes an answer if it is ready. Returns true while more requests follow.
    pub(super) async fn advance(&mut self, s: &mut Engine, wait: bool) -> bool {
        let Some(mut p) = self.pending.take() else { return false };
        let Some(result) = s.collect(p.task, &p.request, wait).await else {
            p.look_at = s.now() + LOOK_MS;
            self.pending = Some(p);
            return false;
        };
        let text = result.ok().and_then(|r| r.text());
        let step = match text {
            Some(t) => p.job.answer(&t, self.behaviour.count),
            None if p.fallback.is_empty() => None,
            None => {
                self.pending =
                    Some(self.ask(s, Some(p.task), (p.job, p.snapshot), p.asked, p.fallback).await);
                return true;
            }
        };
        match step {
            Some(JobStep::Ask(text)) => {
                let models = self.models(s);
                self.pending =
                    Some(self.ask(s, Some(p.task), (p.job, p.snapshot), text, models).await);
                true
            }
            Some(JobStep::Done) => {
                self.finish(s, p.task, p.snapshot, Some(&p.job));
                false
            }
            None => {
                self.finish(s, p.task, p.snapshot, None);
                false
            }
        }
    }

    /// Waits for the summary and applies or discards it (docs/sources/aider.md §1.2,
    /// `summarize_end`).
    pub(super) async fn summarize_end(&mut self, s: &mut Engine) {
        while self.advance(s, true).await {}
    }

    fn finish(&mut self, s: &mut Engine, task: Task, snapshot: Vec<Arc<Block>>, job: Option<&Job>) {
        if job.is_none() {
            s.unusable(task);
        }
        let same = |a: &[Arc<Block>]| a.iter().map(|b| (b.message, b.hash)).collect::<Vec<_>>();
        let (done, covered) = (same(&self.chunks.done), same(&snapshot));
        // Determines the number of blocks that stay; the blocks themselves are added below.
        let kept = match summarize_end(&done, &covered, job.map(|_| Vec::new()), self.as_released) {
            Ending::Applied(kept) => kept.len(),
            Ending::Discarded => {
                if job.is_some() {
                    s.stale(task);
                }
                return;
            }
            Ending::Emptied => {
                self.chunks.done.clear();
                // No call is separated from its result, so the change is always valid.
                let _ = s.compacted(
                    CompactionKind::Drop,
                    "emptied",
                    Phase::Background,
                    self.chunks.all(),
                );
                return;
            }
        };
        let Some((job, summary)) = job.and_then(|j| j.summary().map(|m| (j, m))) else { return };
        let groups = groups(&snapshot);
        let from = groups.get(job.tail()).map_or(snapshot.len(), |g| g.start);
        let origin = origins(&snapshot[..from]);
        let text = match &summary.content {
            LineContent::Text(t) => &**t,
            _ => "",
        };
        let mut new = vec![s.synthetic(BlockKind::Summary, Role::User, text, origin)];
        new.extend_from_slice(&snapshot[from..]);
        if self.behaviour.own_messages && new.last().is_some_and(|b| b.role != Role::Assistant) {
            new.push(s.synthetic(
                BlockKind::Assistant,
                Role::Assistant,
                self.words.ok.clone(),
                vec![],
            ));
        }
        let rest = self.chunks.done.len() - kept;
        new.extend_from_slice(&self.chunks.done[rest..]);
        self.chunks.done = new;
        let _ =
            s.compacted(CompactionKind::Summarise, "summary", Phase::Background, self.chunks.all());
    }
}
