//! Replies out of a session: the recorded path, for any client.
//!
//! A reply is found by what a request ends with, which survives every compaction in between: tool
//! results of recorded calls are followed by the reply that followed them, a user message by the
//! reply to the recorded message whose words it holds. Where nothing fits, the next reply that was
//! not given yet comes. The same request gets the same reply again, so a client may retry.

use std::sync::Arc;

use ctxbench_core::block::Role;
use ctxbench_core::content::Part;
use ctxbench_core::engine::Action;
use ctxbench_core::recent::Recent;
use ctxbench_core::session::Session;
use ctxbench_core::tokens;
use ctxbench_provider::{Content, Prompt, PromptThread};

use crate::replay::{Defaults, Path};

/// What a request ends with, behind the last reply in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// Calls whose results it brings.
    pub(super) results: Vec<Arc<str>>,
    /// What the user says, piece by piece.
    pub(super) words: Vec<Arc<str>>,
}

impl Tail {
    pub(super) fn of(prompt: &Prompt) -> Tail {
        let mut tail = Tail::default();
        for item in prompt.items.iter().rev().take_while(|i| i.role != Role::Assistant) {
            match &item.content {
                Content::Output { id, .. } => tail.results.push(id.clone()),
                Content::Text(t) if item.role == Role::User => tail.words.push(t.clone()),
                _ => {}
            }
        }
        tail.results.reverse();
        tail.words.reverse();
        tail
    }
}

#[derive(Debug)]
struct Scripted {
    after: Tail,
    parts: Vec<Part>,
}

/// The replies of a session in order.
#[derive(Debug)]
pub struct Script {
    steps: Vec<Scripted>,
    next: usize,
    /// What was given to which request.
    given: Recent<u64, usize>,
}

/// So many requests get the same reply again.
const MOST_GIVEN: usize = 100_000;

/// A reply of a script, not yet given.
#[derive(Debug)]
pub(super) struct Found {
    at: usize,
    key: u64,
    pub(super) parts: Vec<Part>,
}

impl Script {
    /// The replies of a session's main conversation.
    pub fn of(session: &Session) -> Script {
        let mut steps = Vec::new();
        for m in Path::recorded(session, &Defaults::STATED).moves {
            let Action::User(said) = m.action else { continue };
            let text = |p: &Part| Some(Arc::from(p.as_text()?));
            let mut after =
                Tail { results: Vec::new(), words: said.parts.iter().filter_map(text).collect() };
            for step in m.steps {
                let results = step.results.iter().map(|r| r.key.clone()).collect();
                steps.push(Scripted { after, parts: step.parts });
                after = Tail { results, words: Vec::new() };
            }
        }
        Script { steps, next: 0, given: Recent::new(MOST_GIVEN) }
    }

    /// Number of replies.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The reply to a prompt; `None` when the session is over.
    pub(super) fn find(&self, prompt: &Prompt) -> Option<Found> {
        let mut bytes: Vec<u8> = prompt.items.iter().flat_map(|i| i.hash.to_le_bytes()).collect();
        // In a thread the same words may come again and mean the next step.
        if let Some(PromptThread::Continue(after)) = &prompt.thread {
            bytes.extend(after.as_bytes());
        }
        let key = tokens::content_hash(&bytes);
        let tail = Tail::of(prompt);
        let at = self
            .given
            .peek(&key)
            .map(|(at, _)| *at)
            .or_else(|| self.fitting(&tail))
            .unwrap_or(self.next);
        self.steps.get(at).map(|s| Found { at, key, parts: s.parts.clone() })
    }

    /// The step that followed such a tail: the first from where the script stands, else the last
    /// before.
    fn fitting(&self, tail: &Tail) -> Option<usize> {
        let fits = |s: &Scripted| {
            if !tail.results.is_empty() {
                return s.after.results.iter().any(|id| tail.results.contains(id));
            }
            let holds = |w: &Arc<str>| {
                !w.trim().is_empty() && tail.words.iter().any(|t| t.contains(w.trim()))
            };
            !s.after.words.is_empty() && s.after.words.iter().all(holds)
        };
        let (before, after) = self.steps.split_at(self.next.min(self.steps.len()));
        after
            .iter()
            .position(fits)
            .map(|i| before.len() + i)
            .or_else(|| before.iter().rposition(fits))
    }

