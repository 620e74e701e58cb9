//! The conversation as the program knows it: messages with ids and their blocks.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctxbench_core::block::{Block, MessageId};

use super::dialect::{Dialect, DialectMessage};
use super::protocol::MessageWithId;

#[derive(Clone)]
pub(super) struct StateEntry {
    pub(super) id: Arc<str>,
    pub(super) message: DialectMessage,
}

impl StateEntry {
    pub(super) fn with_id(&self) -> MessageWithId {
        MessageWithId { id: self.id.clone(), message: self.message.json.clone() }
    }
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
    entries: Vec<StateEntry>,
    places: HashMap<Arc<str>, usize>,
}

impl ExecState {
    pub(super) fn new(entries: Vec<StateEntry>) -> ExecState {
        let places = entries.iter().enumerate().map(|(i, e)| (e.id.clone(), i)).collect();
        ExecState { entries, places }
    }

    pub(super) fn entries(&self) -> &[StateEntry] {
        &self.entries
    }

    pub(super) fn get(&self, id: &str) -> Option<&StateEntry> {
        self.places.get(id).map(|&i| &self.entries[i])
    }

    /// Adds new blocks of the conversation and returns the number of new messages.
    pub(super) fn absorb(
        &mut self,
        dialect: &Dialect,
        blocks: &[Arc<Block>],
    ) -> Result<usize, String> {
        let before = self.entries.len();
        for group in blocks.chunk_by(|a, b| a.message == b.message) {
            for (part, message) in dialect.messages(group)?.into_iter().enumerate() {
                let id = message_id(group[0].message, part);
                self.places.insert(id.clone(), self.entries.len());
                self.entries.push(StateEntry { id, message });
            }
        }
        Ok(self.entries.len() - before)
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = Arc<Block>> + '_ {
        self.entries.iter().flat_map(|e| e.message.blocks.iter().cloned())
    }

    /// Returns the messages with all their blocks in `blocks`.
    pub(super) fn retained_in(&self, blocks: &[Arc<Block>]) -> ExecState {
        let all: HashSet<*const Block> = blocks.iter().map(Arc::as_ptr).collect();
        let is_retained =
            |e: &&StateEntry| e.message.blocks.iter().all(|b| all.contains(&Arc::as_ptr(b)));
        ExecState::new(self.entries.iter().filter(is_retained).cloned().collect())
    }
}
