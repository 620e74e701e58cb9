//! The host of an agent: supplies its input, answers its requests and receives its events.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::block::{Block, MessageId};
use crate::compaction::CompactionKind;
use crate::content::{Part, ToolCall};
use crate::model::Model;
use crate::request::{ModelError, Phase, Reply, Request};
use crate::time::Millis;

/// A message that the history does not contain yet: from the user, or a tool result.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// The session's id of the message; for a tool result the call id.
    pub key: Arc<str>,
    /// Texts and images in order; a tool's message begins with the result. Empty if the program was
    /// killed before the result arrived.
    pub parts: Vec<Part>,
}

impl Incoming {
    /// Creates the message for a result that is plain text.
    pub fn result(call: &ToolCall, is_error: bool, output: impl Into<Arc<str>>) -> Self {
        let ToolCall { id, name, .. } = call.clone();
        let result = Part::Result { id, name, output: output.into(), is_error };
        Incoming { key: call.id.clone(), parts: vec![result] }
    }
}

/// An input to the agent.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    User(Incoming),
    /// The user asks for a compaction.
    Compact {
        /// Instructions for the summary.
        instructions: Option<String>,
    },
    /// The program exited and reopened the session.
    Restart,
    /// Time passes.
    Idle {
        ms: Millis,
    },
    /// Go back to a message, or summarise everything before or after it.
    Rewind {
        /// The session's id of the last message to keep, or of the message that divides the two sides.
        to: String,
        mode: RewindMode,
        /// Instructions for the summary.
        instructions: Option<String>,
    },
    /// Start a new conversation in the same session.
    Clear,
    /// Start another session of the same project.
    NewSession,
}

/// The scope of a rewind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindMode {
    /// Rewinds the conversation, not files.
    #[default]
    #[serde(alias = "")]
    Conversation,
    /// Rewinds files, not the conversation.
    Code,
    /// Rewinds both.
    Both,
    /// Replaces everything after the message by a summary.
    SummarizeFrom,
    /// Replaces everything up to the message by a summary.
    SummarizeTo,
}

impl RewindMode {
    pub const ALL: [RewindMode; 5] = [
        RewindMode::Conversation,
        RewindMode::Code,
        RewindMode::Both,
        RewindMode::SummarizeFrom,
        RewindMode::SummarizeTo,
    ];

    /// Returns the name in files.
    pub const fn word(self) -> &'static str {
        match self {
            RewindMode::Conversation => "conversation",
            RewindMode::Code => "code",
            RewindMode::Both => "both",
            RewindMode::SummarizeFrom => "summarize_from",
            RewindMode::SummarizeTo => "summarize_to",
        }
    }

    pub fn restores_conversation(self) -> bool {
        matches!(self, RewindMode::Conversation | RewindMode::Both)
    }

    pub fn restores_code(self) -> bool {
        matches!(self, RewindMode::Code | RewindMode::Both)
    }

    /// Returns whether the mode requests a summary.
    pub fn summarises(self) -> bool {
        matches!(self, RewindMode::SummarizeFrom | RewindMode::SummarizeTo)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindStatus {
    Done,
    /// The message does not exist, or the summary request failed; nothing changed.
    Failed,
    /// The product has no such command.
    #[default]
    #[serde(rename = "n/a")]
    Unsupported,
}

/// An action of the program that embeds the product, taken while it handles a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerAction {
    /// Compact before the model's next turn.
    Compact {
        /// Instructions for the summary.
        instructions: Option<Arc<str>>,
    },
    /// Append the reply to the history, in place of the product.
    Append {
        /// Append plain content blocks instead of the reply object.
        plain: bool,
    },
}

/// A background request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task(pub u64);

