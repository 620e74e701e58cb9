//! Conversations that the provider keeps: a continued request sends only its new messages.
//!
//! Cache breakpoints of stored messages are dropped, those of the system prompt stay: a request
//! takes only four, and the provider's treatment of stored ones is not published (assumed). A
//! thread continues from its last reply only. A client that never saw that reply, because the
//! connection broke, sends the previous request again and is answered (also assumed).

use std::collections::HashMap;
use std::sync::Arc;

use ctxbench_core::block::Role;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::request::{ModelError, Reply};
use ctxbench_core::tokens::content_hash;
use ctxbench_provider::{Content, Item, Prompt, PromptThread};

/// Limits of the threads that are kept; the least recently used are dropped first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// Replies from which a thread can continue; a conversation has two, its last and the one
    /// before.
    pub(super) ends: usize,
    /// Bytes of their texts. Text that two ends share counts twice.
    pub(super) bytes: usize,
}

/// For a server that runs on and on.
pub(super) const LIVE: Room = Room { ends: 1_000, bytes: 128 << 20 };

/// A conversation up to one of its replies.
struct End {
    whole: Prompt,
    bytes: usize,
    /// When it was last asked for, in requests.
    used: u64,
    before: Option<Arc<str>>,
    /// Hash of the request that continued from here: only the same request may be repeated.
    next: Option<u64>,
}

/// Stored conversations by the id of the reply that they end with.
#[derive(Default)]
pub(super) struct Threads {
    stored: HashMap<Arc<str>, End>,
    bytes: usize,
    uses: u64,
    room: Option<Room>,
}

/// Hash of a request's own messages, without stored ones.
fn prompt_hash(prompt: &Prompt) -> u64 {
    let bytes: Vec<u8> = prompt.items.iter().flat_map(|i| i.hash.to_le_bytes()).collect();
    content_hash(&bytes)
}

impl Threads {
    /// Nothing is kept beyond this.
    pub(super) fn within(room: Room) -> Self {
        Threads { room: Some(room), ..Threads::default() }
    }

    /// The prompt with everything that the provider has of its thread.
    pub(super) fn expand(&mut self, prompt: Prompt) -> Result<Prompt, ModelError> {
        let Some(PromptThread::Continue(after)) = &prompt.thread else { return Ok(prompt) };
        let now = prompt_hash(&prompt);
        let Some(end) =
            self.stored.get_mut(after).filter(|end| end.next.is_none_or(|next| next == now))
        else {
            let refused = ModelError::invalid(format!("no thread ends with the message `{after}`"));
            let code = Some("thread_not_found".into());
            return Err(ModelError { status: 404, code, ..refused });
        };
        self.uses += 1;
        end.used = self.uses;
        let stored = &end.whole;
        let behind = stored.items.iter().map(|i| i.message).max().unwrap_or(0);
        let mut items = stored.items.clone();
        items.extend(prompt.items.iter().cloned().map(|mut i| {
            // A request for a compaction is sent in addition to the messages.
            i.message += if i.message > 0 { behind } else { 0 };
            i
        }));
        Ok(Prompt { items, tools: stored.tools.clone(), tools_cache: stored.tools_cache, ..prompt })
    }

    /// Stores a conversation and the reply to it.
    pub(super) fn keep(&mut self, mut whole: Prompt, id: &Arc<str>, reply: &Reply) {
        let before = match &whole.thread {
            Some(PromptThread::Continue(after)) => Some(after.clone()),
            _ => None,
        };
        if let Some(after) = &before {
            self.went_on(after, &whole);
        }
        for i in whole.items.iter_mut().filter(|i| i.message > 0) {
            i.cache = None;
        }
        let message = whole.items.iter().map(|i| i.message).max().unwrap_or(0) + 1;
        whole.items.retain(|i| !matches!(*i.content, Content::CompactionTrigger(_)));
        whole.items.extend(
            reply.parts.iter().map(|p| Item::new(Role::Assistant, content(p), message, None)),
        );
        let bytes = whole.items.iter().map(|i| i.text().len()).sum::<usize>()
            + whole.tools.as_ref().map_or(0, |t| t.json.get().len());
        self.uses += 1;
        self.drop_end(id);
        self.bytes += bytes;
        self.stored.insert(id.clone(), End { whole, bytes, used: self.uses, before, next: None });
        self.make_room(id);
    }

    /// A thread continues from an end, so the end before it is no longer needed.
    fn went_on(&mut self, after: &Arc<str>, whole: &Prompt) {
        let Some(end) = self.stored.get_mut(after) else { return };
        let new = whole.items.get(end.whole.items.len()..).unwrap_or_default().to_vec();
        end.next = Some(prompt_hash(&Prompt { items: new, ..whole.clone() }));
        if let Some(old) = end.before.take() {
            self.drop_end(&old);
        }
    }

