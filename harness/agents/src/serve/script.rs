//! Replies out of a session: the recorded path, for any client.
//!
//! A reply is found by the end of a request, which survives every compaction in between: tool
//! results of recorded calls are followed by the reply that followed them, a user message by the
//! replies to the recorded message with the same text. If neither fits, the next unused reply is
//! given. The same request gets the same reply again, so a client may retry.

use std::sync::Arc;

use ctxbench_core::request::Thread;
use ctxbench_core::{Action, BlockKind, ModelError, Part, Role, tokens};
use ctxbench_provider::Prompt;
use ctxbench_session::Session;
use ctxbench_util::lru_map::LruMap;

use super::speaker::{Arrived, ModelAnswer, Speaker};
use ctxbench_replay::Path;

/// End of a request, after the last reply in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// Calls with results in it.
    pub(super) results: Vec<Arc<str>>,
    /// Texts of the user, one per piece.
    pub(super) words: Vec<Arc<str>>,
}

impl Tail {
    pub(super) fn new(prompt: &Prompt) -> Tail {
        let mut tail = Tail::default();
        for item in prompt.items.iter().rev().take_while(|i| i.role != Role::Assistant) {
            match (item.kind, &item.call) {
                (BlockKind::Output, Some(call)) => tail.results.push(call.id.clone()),
                (BlockKind::User, _) if item.role == Role::User => {
                    tail.words.push(item.text.clone());
                }
                _ => {}
            }
        }
        tail.results.reverse();
        tail.words.reverse();
        tail
    }

    /// Returns whether it contains these texts of the user.
    fn contains_texts(&self, words: &[Arc<str>]) -> bool {
        let holds =
            |w: &Arc<str>| !w.trim().is_empty() && self.words.iter().any(|t| t.contains(w.trim()));
        !words.is_empty() && words.iter().all(holds)
    }
}

/// User message and the replies that followed.
#[derive(Debug)]
struct ScriptTurn {
    words: Vec<Arc<str>>,
    replies: Vec<Vec<Part>>,
}

/// Reply by its turn and its index in it. An index after the last reply of a turn is the closing
/// text that the recording lacks.
type ReplyIndex = (usize, usize);

/// Said where a recorded turn ends with a call.
const LAST_WORDS: &str = "Done.";

/// The replies of a session in order.
#[derive(Debug)]
pub struct ReplyScript {
    turns: Vec<ScriptTurn>,
    /// Position of the next reply.
    next: ReplyIndex,
    /// Reply given to each request, by its hash.
    given: LruMap<u64, ReplyIndex>,
    /// Reply that is being given, with the hash of its request.
    giving: Option<(u64, ReplyIndex)>,
    /// Whether a request offered tools: then a request without tools is a side request.
    tools_seen: bool,
}

/// Maximum number of requests that get the same reply again.
const MAX_GIVEN: usize = 100_000;