/// The environment of an agent: a replay, a recorded case, or a real program.
#[async_trait]
pub trait Host: Send {
    /// Returns the next action, or `None` when the session is over.
    async fn next(&mut self) -> Option<Action>;
    /// Waits until `at`, in ms, or until an action arrives. Returns true if the time came first.
    /// Called between turns only.
    async fn wait_until(&mut self, _at: Millis) -> bool {
        false
    }
    /// Sends a request and waits for the reply. Virtual time passes.
    async fn send(&mut self, request: &Request) -> Result<Reply, ModelError>;
    /// Returns the provider's own token count of a request, where it offers one.
    async fn count(&mut self, _request: &Request) -> Option<u64> {
        None
    }
    /// Returns the embedding program's action for the reply just received.
    async fn caller(&mut self) -> Option<CallerAction> {
        None
    }
    async fn run(&mut self, calls: &[ToolCall]) -> Vec<Incoming>;
    /// Notifies the host that the history recorded the reply to the last normal request.
    fn on_reply(&mut self, _message: MessageId) {}
    /// Receives the context after each message that the history records, and at the end of each
    /// turn. `key` is the session's id of the message. It is empty for replies, because they come
    /// from the host.
    fn on_view(&mut self, _key: &str, _blocks: &[Arc<Block>]) {}
    /// Returns the message with a session's id where the history does not know the id: a reply that
    /// this host gave.
    fn message(&self, _key: &str) -> Option<MessageId> {
        None
    }
    /// Returns whether the turn continues after tools have run.
    fn turn_continues(&self) -> bool {
        true
    }
    /// Notifies the host of a failed turn. `reason` is the message for the user.
    fn turn_failed(&mut self, _reason: &str) {}
    /// Starts a background request. A host without background requests fails when the result is
    /// collected.
    async fn spawn(&mut self, _request: &Request) -> Task {
        Task(0)
    }
    /// Returns the result of a background request if it has arrived; with `wait`, waits for it.
    async fn collect(&mut self, _task: Task, _wait: bool) -> Option<Result<Reply, ModelError>> {
        let refused = ModelError::invalid("this host runs no background requests");
        Some(Err(ModelError { status: 0, ..refused }))
    }
    /// Cancels a background request.
    fn cancel(&mut self, _task: Task) {}
    /// Receives every event.
    fn on_event(&mut self, _event: &Arc<TimedEvent>) {}
    /// Returns the session's name and the subagent that this conversation belongs to.
    fn session(&self) -> (&str, Option<&str>) {
        ("", None)
    }
    /// Returns the model that gives the next reply, where the user switched from the session's model.
    fn model(&self) -> Option<Arc<Model>> {
        None
    }
    /// Returns virtual time in ms.
    fn now(&self) -> Millis;
}

/// An event worth measuring; requests are not events.
#[derive(Clone, Debug)]
pub enum Event {
    /// A strategy decided that the context was too large.
    Trigger {
        check: &'static str,
        /// The strategy's own count of the context, tokens.
        believed: u64,
        /// Tokens that the provider would bill.
        billed: u64,
        /// The limit that was reached, tokens.
        limit: u64,
    },
    /// The context was made smaller.
    Compaction {
        kind: CompactionKind,
        /// Product's name of the mechanism.
        mechanism: &'static str,
        phase: Phase,
        before: Vec<Arc<Block>>,
        after: Vec<Arc<Block>>,
        /// Number of trailing blocks that no request has contained yet, with or without the
        /// compaction.
        new: usize,
    },
    /// A compaction was started but failed.
    CompactionFailed {
        /// Product's name of the mechanism.
        mechanism: &'static str,
        /// The marker of the compaction remains in the context without a summary.
        dangling: bool,
    },
    /// The user had to intervene.
    Intervention(String),
    TurnFailed(String),
    /// The program was killed before a tool result arrived.
    ToolKilled,
    /// The program exited.
    Restart {
        /// The context at that time.
        shown: Vec<Arc<Block>>,
    },
    /// The program reopened the session.
    Reopened {
        /// The context after reopening.
        shown: Vec<Arc<Block>>,
    },
    /// The next session of the project started.
    NewSession {
        /// The context at the start of the new session.
        shown: Vec<Arc<Block>>,
    },
    /// The user asked for a compaction, but the product has no such command.
    NoManualCompaction,
    /// The strategy's own estimate of the context right after a compaction, tokens.
    Estimated(u64),
    /// The user went back to a message, or summarised one side of it.
    Rewound {
        /// The session's id of the message.
        to: String,
        mode: RewindMode,
        status: RewindStatus,
        before: Vec<Arc<Block>>,
        after: Vec<Arc<Block>>,
    },
    /// A background summary made progress.
    Background(Task, BackgroundStep),
    /// An external strategy program reported its name and version.
    Program {
        name: String,
        version: String,
    },
    /// A log message of an external program, for the trace.
    ProgramLog(String),
    /// The strategy itself failed, so the run is over.
    StrategyFailed(String),
}

/// Progress of the newest request of a background summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundStep {
    /// The request with this number was sent.
    Spawned { request: u64 },
    /// Another request of the same summary replaced it: another model, or another part.
    Continued(Task),
    /// The reply was collected after waiting for it.
    Delivered { waited_ms: Millis, usable: bool },
    /// The reply was needed but had not arrived; the conversation continued without it.
    Missed,
    /// The messages that it summarises have changed.
    Stale,
    /// The reply contains nothing usable.
    Unusable,
}

#[derive(Clone, Debug)]
pub struct TimedEvent {
    /// Number of the next request.
    pub before_request: u64,
    /// Virtual time, ms.
    pub at_ms: Millis,
    pub event: Event,
}
