//! Append-only log of a run, shared by the main conversation and its subagents. The record of the
//! run is built only from this log.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use ctxbench_core::Millis;
use ctxbench_core::host::TimedEvent;
use ctxbench_reports::record::{CompactionRecord, FactMove, FactRecord, RequestRecord, Rule};

use super::rewinds::Compared;

/// Window of an event: a subagent by its index in the session, or the main conversation.
pub(super) type Window = Option<u32>;

#[derive(Debug)]
pub(super) struct Logged {
    pub(super) window: Window,
    pub(super) event: ReplayEvent,
}

/// Event of a run. Large data is boxed, because a run logs several events per step.
#[derive(Debug)]
pub(super) enum ReplayEvent {
    /// A conversation begins.
    Begun(Box<Begun>),
    /// An external move begins: a user message, a command, a pause.
    Moved,
    /// A request was answered or refused.
    Request(Box<SentRequest>),
    /// The reply of a recorded step entered the history.
    Step,
    /// A fact was needed and looked up in the blocks that the model was shown.
    Needed(Box<FactRecord>),
    /// A request showed a fact for the first time.
    Shown { fact: usize, request: u64 },
    /// A compaction moved a fact from one kind of place to another.
    FactMoved { fact: usize, to: Box<FactMove> },
    /// A request showed the result of a re-read.
    Reread { tokens: u64 },
    /// The conversation waited for a background summary.
    Waited { ms: Millis },
    /// A compaction changed the context.
    Compacted(Box<CompactionRecord>),
    /// The user rewound the conversation.
    Rewound(Box<(Arc<TimedEvent>, Compared)>),
    /// Any other event of the engine, such as triggers, restarts and interventions; also
    /// compactions before the last restart.
    Noted(Arc<TimedEvent>),
    /// A turn failed with this error for the user.
    TurnFailed(Box<str>),
    /// The user asked to continue, because fewer replies came than were recorded.
    AskedToGoOn,
    /// Too many requests without progress; the run ends.
    Livelocked,
    /// A conversation ended; `usd` is the total of the engine's own ledger.
    Ended { at_ms: Millis, usd: f64 },
}

/// Begin of a conversation.
#[derive(Debug, Default)]
pub(super) struct Begun {
    pub(super) at_ms: Millis,
    /// Request of the caller with the reply that started this subagent.
    pub(super) by_request: Option<u64>,
    /// Number of recorded replies.
    pub(super) steps: u64,
    /// Fact–need pairs to check.
    pub(super) pairs: Vec<FactRecord>,
}

/// A request and its measurements.
#[derive(Debug)]
pub(super) struct SentRequest {
    pub(super) record: RequestRecord,
    /// Tokens of the conversation in the previous normal request. `None` for the first request, and
    /// for requests with another purpose.
    pub(super) compared: Option<u64>,
    /// Time that the conversation waited for a compaction inside this request, ms.
    pub(super) blocked_ms: Millis,
    /// Whether the request shows the compaction after which the provider had stopped.
    pub(super) resumes: bool,
    /// Whether the provider stopped after a compaction.
    pub(super) paused: bool,
    /// Broken rules, with details.
    pub(super) broken: Box<[(Rule, String)]>,
    /// Line of this request in the trace.
    pub(super) trace: Option<String>,
}

/// Sender of the events of one window.
#[derive(Clone, Debug)]
pub(super) struct EventLog {
    window: Window,
    sender: Sender<Logged>,
}

impl EventLog {
    /// Creates the log of a run: the sender of its main conversation, and the receiver.
    pub(super) fn open() -> (EventLog, Receiver<Logged>) {
        let (sender, receiver) = channel();
        (EventLog { window: None, sender }, receiver)
    }

    /// Returns the sender of a subagent's events.
    pub(super) fn of_agent(&self, agent: u32) -> EventLog {
        EventLog { window: Some(agent), sender: self.sender.clone() }
    }

    pub(super) fn note(&self, event: ReplayEvent) {
        // Ignore a dropped receiver, as in tests of a part.
        let _ = self.sender.send(Logged { window: self.window, event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_takes_no_more_than_four_words() {
        assert!(size_of::<Logged>() <= 4 * size_of::<u64>(), "{}", size_of::<Logged>());
    }
}
