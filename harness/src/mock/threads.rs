//! Conversations that the provider keeps: a continued request sends only what is new.
//!
//! Cache breakpoints of stored messages are dropped, those of the system prompt stay: a request takes only four, and how the provider
//! treats stored ones is not published (assumed).

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::block::Role;
use ctxbench_core::provider::{Content, Item, Prompt, PromptThread};
use ctxbench_core::request::{ErrorKind, ModelError, Reply, ReplyPart};

/// Stored conversations by the id of their last reply.
#[derive(Default)]
pub(super) struct Threads {
    stored: HashMap<Arc<str>, Prompt>,
}

impl Threads {
    /// The prompt with everything that the provider has of its thread.
    pub(super) fn whole(&self, prompt: Prompt) -> Result<Prompt, ModelError> {
        let Some(PromptThread::Continue(after)) = &prompt.thread else { return Ok(prompt) };
        let Some(stored) = self.stored.get(after) else {
            let message = format!("no thread ends with the message `{after}`");
            return Err(ModelError { kind: ErrorKind::Invalid, status: 404, code: Some("thread_not_found".into()), message });
        };
        let behind = stored.items.iter().map(|i| i.message).max().unwrap_or(0);
        let mut items = stored.items.clone();
        items.extend(prompt.items.iter().cloned().map(|mut i| {
            // A request for a compaction stands beside the messages.
            i.message += if i.message > 0 { behind } else { 0 };
            i
        }));
        Ok(Prompt { items, tools: stored.tools.clone(), tools_cache: stored.tools_cache, ..prompt })
    }

    /// Stores a conversation and the reply to it. A thread goes on from its last reply only.
    pub(super) fn keep(&mut self, mut whole: Prompt, id: &Arc<str>, reply: &Reply) {
        if let Some(PromptThread::Continue(after)) = &whole.thread {
            self.stored.remove(after);
        }
        for i in whole.items.iter_mut().filter(|i| i.message > 0) {
            i.cache = None;
        }
        let message = whole.items.iter().map(|i| i.message).max().unwrap_or(0) + 1;
        whole.items.retain(|i| !matches!(i.content, Content::CompactionTrigger(_)));
        whole.items.extend(reply.parts.iter().map(|p| Item::new(Role::Assistant, content(p), message, None)));
        self.stored.insert(id.clone(), whole);
    }
}

/// A part of a reply as a client would send it back.
fn content(part: &ReplyPart) -> Content {
    match part.clone() {
        ReplyPart::Text(t) => Content::Text(t),
        ReplyPart::Reasoning { text, encrypted } => Content::Reasoning { text, encrypted: encrypted.filter(|e| !e.is_empty()) },
        ReplyPart::Call { id, name, arguments } => Content::Call { id, name, arguments },
        ReplyPart::Compaction(summary) => Content::Compaction { text: summary.unwrap_or_default(), opaque: None },
    }
}
