//! The world in which an agent acts: what happens to it, who answers it, and what is worth noting
//! on the way.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::block::{Block, MessageId};
use crate::compaction::CompactionKind;
use crate::content::{Part, ToolCall};
use crate::request::{ErrorKind, ModelError, Phase, Reply, Request};
use crate::session::{Millis, RewindMode};

/// A message on its way in: from the user, or what a tool returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Incoming {
    /// The session's id of it; of a tool's message the call id.
    pub key: Arc<str>,
    /// Texts and images in order; a tool's message begins with the result. None = the program was
    /// killed before it came.
    pub parts: Vec<Part>,
}

impl Incoming {
    /// What a call returned, as text.
    pub fn result(call: &ToolCall, is_error: bool, output: impl Into<Arc<str>>) -> Self {
        let ToolCall { id, name, .. } = call.clone();
        let result = Part::Result { id, name, output: output.into(), is_error };
        Incoming { key: call.id.clone(), parts: vec![result] }
    }
}

/// Something that happens to the agent from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A user message.
    User(Incoming),
    /// The user asks for a compaction.
    Compact {
        /// What the summary should keep.
        instructions: Option<String>,
    },
    /// The program ended and the session was opened again.
    Restart,
    /// Time passes.
    Idle {
        /// ms.
        ms: Millis,
    },
    /// Back to a message, or a summary of what lies on one side of it.
    Rewind {
        /// The session's id of the last message that stays, or behind which the seam lies.
        to: String,
        /// What goes back.
        mode: RewindMode,
        /// What a summary should keep.
        instructions: Option<String>,
    },
    /// A fresh conversation.
    Clear,
    /// Another session of the same project.
    NewSession,
}

/// Whether a rewind happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindStatus {
    /// It did.
    Done,
    /// The message is not there, or the summary could not be had; nothing changed.
    Failed,
    /// The product has no such command.
    #[default]
    #[serde(rename = "n/a")]
    Unsupported,
}

/// What a program that embeds the product does while it handles a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallerAct {
    /// It asks for a compaction before the model's next turn.
    Compact {
        /// What the summary should follow.
        instructions: Option<Arc<str>>,
    },
    /// It appends the reply to the history itself.
    Append {
        /// As plain content blocks rather than as the reply object.
        plain: bool,
    },
}

/// A request that runs beside the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task(pub u64);

/// Where the agent acts: replay, a recorded case, or a real program.
#[async_trait]
pub trait World: Send {
    /// The next thing that happens; `None` = the session is over.
    async fn next(&mut self) -> Option<Action>;
    /// Lets time pass until `at`, ms, unless something happens before; true when the moment came
    /// first. Asked between turns only.
    async fn wait_until(&mut self, _at: Millis) -> bool {
        false
    }
    /// Sends a request and waits for the reply; virtual time passes.
    async fn send(&mut self, request: &Request) -> Result<Reply, ModelError>;
    /// The provider's own count of a request, where it offers one.
    async fn count(&mut self, _request: &Request) -> Option<u64> {
        None
    }
    /// What the embedding program does while it handles the reply just received.
    async fn caller(&mut self) -> Option<CallerAct> {
        None
    }
    /// Runs tools.
    async fn run(&mut self, calls: &[ToolCall]) -> Vec<Incoming>;
    /// The reply to the last normal request entered the history.
    fn recorded(&mut self, _message: MessageId) {}
    /// What the context shows right after something entered the history, and again when a turn is
    /// over. `key` is the session's id of it; replies have none, their world knows which one it
    /// gave.
    fn shown(&mut self, _key: &str, _blocks: &[Arc<Block>]) {}
    /// The message that a session's id stands for, where the history does not know it: a reply that
    /// this world gave.
    fn message(&self, _key: &str) -> Option<MessageId> {
        None
    }
    /// Whether the turn goes on after tools have run.
    fn turn_goes_on(&self) -> bool {
        true
    }
    /// The turn failed, and this is what the user reads.
    fn turn_failed(&mut self, _reason: &str) {}
    /// Starts a request beside the conversation. A world without such tasks says so when the result
    /// is collected.
    async fn spawn(&mut self, _request: &Request) -> Task {
        Task(0)
    }
    /// The result of a started request if it is there; with `wait`, after waiting for it.
    async fn collect(&mut self, _task: Task, _wait: bool) -> Option<Result<Reply, ModelError>> {
        let message = "this world runs no request beside the conversation".into();
        Some(Err(ModelError { kind: ErrorKind::Invalid, status: 0, code: None, message }))
    }
    /// Gives a started request up.
    fn cancel(&mut self, _task: Task) {}
    /// Something was noted that is not a request.
    fn noted(&mut self, _event: &Arc<Stamped>) {}
    /// What the session calls itself, and the subagent whose conversation this is.
    fn session(&self) -> (&str, Option<&str>) {
        ("", None)
    }
    /// Virtual time, ms.
    fn now(&self) -> Millis;
}

