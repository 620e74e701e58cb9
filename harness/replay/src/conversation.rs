//! Events of one conversation, and the figures that follow from them alone.

use std::collections::HashSet;
use std::sync::mpsc::Receiver;

use ctxbench_core::Millis;
use ctxbench_core::host::{Event as Noted, TimedEvent};
use ctxbench_core::request::{ErrorKind, Purpose};
use ctxbench_reports::record::{
    CompactionRecord, FactRecord, IntegrityFailure, RequestRecord, RequestStatus, Rule, Status,
    TriggerRecord,
};
use ctxbench_util::plural::pluralize;

use super::events::{Begun, Logged, ReplayEvent, SentRequest};
use super::rewinds::Compared;

#[derive(Debug, Default)]
pub(super) struct Conversation(pub(super) Vec<ReplayEvent>);

/// Splits the log into the main conversation and the subagents. A conversation without events never
/// began.
pub(super) fn conversations(
    log: Receiver<Logged>,
    agents: usize,
) -> (Conversation, Vec<Conversation>) {
    let mut main = Conversation::default();
    let mut others: Vec<Conversation> = Vec::new();
    others.resize_with(agents, Conversation::default);
    for Logged { window, event } in log.try_iter() {
        match window {
            None => main.0.push(event),
            Some(agent) => others[agent as usize].0.push(event),
        }
    }
    (main, others)
}

impl Conversation {
    /// Returns the event that begins the conversation; `None` if it never began.
    pub(super) fn begun(&self) -> Option<&Begun> {
        self.0.iter().find_map(|e| if let ReplayEvent::Begun(b) = e { Some(&**b) } else { None })
    }

