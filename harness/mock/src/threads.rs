//! Conversations that the provider keeps: a continued request sends only its new messages.
//!
//! Cache breakpoints of stored messages are dropped, those of the system prompt stay: a request
//! takes only four, and the provider's treatment of stored ones is not published (assumed). A
//! thread continues from its last reply only. A client that never saw that reply, because the
//! connection broke, sends the previous request again and is answered (also assumed).

use std::collections::{HashMap, VecDeque};

use ctxbench_core::prelude::*;
use ctxbench_core::request::Thread;
use ctxbench_core::tokens::content_hash;
use ctxbench_provider::{Item, Prompt};

/// Maximum number of replies from which a thread can continue, for a server that runs on and on. A
/// conversation has two, its last and the one before.
pub(super) const LIVE: usize = 1_000;

/// A conversation up to one of its replies.
struct End {
    whole: Prompt,
    /// The end before this one.
    before: Option<Arc<str>>,
    /// Hash of the request that continued from here: only the same request may be repeated.
    next: Option<u64>,
}

/// Stored conversations by the id of the reply that they end with.
pub(super) struct Threads {
    ends: HashMap<Arc<str>, End>,
    /// Ids in the order of their replies. Some of the ends are gone.
    order: VecDeque<Arc<str>>,
    max: usize,
}

/// Hash of a request's own messages, without stored ones.
fn prompt_hash(prompt: &Prompt) -> u64 {
    let bytes: Vec<u8> = prompt.items.iter().flat_map(|i| i.hash.to_le_bytes()).collect();
    content_hash(&bytes)
}

impl Threads {
    /// Keeps at most this many replies from which a thread can continue.
    pub(super) fn within(max: usize) -> Self {
        Threads { ends: HashMap::new(), order: VecDeque::new(), max }
    }

    /// The prompt with everything that the provider has of its thread.
    pub(super) fn expand(&mut self, prompt: Prompt) -> Result<Prompt, ModelError> {
        let Some(Thread::Continue { after, .. }) = &prompt.thread else { return Ok(prompt) };
        let now = prompt_hash(&prompt);
        let Some(end) = self.ends.get(after).filter(|end| end.next.is_none_or(|next| next == now))
        else {
            let refused = ModelError::invalid(format!("no thread ends with the message `{after}`"));
            let code = Some("thread_not_found".into());
            return Err(ModelError { status: 404, code, ..refused });
        };
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

    pub(super) fn keep(&mut self, mut whole: Prompt, id: &Arc<str>, reply: &Reply) {
        let before = match &whole.thread {
            Some(Thread::Continue { after, .. }) => Some(after.clone()),
            _ => None,
        };
        if let Some(after) = &before {
            self.went_on(after, &whole);
        }
        for i in whole.items.iter_mut().filter(|i| i.message > 0) {
            i.cache = None;
        }
        let message = whole.items.iter().map(|i| i.message).max().unwrap_or(0) + 1;
        whole.items.retain(|i| i.kind != BlockKind::CompactionTrigger);
        let role = Role::Assistant;
        let said = reply.parts.iter().filter_map(|p| p.draft(role));
        whole.items.extend(said.map(|content| Item::new(role, content, message, None)));
        self.ends.insert(id.clone(), End { whole, before, next: None });
        self.order.push_back(id.clone());
        let is_due =
            |t: &Threads, oldest: &Arc<str>| t.ends.len() > t.max || !t.ends.contains_key(oldest);
        while self.order.front().is_some_and(|oldest| is_due(self, oldest)) {
            if let Some(oldest) = self.order.pop_front() {
                self.ends.remove(&oldest);
            }
        }
    }

    /// A thread continues from an end, so the end before it is no longer needed.
    fn went_on(&mut self, after: &Arc<str>, whole: &Prompt) {
        let Some(end) = self.ends.get_mut(after) else { return };
        let new = whole.items.get(end.whole.items.len()..).unwrap_or_default().to_vec();
        end.next = Some(prompt_hash(&Prompt { items: new, ..whole.clone() }));
        if let Some(old) = end.before.take() {
            self.ends.remove(&old);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::content::Part;
    use ctxbench_provider::plain;

    fn prompt(words: &str, thread: Thread) -> Prompt {
        let items = vec![Item::new(Role::User, plain(words), 1, None)];
        Prompt { thread: Some(thread), ..Prompt::new("m", items) }
    }

    /// Asks and stores a reply of five bytes under this id.
    fn ask(t: &mut Threads, words: &str, thread: Thread, id: &str) -> Result<Vec<String>, u16> {
        let whole = t.expand(prompt(words, thread)).map_err(|e| e.status)?;
        let reply = Reply { parts: vec![Part::Text("reply".into())], ..Reply::default() };
        let shown = whole.items.iter().map(|i| i.text().to_string()).collect();
        t.keep(whole, &id.into(), &reply);
        Ok(shown)
    }

    fn after(id: &str) -> Thread {
        Thread::Continue { after: id.into(), held: 0 }
    }

    #[test]
    fn a_reply_that_never_arrived_can_be_asked_for_again() {
        let mut t = Threads::within(usize::MAX);
        ask(&mut t, "one", Thread::Create, "a").unwrap();
        for (words, thread, id, shown) in [
            ("two", "a", "b", Ok("one reply two")),
            // That is not a retry, and the thread has continued.
            ("other", "a", "x", Err(404)),
            ("two", "a", "c", Ok("one reply two")),
            ("two", "a", "d", Ok("one reply two")),
            ("three", "d", "e", Ok("one reply two reply three")),
            // A client that continues has seen the reply.
            ("two", "a", "x", Err(404)),
        ] {
            let answer = ask(&mut t, words, after(thread), id).map(|all| all.join(" "));
            assert_eq!(answer, shown.map(str::to_string), "{words} {id}");
        }
        assert_eq!(t.ends.len(), 4, "two ends of the thread, and two replies that went astray");
    }

    #[test]
    fn a_long_thread_is_kept_twice_and_the_oldest_reply_is_forgotten_first() {
        let mut t = Threads::within(usize::MAX);
        ask(&mut t, "word", Thread::Create, "0").unwrap();
        for i in 0..100 {
            ask(&mut t, "word", after(&i.to_string()), &(i + 1).to_string()).unwrap();
        }
        assert_eq!(t.ends.len(), 2);
        let mut t = Threads::within(2);
        for id in ["a", "b", "c"] {
            ask(&mut t, "word", Thread::Create, id).unwrap();
        }
        let there = ["a", "b", "c"].map(|id| t.expand(prompt("more", after(id))).is_ok());
        assert_eq!(there, [false, true, true]);
    }
}
