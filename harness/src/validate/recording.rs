//! A recording as a row of model calls: what the provider counted for each, and what stood before it.
//!
//! The readers of formats (`claude_code.rs`, `codex.rs`, `pi.rs`) hand over lines in file order; this builder finds which earlier call
//! each call's prompt continues, by the parents that the lines name.

use std::collections::HashMap;

use ctxbench_core::tokens::content_hash;

use super::content::Counted;

/// What the provider counted for the input of one call, tokens. The three add up to the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Neither read nor written.
    pub input: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache.
    pub write: u64,
    /// Output, where the recording tells it.
    pub output: u64,
    /// Written for the long lifetime; `None` = nothing written or not told.
    pub long: Option<bool>,
}

impl Counters {
    /// The whole prompt.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.read).saturating_add(self.write)
    }
}

/// What between two calls of a conversation may have changed the prefix, as the file shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// Earlier content was cleared or replaced.
    Edit,
    /// A parameter of the request that is part of the cached prefix.
    Settings,
    /// A request of which no counters were recorded.
    Uncounted,
}

/// A [`NoteKind`] with its place.
#[derive(Clone, Debug)]
pub struct Note {
    /// What it can explain.
    pub kind: NoteKind,
    /// Line, from 1.
    pub line: usize,
    /// For people.
    pub text: String,
}

/// A compaction that the file records.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// Line, from 1.
    pub line: usize,
    /// Tokens before, as the program counted.
    pub pre_tokens: Option<u64>,
    /// Tokens after, as the program counted.
    pub post_tokens: Option<u64>,
    /// When the request that wrote the summary was sent at the earliest, ms.
    pub asked_ms: Option<i64>,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Line of its first part, from 1.
    pub line: usize,
    /// Which conversation of the file: the main one, or a subagent's.
    pub conversation: String,
    /// Model that answered.
    pub model: String,
    /// When the request can have been sent at the earliest: time of the last thing it had to contain, ms since 1970.
    pub sent_ms: Option<i64>,
    /// When the first part of the reply was there, ms since 1970.
    pub began_ms: Option<i64>,
    /// The provider's counters.
    pub counters: Counters,
    /// The call that this prompt continues.
    pub before: Option<usize>,
    /// The compaction that this context begins with, where nothing was called since.
    pub boundary: Option<usize>,
    /// Nothing in the file says what stood before; it is taken to continue the conversation.
    pub adopted: bool,
    /// Identity of the end of the prompt: two calls that end with the same line ask the same again.
    pub key: u64,
    /// Content blocks of the reply.
    pub reply_blocks: usize,
    /// Content blocks that came in since the call before.
    pub input_blocks: usize,
    /// Our count of the reply.
    pub reply: Counted,
    /// Our count of what came in since the call before.
    pub inputs: Counted,
    /// Evidence between the conversation's previous call and this one.
    pub notes: Vec<Note>,
}

/// Which way the calls went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the provider itself; why we think so.
    Direct(String),
    /// Through a proxy or another cloud; why we think so.
    Gateway(String),
    /// The recording does not say.
    Unknown(String),
}

/// A recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Name of the format.
    pub format: &'static str,
    /// Calls in file order.
    pub calls: Vec<Call>,
    /// Compactions in file order.
    pub boundaries: Vec<Boundary>,
    /// Which way the calls went.
    pub route: Route,
    /// What the reader had to say.
    pub warnings: Vec<String>,
}

impl Recording {
    /// The call before each call in its conversation, in file order.
    pub fn previous(&self) -> Vec<Option<usize>> {
        let mut last: HashMap<&str, usize> = HashMap::new();
        self.calls.iter().enumerate().map(|(i, c)| last.insert(&c.conversation, i)).collect()
    }
}

#[derive(Clone, Copy)]
enum Stands {
    Call(usize),
    Boundary(usize),
    Other,
}

struct Node {
    parent: Option<String>,
    stands: Stands,
    stamp: Option<i64>,
}

#[derive(Default)]
struct Pending {
    blocks: usize,
    counted: Counted,
    notes: Vec<Note>,
    last_stamp: Option<i64>,
}

/// Where a line stands: its name, the name of the line before it in the conversation, its time.
#[derive(Clone, Debug, Default)]
pub(super) struct At {
    pub(super) line: usize,
    pub(super) id: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) stamp: Option<i64>,
}

/// One part of a reply, with the counters of the whole.
pub(super) struct ReplyLine {
    pub(super) at: At,
    pub(super) conversation: String,
    /// The same for all lines of one reply.
    pub(super) response: String,
    pub(super) model: String,
    pub(super) counters: Counters,
    pub(super) sent_ms: Option<i64>,
    pub(super) blocks: usize,
    pub(super) counted: Counted,
}

