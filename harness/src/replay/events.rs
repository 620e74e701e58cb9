//! What happens in a run, in one append-only log that the main conversation and its subagents
//! share. When the run is over, its record is built from nothing else.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use ctxbench_core::engine::TimedEvent;
use ctxbench_core::session::Millis;
use ctxbench_reports::record::{FactMove, FactRecord, RequestRecord, Rule};

use super::compactions::Compacted;
use super::needs::Pair;
use super::rewinds::Compared;

/// In whose window something happens: that of a subagent, by its place among the session's, or
/// that of the main conversation.
pub(super) type Window = Option<u32>;

#[derive(Debug)]
pub(super) struct Logged {
    pub(super) window: Window,
    pub(super) event: Event,
}

/// Small, as a run has several for each step: what is large stands elsewhere.
#[derive(Debug)]
pub(super) enum Event {
    /// A conversation begins.
    Begun(Box<Begun>),
    /// Something comes from outside: a user message, a command, time.
    Moved,
    /// A request was answered or refused.
    Request(Box<Sent>),
    /// The reply of a recorded step entered the history.
    Step,
    /// A fact was needed, and was looked for in what the model was shown.
    Needed(Box<FactRecord>),
    /// A request showed a fact for the first time.
    Shown { fact: usize, request: u64 },
    /// A compaction took a fact from one kind of place to another.
    FactMoved { fact: usize, to: Box<FactMove> },
    /// A request showed the result of a re-read.
    Reread { tokens: u64 },
    /// The conversation waited for a background summary.
    Waited { ms: Millis },
    /// The context was made smaller.
    Compacted(Box<Compacted>),
    /// The user went back.
    Rewound(Box<(Arc<TimedEvent>, Compared)>),
    /// Anything else that the engine noted: triggers, restarts, interventions, …. Compactions, too,
    /// while the session is yet to be opened again.
    Noted(Arc<TimedEvent>),
    /// A turn failed, and this is what the user read.
    TurnFailed(Box<str>),
    /// The user asks to go on, since less was said than was recorded.
    AskedToGoOn,
    /// Requests without progress; nothing more is sent.
    Livelocked,
    /// A conversation is over; `usd` is what the engine's own ledger billed.
    Ended { at_ms: Millis, usd: f64 },
}

/// A conversation and what is to be measured in it.
#[derive(Debug, Default)]
pub(super) struct Begun {
    pub(super) at_ms: Millis,
    /// Number, in its caller's window, of the request whose reply started a subagent.
    pub(super) by_request: Option<u64>,
    /// Recorded replies.
    pub(super) steps: u64,
    /// Needs that will be looked at when they come up.
    pub(super) pairs: Vec<Pair>,
}

/// A request with what was seen of it.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) record: RequestRecord,
    /// Tokens of the conversation in the normal request before; `None` for the first one and for
    /// requests of other purposes.
    pub(super) compared: Option<u64>,
    /// How long the conversation waited for a compaction in it.
    pub(super) blocked_ms: Millis,
    /// It shows the compaction after which the provider had stopped.
    pub(super) resumes: bool,
    /// The provider stopped after a compaction.
    pub(super) paused: bool,
    /// Rules that it breaks, with details.
    pub(super) broken: Box<[(Rule, String)]>,
    /// Its line in the trace.
    pub(super) trace: Option<String>,
}

/// Where the events of one window go.
#[derive(Clone, Debug)]
pub(super) struct Log {
    window: Window,
    sender: Sender<Logged>,
}

impl Log {
    /// The log of a run, for its main conversation, and the end at which it is read.
    pub(super) fn open() -> (Log, Receiver<Logged>) {
        let (sender, receiver) = channel();
        (Log { window: None, sender }, receiver)
    }

    /// The same log, for a subagent.
    pub(super) fn of_agent(&self, agent: u32) -> Log {
        Log { window: Some(agent), sender: self.sender.clone() }
    }

    pub(super) fn note(&self, event: Event) {
        // Whoever does not read it, such as a test of a part, loses nothing else.
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
