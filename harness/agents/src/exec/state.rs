//! A running program, and the conversation as it knows it: messages with ids and their blocks.

use std::collections::{HashMap, HashSet};

use ctxbench_core::prelude::*;
use ctxbench_core::usage::Ttl;
use serde_json::{Map, Value};

use super::dialect::Dialect;
use super::process::{ExecLimits, Process};
use super::protocol::{Message, Moment, OwnTool, Reason, RequestParams};

#[derive(Default)]
pub(super) struct RequestOptions {
    /// Places of breakpoints; `None` = the default ones.
    pub(super) breakpoints: Option<Vec<usize>>,
    pub(super) ttl: Option<Ttl>,
    pub(super) params: RequestParams,
}

/// A program as a strategy.
#[derive(Default)]
pub(super) struct Exec {
    pub(super) command: Vec<String>,
    pub(super) limits: ExecLimits,
    pub(super) settings: Map<String, Value>,
    pub(super) scale: f64,
    pub(super) process: Option<Process>,
    pub(super) asked: u64,
    /// Error after which the program is not called again.
    pub(super) failed: Option<String>,
    /// Error with which the program fails this turn.
    pub(super) given_up: Option<String>,
    pub(super) dialect: Option<Dialect>,
    pub(super) moments: Vec<Moment>,
    /// Number of blocks before the conversation.
    pub(super) head: usize,
    pub(super) state: ExecState,
    /// Number of blocks of the context that are in `state`.
    pub(super) known: usize,
    /// Number of messages at the end of the state that were not sent to the program.
    pub(super) unsent: usize,
    /// Whether the context shows exactly the state.
    pub(super) shows_state: bool,
    /// New texts of the last answer, which the next answer may repeat.
    pub(super) new_messages: Vec<Message>,
    pub(super) next: Reason,
    /// Prompt of the last normal request, tokens.
    pub(super) request_tokens: Option<u64>,
    /// Parameters of `reply` and `turn_end`.
    pub(super) last: Value,
    pub(super) wanted: RequestOptions,
    /// Phase of the session in which the program is asked.
    pub(super) phase: Phase,
    /// Background requests, each with the tool that its reply calls.
    pub(super) tasks: Vec<(Task, Request, Option<OwnTool>)>,
}

/// Returns the id of the `part`-th message that a message of the log becomes.
pub(super) fn message_id(message: MessageId, part: usize) -> Arc<str> {
    match part {
        0 => format!("m{}", message.0).into(),
        part => format!("m{}.{part}", message.0).into(),
    }
}

/// The messages of the next requests, until the program changes them.
#[derive(Default)]
pub(super) struct ExecState {
    messages: Vec<Message>,
    places: HashMap<Arc<str>, usize>,
}

impl ExecState {
    pub(super) fn new(messages: Vec<Message>) -> ExecState {
        let places = messages.iter().enumerate().map(|(i, m)| (m.id.clone(), i)).collect();
        ExecState { messages, places }
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(super) fn get(&self, id: &str) -> Option<&Message> {
        self.places.get(id).map(|&i| &self.messages[i])
    }

    /// Adds new blocks of the conversation and returns the number of new messages.
    pub(super) fn absorb(
        &mut self,
        dialect: &Dialect,
        blocks: &[Arc<Block>],
    ) -> Result<usize, String> {
        let before = self.messages.len();
        let joined =
            |a: &Block, b: &Block| a.message == b.message || dialect.joins(a) && dialect.joins(b);
        for group in blocks.chunk_by(|a, b| joined(a, b)) {
            for (part, (json, blocks)) in dialect.messages(group)?.into_iter().enumerate() {
                let id = message_id(group[0].message, part);
                self.places.insert(id.clone(), self.messages.len());
                self.messages.push(Message { id, json, blocks });
            }
        }
        Ok(self.messages.len() - before)
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = Arc<Block>> + '_ {
        self.messages.iter().flat_map(|m| m.blocks.iter().cloned())
    }

    /// Returns the messages with all their blocks in `blocks`.
    pub(super) fn retained_in(&self, blocks: &[Arc<Block>]) -> ExecState {
        let all: HashSet<*const Block> = blocks.iter().map(Arc::as_ptr).collect();
        let is_retained = |m: &&Message| m.blocks.iter().all(|b| all.contains(&Arc::as_ptr(b)));
        ExecState::new(self.messages.iter().filter(is_retained).cloned().collect())
    }
}