/// Collects lines into a [`Recording`].
#[derive(Default)]
pub(super) struct Builder {
    pub(super) calls: Vec<Call>,
    pub(super) boundaries: Vec<Boundary>,
    nodes: HashMap<String, Node>,
    responses: HashMap<String, usize>,
    pending: HashMap<String, Pending>,
    latest: HashMap<String, usize>,
}

impl Builder {
    fn node(&mut self, at: &At, stands: Stands) {
        if let Some(id) = &at.id {
            self.nodes.insert(id.clone(), Node { parent: at.parent.clone(), stands, stamp: at.stamp });
        }
    }

    /// The first line of the conversation that a line belongs to, by name.
    pub(super) fn root(&self, at: &At) -> Option<String> {
        let mut root = at.id.clone();
        let mut next = at.parent.clone();
        for _ in 0..=self.nodes.len() {
            match next.as_ref().and_then(|p| self.nodes.get(p)) {
                Some(n) => root = std::mem::replace(&mut next, n.parent.clone()),
                None => break,
            }
        }
        root
    }

    /// A line that is only a link of the chain.
    pub(super) fn link(&mut self, at: &At) {
        self.node(at, Stands::Other);
    }

    /// Content that goes to the model.
    pub(super) fn input(&mut self, at: &At, conversation: &str, blocks: usize, counted: &Counted) {
        self.node(at, Stands::Other);
        let p = self.pending.entry(conversation.to_string()).or_default();
        p.blocks += blocks;
        p.counted.add(counted);
        p.last_stamp = at.stamp.or(p.last_stamp);
    }

    /// Evidence for the next call of a conversation.
    pub(super) fn note(&mut self, conversation: &str, note: Note) {
        self.pending.entry(conversation.to_string()).or_default().notes.push(note);
    }

    /// A compaction.
    pub(super) fn boundary(&mut self, at: &At, conversation: &str, pre_tokens: Option<u64>, post_tokens: Option<u64>) {
        let p = self.pending.entry(conversation.to_string()).or_default();
        let asked_ms = p.last_stamp.or(at.stamp);
        // What came before it is in the summary and not in the next prompt.
        *p = Pending { last_stamp: at.stamp, ..Pending::default() };
        self.boundaries.push(Boundary { line: at.line, pre_tokens, post_tokens, asked_ms });
        self.node(at, Stands::Boundary(self.boundaries.len() - 1));
    }

    /// A line of a reply. Lines of one response are one call, counted once.
    pub(super) fn reply(&mut self, line: ReplyLine) {
        if let Some(&i) = self.responses.get(&line.response) {
            let call = &mut self.calls[i];
            call.reply_blocks += line.blocks;
            call.reply.add(&line.counted);
            call.counters = line.counters;
            self.node(&line.at, Stands::Call(i));
            return;
        }
        let i = self.calls.len();
        let (before, boundary, adopted, parent_stamp) = self.ancestor(&line);
        let p = self.pending.remove(&line.conversation).unwrap_or_default();
        let began_ms = line.at.stamp;
        let sent_ms =
            line.sent_ms.or_else(|| [parent_stamp, p.last_stamp].into_iter().flatten().filter(|s| began_ms.is_none_or(|b| *s <= b)).max());
        let end = line.at.parent.clone().unwrap_or_else(|| format!("call {i}"));
        self.calls.push(Call {
            line: line.at.line,
            conversation: line.conversation.clone(),
            model: line.model,
            sent_ms: sent_ms.or(began_ms),
            began_ms,
            counters: line.counters,
            before,
            boundary,
            adopted,
            key: content_hash(end.as_bytes()),
            reply_blocks: line.blocks,
            input_blocks: p.blocks,
            reply: line.counted,
            inputs: p.counted,
            notes: p.notes,
        });
        self.node(&line.at, Stands::Call(i));
        self.responses.insert(line.response, i);
        self.latest.insert(line.conversation, i);
    }

    /// What the prompt of a reply continues: the nearest call or compaction up the chain of parents. A chain that leaves the file goes on
    /// with the conversation's last call: programs that resume a session do not always name the parent.
    fn ancestor(&self, line: &ReplyLine) -> (Option<usize>, Option<usize>, bool, Option<i64>) {
        let mut next = line.at.parent.as_ref();
        let stamp = next.and_then(|p| self.nodes.get(p)).and_then(|n| n.stamp);
        for _ in 0..=self.nodes.len() {
            let Some(node) = next.and_then(|p| self.nodes.get(p)) else { break };
            match node.stands {
                Stands::Call(i) if self.calls[i].conversation == line.conversation => return (Some(i), None, false, stamp),
                Stands::Boundary(b) => return (None, Some(b), false, stamp),
                _ => next = node.parent.as_ref(),
            }
        }
        let last = self.latest.get(&line.conversation).copied();
        (last, None, last.is_some(), stamp)
    }

    /// The last call of a conversation so far.
    pub(super) fn last(&self, conversation: &str) -> Option<usize> {
        self.latest.get(conversation).copied()
    }
}