    /// Notes that a reply was given.
    pub(super) fn gave(&mut self, found: &Found) {
        self.given.insert(found.key, found.at);
        self.next = self.next.max(found.at + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::content::ToolCall;
    use ctxbench_core::session::{AssistantEntry, Entry, ToolEntry, UserEntry};
    use ctxbench_provider::Item;

    fn script() -> Script {
        let user = |id: &str, t: &str| {
            Entry::User(UserEntry { id: id.into(), text: Some(t.into()), ..Default::default() })
        };
        let says = |id: &str, t: &str, calls: Vec<ToolCall>| {
            Entry::Assistant(AssistantEntry {
                id: id.into(),
                text: Some(t.into()),
                calls,
                ..Default::default()
            })
        };
        let call = ToolCall { id: "c1".into(), name: "read".into(), arguments: "{}".into() };
        let result = Entry::Tool(ToolEntry {
            call_id: "c1".into(),
            output: Some("out".into()),
            ..Default::default()
        });
        let entries = vec![
            user("u1", "first"),
            says("a1", "one", vec![call]),
            result,
            says("a2", "two", vec![]),
            user("u2", "go on"),
            says("a3", "three", vec![]),
            user("u3", "go on"),
            says("a4", "four", vec![]),
        ];
        Script::of(&Session { entries, ..Default::default() })
    }

    fn prompt(contents: Vec<Content>) -> Prompt {
        let items = contents.into_iter().enumerate().map(|(i, c)| {
            let role = if matches!(c, Content::Output { .. }) { Role::Tool } else { Role::User };
            Item::new(role, c, i + 1, None)
        });
        let items = items.collect();
        Prompt::new("m", items)
    }

    #[test]
    fn replies_follow_what_a_request_ends_with() {
        let mut s = script();
        let mut ask = |contents: Vec<Content>| {
            let found = s.find(&prompt(contents))?;
            s.gave(&found);
            found
                .parts
                .iter()
                .find_map(|p| if let Part::Text(t) = p { Some(t.to_string()) } else { None })
        };
        let said = |t: &str| Content::Text(t.into());
        let result = || Content::Output {
            id: "c1".into(),
            text: "out".into(),
            is_error: false,
            image: None,
        };
        let is = |got: Option<String>, want: Option<&str>| assert_eq!(got.as_deref(), want);
        is(ask(vec![said("<reminder>\nfirst")]), Some("one"));
        // The conversation was compacted in between.
        is(ask(vec![said("a summary"), result()]), Some("two"));
        is(ask(vec![said("go on")]), Some("three"));
        is(ask(vec![said("go on")]), Some("three"));
        is(ask(vec![said("a summary"), said("go on")]), Some("four"));
        is(ask(vec![said("something else")]), None);
    }

    #[test]
    fn in_a_thread_the_same_words_are_a_retry_only_behind_the_same_reply() {
        let mut s = script();
        let mut ask = |after: &str| {
            let thread = Some(PromptThread::Continue(after.into()));
            let found =
                s.find(&Prompt { thread, ..prompt(vec![Content::Text("go on".into())]) }).unwrap();
            s.gave(&found);
            found.parts[0].clone()
        };
        let said = |t: &str| Part::Text(t.into());
        assert_eq!([ask("a2"), ask("a2"), ask("a3")], [said("three"), said("three"), said("four")]);
    }

    #[test]
    fn what_fits_nothing_gets_the_next_reply() {
        let mut s = script();
        for want in ["one", "two", "three", "four"] {
            let found =
                s.find(&prompt(vec![Content::Text(format!("unknown {want}").into())])).unwrap();
            assert_eq!(found.parts[0], Part::Text(want.into()));
            s.gave(&found);
        }
    }
}