    pub(super) fn sent(&self) -> impl Iterator<Item = &SentRequest> {
        self.0
            .iter()
            .filter_map(|e| if let ReplayEvent::Request(s) = e { Some(&**s) } else { None })
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = &RequestRecord> + Clone {
        self.0
            .iter()
            .filter_map(|e| if let ReplayEvent::Request(s) = e { Some(&s.record) } else { None })
    }

    /// Iterates over the normal requests.
    pub(super) fn samples(&self) -> impl Iterator<Item = &RequestRecord> + Clone {
        self.requests().filter(|r| r.purpose == Purpose::Sample)
    }

    /// Returns the events of the engine, in order.
    pub(super) fn noted(&self) -> impl Iterator<Item = &TimedEvent> {
        self.0.iter().filter_map(|e| match e {
            ReplayEvent::Noted(n) => Some(&**n),
            ReplayEvent::Rewound(rewound) => Some(&*rewound.0),
            _ => None,
        })
    }

    /// Returns all rewinds that the run reached.
    pub(super) fn rewound(&self) -> impl Iterator<Item = (&TimedEvent, Compared)> {
        self.0.iter().filter_map(|e| match e {
            ReplayEvent::Rewound(rewound) => Some((&*rewound.0, rewound.1)),
            _ => None,
        })
    }

    fn count(&self, of: impl Fn(&ReplayEvent) -> bool) -> u64 {
        self.0.iter().filter(|e| of(e)).count() as u64
    }

    pub(super) fn steps(&self) -> u64 {
        self.count(|e| matches!(e, ReplayEvent::Step))
    }

    /// Returns all compactions, in order.
    pub(super) fn compacted(&self) -> impl Iterator<Item = &CompactionRecord> {
        self.0
            .iter()
            .filter_map(|e| if let ReplayEvent::Compacted(c) = e { Some(&**c) } else { None })
    }

    /// Returns how many times the user had to intervene.
    pub(super) fn interventions(&self) -> u64 {
        let asked = self.count(|e| matches!(e, ReplayEvent::AskedToGoOn));
        asked + self.noted().filter(|e| matches!(e.event, Noted::Intervention(_))).count() as u64
    }

    pub(super) fn reread_tokens(&self) -> u64 {
        self.0
            .iter()
            .map(|e| if let ReplayEvent::Reread { tokens } = e { *tokens } else { 0 })
            .sum()
    }

    /// Returns the number of requests that wrote summaries, including requests in which the
    /// provider compacted.
    pub(super) fn summary_calls(&self) -> u64 {
        let by_provider = |r: &&RequestRecord| r.compaction_tokens > 0;
        let own = self.requests().filter(|r| r.purpose == Purpose::Summary).count();
        (own + self.samples().filter(by_provider).count()) as u64
    }

    /// Returns the time spent waiting for compactions, ms.
    pub(super) fn blocked_ms(&self) -> Millis {
        self.0.iter().map(blocked_ms).fold(0, Millis::saturating_add)
    }

    /// Returns the virtual duration, ms.
    pub(super) fn took_ms(&self) -> Millis {
        let end = self.0.iter().find_map(|e| match e {
            ReplayEvent::Ended { at_ms, .. } => Some(*at_ms),
            _ => None,
        });
        end.unwrap_or_default().saturating_sub(self.begun().map_or(0, |b| b.at_ms))
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

    /// Returns the cost of all requests, USD. It must agree with the engine's ledger.
    pub(super) fn cost_usd(&self) -> f64 {
        let sum: f64 = self.requests().map(|r| r.cost_usd).sum();
        for e in &self.0 {
            if let ReplayEvent::Ended { usd, .. } = e {
                debug_assert!(*usd <= sum + 1e-6, "the ledger bills {usd}, the requests {sum}");
            }
        }
        sum
    }

    pub(super) fn triggers(&self) -> Vec<TriggerRecord> {
        let record = |e: &TimedEvent| match e.event {
            Noted::Trigger { check, believed, billed, limit } => Some(TriggerRecord {
                before_request: e.before_request,
                believed,
                billed,
                limit,
                check: check.to_string(),
            }),
            _ => None,
        };
        self.noted().filter_map(record).collect()
    }

    /// Returns the outcome, with the reason for a failure.
    pub(super) fn status(&self) -> (Status, Option<String>) {
        let total = self.begun().map_or(0, |b| b.steps);
        if let Some(why) = self.broken() {
            return (Status::Error, Some(why.to_string()));
        }
        if self.0.iter().any(|e| matches!(e, ReplayEvent::Livelocked)) {
            let requests = self.requests().count();
            let why = format!(
                "{} for {}",
                pluralize(requests, "request"),
                pluralize(total, "recorded step")
            );
            return (Status::Livelock, Some(why));
        }
        if self.steps() >= total {
            return (Status::Completed, None);
        }
        let why = self.0.iter().rev().find_map(|e| match e {
            ReplayEvent::TurnFailed(why) => Some(why.to_string()),
            _ => None,
        });
        let why = why.unwrap_or_else(|| "the run ended before the session did".into());
        (if self.overflows() > 0 { Status::Overflow } else { Status::Failed }, Some(why))
    }

    /// Returns the failure of the strategy itself, if any.
    fn broken(&self) -> Option<&str> {
        self.noted().find_map(|e| match &e.event {
            Noted::StrategyFailed(why) => Some(&**why),
            _ => None,
        })
    }

    /// Returns the name and version of the program that ran as the strategy, if any.
    pub(super) fn program(&self) -> Option<(&str, &str)> {
        self.noted().find_map(|e| match &e.event {
            Noted::Program { name, version } => Some((&**name, &**version)),
            _ => None,
        })
    }

    /// Returns how many times the provider refused a prompt as too long.
    pub(super) fn overflows(&self) -> u64 {
        self.requests().filter(|r| r.status == RequestStatus::Failed(ErrorKind::Overflow)).count()
            as u64
    }

    /// Returns the record of every (fact, need) pair, including pairs that the run did not reach.
    pub(super) fn facts(&self) -> Vec<FactRecord> {
        let mut out: Vec<FactRecord> = Vec::new();
        for e in &self.0 {
            if let ReplayEvent::Needed(f) = e {
                out.push(FactRecord::clone(f));
            }
        }
        let reached: HashSet<&str> = out.iter().map(|f| f.need.as_str()).collect();
        let open = self.begun().into_iter().flat_map(|b| &b.pairs);
        let compactions_before = self.compacted().count() as u64;
        let rest: Vec<FactRecord> = open
            .filter(|pair| !reached.contains(&*pair.need))
            .map(|pair| FactRecord { compactions_before, ..pair.clone() })
            .collect();
        out.extend(rest);
        out
    }

    /// Returns the rules broken by single requests, and the compaction stops after which the model
    /// was not asked to continue.
    pub(super) fn broken_rules(&self) -> Vec<IntegrityFailure> {
        let mut out = Vec::new();
        let mut fail = |request: u64, rule: Rule, detail: &str| {
            out.push(IntegrityFailure { request, rule, detail: detail.into() })
        };
        // Request in which the provider stopped after a compaction.
        let mut stopped: Option<u64> = None;
        let mut newest = 0;
        for e in &self.0 {
            match e {
                ReplayEvent::Moved if stopped.take().is_some() => fail(
                    newest,
                    Rule::CompactionStop,
                    "something else happened before the model was asked to continue",
                ),
                ReplayEvent::Request(s) => {
                    if s.record.purpose == Purpose::Sample {
                        if stopped.is_some() && !s.resumes {
                            let why = "the next request does not show the compaction";
                            fail(newest, Rule::CompactionStop, why);
                        }
                        stopped = s.paused.then_some(s.record.seq);
                    }
                    newest = s.record.seq;
                    for (rule, detail) in &s.broken {
                        fail(newest, *rule, detail);
                    }
                }
                _ => {}
            }
        }
        if stopped.is_some() {
            let why = "the session ended before the model was asked to continue";
            fail(newest, Rule::CompactionStop, why);
        }
        out
    }
}

/// Returns how long an event kept the conversation waiting for a compaction, ms.
pub(super) fn blocked_ms(e: &ReplayEvent) -> Millis {
    match e {
        ReplayEvent::Request(s) => s.blocked_ms,
        ReplayEvent::Waited { ms } => *ms,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(seq: u64, paused: bool, resumes: bool) -> ReplayEvent {
        ReplayEvent::Request(Box::new(SentRequest {
            record: RequestRecord { seq, ..RequestRecord::default() },
            compared: None,
            blocked_ms: 0,
            resumes,
            paused,
            broken: Box::default(),
            trace: None,
        }))
    }

    fn broken(events: Vec<ReplayEvent>) -> Vec<(u64, Rule)> {
        let rules = Conversation(events).broken_rules();
        rules.into_iter().map(|i| (i.request, i.rule)).collect()
    }

    #[test]
    fn a_compaction_stop_that_nobody_answers_is_reported() {
        let stop = || request(0, true, false);
        let failure = [(0, Rule::CompactionStop)];
        assert_eq!(broken(vec![stop(), request(1, false, false)]), failure, "it is not shown");
        assert_eq!(broken(vec![stop()]), failure, "the session ended");
        assert_eq!(broken(vec![stop(), ReplayEvent::Moved]), failure, "the turn ended");
        assert_eq!(broken(vec![stop(), request(1, false, true), ReplayEvent::Moved]), []);
    }
}
