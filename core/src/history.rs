//! The history: an append-only log of all messages of users, models, tools and strategies. It never
//! changes, so every strategy is measured against the same log.

use std::sync::Arc;

use crate::block::{MessageId, Origin, Role};
use crate::content::Part;

#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub id: MessageId,
    /// The session's id of the message; empty for messages that a strategy made.
    pub key: Arc<str>,
    pub role: Role,
    pub parts: Vec<Part>,
    /// Made by a strategy, not by user, model or tool.
    pub synthetic: bool,
}

/// An append-only log of messages.
#[derive(Clone, Debug, Default)]
pub struct History {
    messages: Vec<Message>,
}

impl History {
    /// Appends a message and returns its number.
    pub(crate) fn append(
        &mut self,
        key: impl Into<Arc<str>>,
        role: Role,
        parts: Vec<Part>,
        synthetic: bool,
    ) -> MessageId {
        let id = MessageId(u32::try_from(self.messages.len()).expect("fewer than 2^32 messages"));
        self.messages.push(Message { id, key: key.into(), role, parts, synthetic });
        id
    }

    /// Returns all messages, oldest first.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub fn get(&self, id: MessageId) -> Option<&Message> {
        self.messages.get(id.0 as usize)
    }

    /// Returns the newest message with a session id.
    pub fn find(&self, key: &str) -> Option<&Message> {
        self.messages.iter().rev().find(|m| &*m.key == key)
    }

    pub fn result(&self, call_id: &str) -> Option<(Origin, &Arc<str>)> {
        self.messages.iter().rev().find_map(|m| {
            m.parts.iter().zip(0..).find_map(|(p, part)| match p {
                Part::Result { id, output, .. } if &**id == call_id => {
                    Some((Origin { message: m.id, part }, output))
                }
                _ => None,
            })
        })
    }
}