impl ReplyScript {
    /// The replies of a session's main conversation.
    pub fn new(session: &Session) -> ReplyScript {
        let mut turns = Vec::new();
        for m in Path::recorded(session).moves {
            let Action::User(said) = m.action else { continue };
            let text = |p: &Part| Some(Arc::from(p.as_text()?));
            let words = said.parts.iter().filter_map(text).collect();
            let replies: Vec<_> = m.steps.into_iter().map(|s| s.parts).collect();
            if !replies.is_empty() {
                turns.push(ScriptTurn { words, replies });
            }
        }
        let given = LruMap::new(MAX_GIVEN);
        ReplyScript { turns, next: (0, 0), given, giving: None, tools_seen: false }
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Returns the position of the reply to a prompt; `None` when the session is over.
    fn find(&self, prompt: &Prompt) -> Option<(u64, ReplyIndex)> {
        let mut bytes: Vec<u8> = prompt.items.iter().flat_map(|i| i.hash.to_le_bytes()).collect();
        // In a thread the same text may come again and mean the next step.
        if let Some(Thread::Continue { after, .. }) = &prompt.thread {
            bytes.extend(after.as_bytes());
        }
        let key = tokens::content_hash(&bytes);
        let tail = Tail::new(prompt);
        let known = self.given.peek(&key).map(|(at, _)| *at);
        let at = known.or_else(|| self.fitting(&tail)).unwrap_or(self.next);
        (at.0 < self.turns.len()).then_some((key, at))
    }

    /// The reply that followed such a tail.
    fn fitting(&self, tail: &Tail) -> Option<ReplyIndex> {
        if !tail.results.is_empty() {
            return self.after_results(&tail.results);
        }
        let (turn, reply) = self.next;
        let fits = |t: &usize| self.turns.get(*t).is_some_and(|t| tail.contains_texts(&t.words));
        // A running turn continues, though a compaction may show its first text again.
        if reply > 0 && fits(&turn) {
            return Some(self.next);
        }
        let later = (turn..self.turns.len()).find(fits);
        later.or_else(|| (0..turn).rev().find(fits)).map(|t| (t, 0))
    }

    /// Returns the reply after the one that made one of these calls: the first from the current
    /// position, or the last before it.
    fn after_results(&self, results: &[Arc<str>]) -> Option<ReplyIndex> {
        let calls = |parts: &[Part]| {
            parts.iter().any(|p| matches!(p, Part::Call(c) if results.contains(&c.id)))
        };
        let made = |(t, turn): (usize, &ScriptTurn)| -> Vec<ReplyIndex> {
            let behind = turn.replies.iter().enumerate().filter(|(_, parts)| calls(parts));
            behind.map(|(i, _)| (t, i + 1)).collect()
        };
        let all: Vec<ReplyIndex> = self.turns.iter().enumerate().flat_map(made).collect();
        all.iter().find(|at| **at >= self.next).or_else(|| all.last()).copied()
    }

    fn parts(&self, (turn, reply): ReplyIndex) -> Vec<Part> {
        let last_words = || vec![Part::Text(LAST_WORDS.into())];
        self.turns[turn].replies.get(reply).cloned().unwrap_or_else(last_words)
    }

    fn gave(&mut self, key: u64, at: ReplyIndex) {
        self.given.insert(key, at);
        let (turn, reply) = at;
        let ends = |parts: &Vec<Part>| !parts.iter().any(|p| matches!(p, Part::Call(_)));
        let of = &self.turns[turn].replies;
        let over = reply + 1 > of.len() || (reply + 1 == of.len() && of.last().is_some_and(ends));
        let next = if over { (turn + 1, 0) } else { (turn, reply + 1) };
        self.next = self.next.max(next);
    }
}

impl Speaker for ReplyScript {
    fn answer(&mut self, request: &Arrived, prompt: &Prompt) -> Result<ModelAnswer, ModelError> {
        let offers = prompt.tools.is_some();
        self.tools_seen |= offers;
        self.giving = None;
        if request.wants_compaction() || (!offers && self.tools_seen) {
            return Ok(ModelAnswer::Summary(prompt.clone()));
        }
        let (key, at) = self.find(prompt).ok_or_else(ModelError::ended)?;
        self.giving = Some((key, at));
        let mut parts = self.parts(at);
        if !request.wire.rules.always_thinks && !request.thinking {
            parts.retain(|p| !matches!(p, Part::Reasoning { .. }));
        }
        Ok(ModelAnswer::Parts(parts))
    }

    fn mark_delivered(&mut self) {
        if let Some((key, at)) = self.giving.take() {
            self.gave(key, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use ctxbench_core::block::Draft;
    use ctxbench_provider::{Item, plain};
    use serde_json::{Value, json};

    use super::*;

    /// Words of the user, and the replies with their calls.
    type Turn<'a> = (&'a str, &'a [(&'a str, &'a [&'a str])]);

