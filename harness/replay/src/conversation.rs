//! Everything that a replay measures in one conversation, collected while it runs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctxbench_core::host::{Event as Noted, TimedEvent};
use ctxbench_core::prelude::*;
use ctxbench_reports::record::{
    BackgroundRecord, CompactionRecord, FactLife, FactRecord, IntegrityFailure, RequestRecord,
    RequestStatus, RewindRecord, Rule, Status, TriggerRecord,
};
use ctxbench_util::plural::pluralize;

/// The context at each need, by fact and need. Of a need of the user's message, without this message.
pub type NeedContexts = BTreeMap<(String, String), Arc<[Arc<Block>]>>;

/// A conversation that its world measures and the replay takes at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedConversation(Arc<Mutex<Conversation>>);

impl SharedConversation {
    pub(super) fn lock(&self) -> MutexGuard<'_, Conversation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self) -> Conversation {
        std::mem::take(&mut *self.lock())
    }
}

#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Virtual time of the begin, ms.
    pub(super) at_ms: Millis,
    /// Virtual duration, ms.
    pub(super) took_ms: Millis,
    /// Request of the caller with the reply that started this subagent.
    pub(super) by_request: Option<u64>,
    /// Number of recorded replies.
    pub(super) all_steps: u64,
    /// Number of recorded replies that entered the history.
    pub(super) steps: u64,
    /// All pairs of a fact and a need; those that were checked have a request.
    pub(super) facts: Vec<FactRecord>,
    /// Contexts at the needs, if the replay keeps them.
    pub(super) contexts: Option<NeedContexts>,
    /// History of each fact; empty for subagents.
    pub(super) lives: Vec<FactLife>,
    /// Requests in order; the number of a request is its index.
    pub(super) requests: Vec<RequestRecord>,
    /// A line of the trace per request.
    pub(super) trace: Vec<String>,
    /// Sums over all normal requests but the first: tokens shared with the conversation in the
    /// previous one, and tokens of that conversation.
    pub(super) shared_tokens: (u64, u64),
    /// Time spent waiting for compactions, ms.
    pub(super) blocked_ms: Millis,
    pub(super) reread_tokens: u64,
    pub(super) compactions: Vec<CompactionRecord>,
    /// Rules that single requests broke.
    pub(super) integrity: Vec<IntegrityFailure>,
    /// Whether the provider stopped after a compaction and was not asked to continue yet.
    pub(super) stopped: bool,
    /// Other events of the engine, and compactions before the last restart.
    pub(super) noted: Vec<Arc<TimedEvent>>,
    /// Rewinds without their targets and files.
    pub(super) rewound: Vec<RewindRecord>,
    /// Work after each restart: summary calls until the first answer, and waiting for them, ms.
    pub(super) restarts: Vec<(u64, Millis)>,
    /// Whether no normal request followed the last restart yet.
    pub(super) resuming: bool,
    /// How many times the user asked to continue, because fewer replies came than were recorded.
    pub(super) asked_to_go_on: u64,
    /// Error of the last failed turn, for the user.
    pub(super) turn_failed: Option<String>,
    /// Whether the run ended because of too many requests without progress.
    pub(super) livelocked: bool,
    /// Number of the conversation's first request in the run; set at the end, as what follows.
    pub(super) offset: u64,
    pub(super) background: Vec<BackgroundRecord>,
    pub(super) triggers: Vec<TriggerRecord>,
}

impl Conversation {
    /// Begins a request. `resumes` = whether it shows the compaction after which the provider had
    /// stopped, `paused` = whether the provider stopped after a compaction in it.
    pub(super) fn request(&mut self, record: RequestRecord, resumes: bool, paused: bool) {
        if record.purpose == Purpose::Sample {
            if !resumes {
                self.unanswered("the next request does not show the compaction");
            }
            self.stopped = paused;
            self.resuming = false;
        }
        self.requests.push(record);
    }

    /// Adds waiting for a compaction, and the number of summary calls.
    pub(super) fn blocked(&mut self, ms: Millis, calls: u64) {
        self.blocked_ms = self.blocked_ms.saturating_add(ms);
        if let (true, Some(after)) = (self.resuming, self.restarts.last_mut()) {
            after.0 += calls;
            after.1 = after.1.saturating_add(ms);
        }
    }

    /// Ends the conversation; `usd` is the total of the engine's own ledger.
    pub(super) fn end(&mut self, now: Millis, usd: f64) {
        self.took_ms = now.saturating_sub(self.at_ms);
        let compactions_before = self.compactions.len() as u64;
        for unreached in self.facts.iter_mut().filter(|f| f.request.is_none()) {
            unreached.compactions_before = compactions_before;
        }
        self.unanswered("the session ended before the model was asked to continue");
        let sum = self.cost_usd();
        debug_assert!(usd <= sum + 1e-6, "the ledger bills {usd}, the requests {sum}");
    }