/// Something worth measuring that is not a request.
#[derive(Clone, Debug)]
pub enum Event {
    /// A strategy decided that the context was too large.
    Trigger {
        /// Name of the check.
        check: &'static str,
        /// What it believed, tokens.
        believed: u64,
        /// What would be billed, tokens.
        billed: u64,
        /// The limit reached, tokens.
        limit: u64,
    },
    /// The context was made smaller.
    Compaction {
        /// How.
        kind: CompactionKind,
        /// Product's name of the mechanism.
        mechanism: &'static str,
        /// When.
        phase: Phase,
        /// Context before.
        before: Vec<Arc<Block>>,
        /// Context after.
        after: Vec<Arc<Block>>,
        /// How many of its last blocks no request has shown yet: they would be new without it, too.
        new: usize,
    },
    /// A compaction was begun and came to nothing.
    CompactionFailed {
        /// Product's name of the mechanism.
        mechanism: &'static str,
        /// The message that stands for it stays in the context without a summary.
        dangling: bool,
    },
    /// A person had to step in.
    Intervention(String),
    /// A turn failed.
    TurnFailed(String),
    /// A tool's result never came.
    Killed,
    /// The program ended here.
    Restart {
        /// What the context showed.
        shown: Vec<Arc<Block>>,
    },
    /// The session was opened again.
    Reopened {
        /// What the context shows now.
        shown: Vec<Arc<Block>>,
    },
    /// A session ended and the next one of the project began.
    NewSession {
        /// What the context shows at the beginning of the new one.
        shown: Vec<Arc<Block>>,
    },
    /// The user asked for a compaction, and the product has no such command.
    NoManualCompaction,
    /// The strategy's own estimate of the context right after a compaction, tokens.
    Estimated(u64),
    /// The user went back, or had one side of a message summarised.
    Rewound {
        /// The session's id of the message.
        to: String,
        /// What was asked for.
        mode: RewindMode,
        /// Whether it happened.
        status: RewindStatus,
        /// Context before.
        before: Vec<Arc<Block>>,
        /// Context after.
        after: Vec<Arc<Block>>,
    },
    /// A summary that is written beside the conversation came a step further.
    Background(Task, BackgroundStep),
    /// The strategy is a program that is not ours, and says what it is.
    Program {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// A word of such a program for whoever reads the trace.
    Said(String),
    /// The strategy itself failed: what it would have done is not known, and the run is over.
    Broken(String),
}

/// What happened to the newest request of a background summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundStep {
    /// The summary was asked for, with the request of this number.
    Spawned { request: u64 },
    /// Another request of the same summary took its place: another model, or a further part.
    Continued(Task),
    /// The answer was taken after waiting for it.
    Delivered { waited_ms: Millis, usable: bool },
    /// It was needed and is not there; the conversation goes on.
    Missed,
    /// What it covers no longer stands as it was.
    Stale,
    /// The answer holds nothing that could be used.
    Unusable,
}

/// An event with its place in the run.
#[derive(Clone, Debug)]
pub struct Stamped {
    /// Number of the next request.
    pub before_request: u64,
    /// Virtual time, ms.
    pub at_ms: Millis,
    /// What happened.
    pub event: Event,
}