    fn drop_end(&mut self, id: &Arc<str>) {
        if let Some(end) = self.stored.remove(id) {
            self.bytes -= end.bytes;
        }
    }

    fn make_room(&mut self, newest: &Arc<str>) {
        let Some(room) = self.room else { return };
        while self.stored.len() > room.ends || self.bytes > room.bytes {
            let others = self.stored.iter().filter(|(id, _)| *id != newest);
            let Some(oldest) = others.min_by_key(|(_, end)| end.used).map(|(id, _)| id.clone())
            else {
                return;
            };
            self.drop_end(&oldest);
        }
    }
}

/// A part of a reply as a client would send it back.
fn content(part: &Part) -> Content {
    match part.clone() {
        Part::Reasoning { text, encrypted } => {
            Content::Reasoning { text, encrypted: encrypted.filter(|e| !e.is_empty()) }
        }
        Part::Call(ToolCall { id, name, arguments }) => Content::Call { id, name, arguments },
        Part::Compaction(summary) => {
            Content::Compaction { text: summary.unwrap_or_default(), opaque: None }
        }
        Part::Text(t) => Content::Text(t),
        other => Content::Text(other.text().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(words: &str, thread: PromptThread) -> Prompt {
        let items = vec![Item::new(Role::User, Content::Text(words.into()), 1, None)];
        Prompt { thread: Some(thread), ..Prompt::new("m", items) }
    }

    /// Asks and stores a reply of five bytes under this id.
    fn ask(
        t: &mut Threads,
        words: &str,
        thread: PromptThread,
        id: &str,
    ) -> Result<Vec<String>, u16> {
        let whole = t.expand(prompt(words, thread)).map_err(|e| e.status)?;
        let reply = Reply { parts: vec![Part::Text("reply".into())], ..Reply::default() };
        let shown = whole.items.iter().map(|i| i.text().to_string()).collect();
        t.keep(whole, &id.into(), &reply);
        Ok(shown)
    }

    fn after(id: &str) -> PromptThread {
        PromptThread::Continue(id.into())
    }

    fn words(all: &[&str]) -> Result<Vec<String>, u16> {
        Ok(all.iter().map(|w| (*w).to_string()).collect())
    }

    #[test]
    fn a_reply_that_never_arrived_can_be_asked_for_again() {
        let mut t = Threads::default();
        ask(&mut t, "one", PromptThread::Create, "a").unwrap();
        assert_eq!(ask(&mut t, "two", after("a"), "b"), words(&["one", "reply", "two"]));
        assert_eq!(
            ask(&mut t, "other", after("a"), "x"),
            Err(404),
            "that is not a retry, and the thread has continued"
        );
        assert_eq!(ask(&mut t, "two", after("a"), "c"), words(&["one", "reply", "two"]));
        assert_eq!(
            ask(&mut t, "two", after("a"), "d"),
            words(&["one", "reply", "two"]),
            "and again"
        );
        assert_eq!(
            ask(&mut t, "three", after("d"), "e"),
            words(&["one", "reply", "two", "reply", "three"])
        );
        assert_eq!(
            ask(&mut t, "two", after("a"), "x"),
            Err(404),
            "a client that continues has seen the reply"
        );
        assert_eq!(t.stored.len(), 4, "two ends of the thread, and two replies that went astray");
    }

    #[test]
    fn a_long_thread_is_kept_twice_and_no_more() {
        let mut t = Threads::default();
        ask(&mut t, "word", PromptThread::Create, "0").unwrap();
        for i in 0..100 {
            ask(&mut t, "word", after(&i.to_string()), &(i + 1).to_string()).unwrap();
        }
        assert_eq!(t.stored.len(), 2);
        // Questions of four bytes, replies of five: 101 rounds and 100.
        assert_eq!(t.bytes, 201 * 9);
    }

    #[test]
    fn what_was_used_least_recently_goes_first() {
        let mut t = Threads::within(Room { ends: 3, bytes: 100 });
        for id in ["a", "b", "c"] {
            ask(&mut t, "word", PromptThread::Create, id).unwrap();
        }
        t.expand(prompt("more", after("a"))).unwrap();
        ask(&mut t, "word", PromptThread::Create, "d").unwrap();
        let there = |t: &mut Threads| {
            ["a", "b", "c", "d"].map(|id| t.expand(prompt("more", after(id))).is_ok())
        };
        assert_eq!(there(&mut t), [true, false, true, true]);
        // 27 bytes are there, and 88 come: the two oldest have to go.
        ask(&mut t, &"x".repeat(83), PromptThread::Create, "e").unwrap();
        assert_eq!((there(&mut t), t.bytes), ([false, false, false, true], 97));
        // A conversation larger than the limit is kept until the next one arrives.
        ask(&mut t, &"x".repeat(200), PromptThread::Create, "f").unwrap();
        assert_eq!((t.stored.len(), t.bytes), (1, 205));
    }
}