    fn script(turns: &[Turn<'_>]) -> ReplyScript {
        let mut entries = Vec::new();
        for (words, replies) in turns {
            entries.push(json!({"type": "user", "id": words, "text": words}));
            for (text, calls) in *replies {
                let made: Vec<Value> = calls
                    .iter()
                    .map(|id| json!({"id": id, "name": "read", "arguments": "{}"}))
                    .collect();
                entries.push(json!({"type": "assistant", "id": text, "text": text, "calls": made}));
                let result = |id| json!({"type": "tool", "call_id": id, "output": "out"});
                entries.extend(calls.iter().map(result));
            }
        }
        let entries = serde_json::from_value(entries.into()).unwrap();
        ReplyScript::new(&Session { entries, ..Default::default() })
    }

    const THREE_TURNS: &[Turn<'_>] = &[
        ("first", &[("one", &["c1"]), ("two", &[])]),
        ("go on", &[("three", &[])]),
        ("go on", &[("four", &[])]),
    ];

    /// Returns a prompt of words of the user, and of results of calls (`c1`).
    fn prompt(pieces: &[&str]) -> Prompt {
        let items = pieces.iter().enumerate().map(|(i, piece)| {
            let content = match piece.strip_prefix('c').filter(|n| n.parse::<u8>().is_ok()) {
                None => plain(*piece),
                Some(_) => Draft::output((*piece).into(), "".into(), "out".into(), false),
            };
            Item::new(content.role, content, i + 1, None)
        });
        Prompt::new("m", items.collect())
    }

    fn ask(s: &mut ReplyScript, prompt: &Prompt) -> Option<String> {
        let (key, at) = s.find(prompt)?;
        let parts = s.parts(at);
        s.gave(key, at);
        parts.iter().find_map(|p| p.as_text().map(str::to_string))
    }

    #[test]
    fn replies_follow_what_a_request_ends_with() {
        type Requests<'a> = &'a [(&'a [&'a str], Option<&'a str>)];
        let cases: [(&[Turn<'_>], Requests<'_>); 4] = [
            (
                THREE_TURNS,
                &[
                    (&["<reminder>\nfirst"], Some("one")),
                    // The conversation was compacted in between.
                    (&["a summary", "c1"], Some("two")),
                    (&["go on"], Some("three")),
                    (&["go on"], Some("three")),
                    (&["a summary", "go on"], Some("four")),
                    (&["something else"], None),
                ],
            ),
            // What fits nothing gets the next reply.
            (
                THREE_TURNS,
                &[
                    (&["unknown 1"], Some("one")),
                    (&["unknown 2"], Some("two")),
                    (&["unknown 3"], Some("three")),
                    (&["unknown 4"], Some("four")),
                ],
            ),
            // A running turn continues when its first words are shown again.
            (
                &[("first", &[("one", &["c1"]), ("two", &["c2"]), ("three", &[])])],
                &[
                    (&["first"], Some("one")),
                    (&["first", "a summary, no results"], Some("two")),
                    (&["first", "another summary"], Some("three")),
                ],
            ),
            // A turn that ends with a call gets a closing text.
            (
                &[("first", &[("one", &["c1"])]), ("second", &[("two", &[])])],
                &[
                    (&["first"], Some("one")),
                    (&["first", "c1"], Some(LAST_WORDS)),
                    (&["second"], Some("two")),
                ],
            ),
        ];
        for (turns, asked) in cases {
            let mut s = script(turns);
            for (pieces, want) in asked {
                assert_eq!(ask(&mut s, &prompt(pieces)).as_deref(), *want, "{pieces:?}");
            }
        }
    }

    #[test]
    fn in_a_thread_the_same_words_are_a_retry_only_behind_the_same_reply() {
        let mut s = script(THREE_TURNS);
        let mut ask = |after: &str| {
            let thread = Some(Thread::Continue { after: after.into(), held: 0 });
            super::tests::ask(&mut s, &Prompt { thread, ..prompt(&["go on"]) })
        };
        let all = [ask("a2"), ask("a2"), ask("a3")];
        assert_eq!(all.map(Option::unwrap), ["three", "three", "four"]);
    }
}