    /// Reports a compaction stop that the model was not asked to continue from.
    pub(super) fn unanswered(&mut self, why: &str) {
        if std::mem::take(&mut self.stopped) {
            let (rule, detail) = (Rule::CompactionStop, why.into());
            let request = self.requests.last().map_or(0, |r| r.seq);
            self.integrity.push(IntegrityFailure { request, rule, detail });
        }
    }

    pub(super) fn note(&mut self, event: &Arc<TimedEvent>) {
        if matches!(event.event, Noted::Restart { .. }) {
            self.restarts.push((0, 0));
            self.resuming = true;
        }
        self.noted.push(event.clone());
    }

    /// Iterates over the normal requests.
    pub(super) fn samples(&self) -> impl Iterator<Item = &RequestRecord> + Clone {
        self.requests.iter().filter(|r| r.purpose == Purpose::Sample)
    }

    /// Returns how many times the user had to intervene.
    pub(super) fn interventions(&self) -> u64 {
        let noted = self.noted.iter().filter(|e| matches!(e.event, Noted::Intervention(_)));
        self.asked_to_go_on + noted.count() as u64
    }

    /// Returns the number of requests that wrote summaries, including requests in which the
    /// provider compacted.
    pub(super) fn summary_calls(&self) -> u64 {
        let writes = |r: &&RequestRecord| match r.purpose {
            Purpose::Sample => r.compaction_tokens > 0,
            purpose => purpose == Purpose::Summary,
        };
        self.requests.iter().filter(writes).count() as u64
    }

    /// Returns the size of the largest prompt of an answered normal request, tokens.
    pub(super) fn peak(&self) -> u64 {
        let answered = self.samples().filter(|r| r.status == RequestStatus::Ok);
        // Text that the provider summarised within a request was a separate prompt.
        let prompts = |r: &RequestRecord| {
            r.context_tokens.max(r.input_tokens.saturating_sub(r.context_tokens))
        };
        answered.map(prompts).max().unwrap_or_default()
    }

    pub(super) fn cost_usd(&self) -> f64 {
        self.requests.iter().map(|r| r.cost_usd).sum()
    }

    /// Returns the outcome, with the reason for a failure.
    pub(super) fn status(&self) -> (Status, Option<String>) {
        let broken = self.noted.iter().find_map(|e| match &e.event {
            Noted::StrategyFailed(why) => Some(why.clone()),
            _ => None,
        });
        if broken.is_some() {
            return (Status::Error, broken);
        }
        if self.livelocked {
            let requests = pluralize(self.requests.len(), "request");
            let why = format!("{requests} for {}", pluralize(self.all_steps, "recorded step"));
            return (Status::Livelock, Some(why));
        }
        if self.steps >= self.all_steps {
            return (Status::Completed, None);
        }
        let why = self.turn_failed.clone();
        let why = why.unwrap_or_else(|| "the run ended before the session did".into());
        (if self.overflows() > 0 { Status::Overflow } else { Status::Failed }, Some(why))
    }

    /// Returns the name and version of the program that ran as the strategy, if any.
    pub(super) fn program(&self) -> Option<(String, String)> {
        self.noted.iter().find_map(|e| match &e.event {
            Noted::Program { name, version } => Some((name.clone(), version.clone())),
            _ => None,
        })
    }

    /// Returns how many times the provider refused a prompt as too long.
    pub(super) fn overflows(&self) -> u64 {
        let refused = RequestStatus::Failed(ErrorKind::Overflow);
        self.requests.iter().filter(|r| r.status == refused).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(c: &mut Conversation, paused: bool, resumes: bool) {
        let record = RequestRecord { seq: c.requests.len() as u64, ..RequestRecord::default() };
        c.request(record, resumes, paused);
    }

    #[test]
    fn a_compaction_stop_that_nobody_answers_is_reported() {
        let broken = |then: fn(&mut Conversation)| -> Vec<(u64, Rule)> {
            let mut c = Conversation::default();
            request(&mut c, true, false);
            then(&mut c);
            c.end(0, 0.0);
            c.integrity.iter().map(|i| (i.request, i.rule)).collect()
        };
        let failure = [(0, Rule::CompactionStop)];
        assert_eq!(broken(|c| request(c, false, false)), failure, "it is not shown");
        assert_eq!(broken(|_| {}), failure, "the session ended");
        assert_eq!(broken(|c| c.unanswered("something else happened")), failure, "the turn ended");
        let answered = broken(|c| {
            request(c, false, true);
            c.unanswered("something else happened");
        });
        assert_eq!(answered, []);
    }
}
