//! The model calls of a recording: the provider's counters of each call, and the content before it.
//!
//! The steps that a format's reader found come in file order; the builder finds which earlier call
//! each call's prompt continues, by the parents that the lines name.

use std::collections::HashMap;

use ctxbench_core::content::Part;
use ctxbench_core::tokens::content_hash;
use ctxbench_scenarios::InputError;
pub use ctxbench_scenarios::formats::{Counters, NoteKind, Route};
use ctxbench_scenarios::formats::{Input, Piece, Recording, Reply, Step, View, What, millis};

use super::content::Counted;

/// A [`NoteKind`] with its place.
#[derive(Clone, Debug)]
pub struct Note {
    /// Problem that the note can explain.
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
    /// When the request can have been sent at the earliest: time of the last thing it had to
    /// contain, ms since 1970.
    pub sent_ms: Option<i64>,
    /// When the first part of the reply was there, ms since 1970.
    pub began_ms: Option<i64>,
    /// The provider's counters.
    pub counters: Counters,
    /// The call that this prompt continues.
    pub before: Option<usize>,
    /// The compaction that this context begins with, where nothing was called since.
    pub boundary: Option<usize>,
    /// Nothing in the file names the previous call; the call is taken to continue the conversation.
    pub adopted: bool,
    /// Identity of the end of the prompt: two calls that end with the same line ask the same again.
    pub key: u64,
    /// Content blocks of the reply.
    pub reply_blocks: usize,
    /// Number of thinking blocks among them.
    pub thoughts: usize,
    /// The user said something since the call before, and no tool result came with it.
    pub begins_turn: bool,
    /// Content blocks that came in since the call before.
    pub input_blocks: usize,
    /// Our count of the reply.
    pub reply: Counted,
    /// Our count of the content added since the previous call.
    pub inputs: Counted,
    /// Evidence between the conversation's previous call and this one.
    pub notes: Vec<Note>,
}

/// The calls of a recording.
#[derive(Clone, Debug)]
pub struct Calls {
    /// Name of the format.
    pub format: &'static str,
    /// Calls in file order.
    pub calls: Vec<Call>,
    /// Compactions in file order.
    pub boundaries: Vec<Boundary>,
    /// Which way the calls went.
    pub route: Route,
    /// Warnings of the reader.
    pub warnings: Vec<String>,
}

impl Calls {
    /// The calls of a recording. A broken line is an error, because the calls around it would be
    /// compared wrongly; one that breaks off at the end is not.
    pub(super) fn from_recording(
        format: &'static str,
        recording: &Recording,
        file: &str,
    ) -> Result<Calls, InputError> {
        if let Some((line, what)) = recording.broken.clone() {
            let expected = "one JSON object per line, as the program wrote it";
            return Err(wrong(file, line, what, expected));
        }
        let mut b = Builder::default();
        for step in recording.steps.iter().filter(|s| s.view != View::Session) {
            b.step(step)
                .map_err(|what| wrong(file, step.line, what, "a number of tokens, 0 or more"))?;
        }
        if b.calls.is_empty() {
            let what = "no model call with counters up to here".into();
            return Err(wrong(file, recording.last_line, what, "at least one reply with usage"));
        }
        Ok(Calls {
            format,
            calls: b.calls,
            boundaries: b.boundaries,
            route: recording.route.clone(),
            warnings: recording.warnings.clone(),
        })
    }

    /// The call before each call in its conversation, in file order.
    pub fn previous(&self) -> Vec<Option<usize>> {
        let mut last: HashMap<&str, usize> = HashMap::new();
        self.calls.iter().enumerate().map(|(i, c)| last.insert(&c.conversation, i)).collect()
    }
}

/// The conversation of everything outside subagents.
const MAIN: &str = "main";

#[derive(Clone, Copy)]
enum NodeKind {
    Call(usize),
    Boundary(usize),
    Other,
}

struct Node {
    parent: Option<String>,
    stands: NodeKind,
    stamp: Option<i64>,
}

#[derive(Default)]
struct Pending {
    blocks: usize,
    said: bool,
    results: bool,
    counted: Counted,
    notes: Vec<Note>,
    last_stamp: Option<i64>,
}

/// Position of a line: its name, the name of the previous line in the conversation, its time.
#[derive(Clone, Debug, Default)]
struct At {
    line: usize,
    id: Option<String>,
    parent: Option<String>,
    stamp: Option<i64>,
}

/// One part of a reply, with the counters of the whole.
struct ReplyPart {
    at: At,
    conversation: String,
    /// Identifier that all parts of one reply share.
    response: String,
    model: String,
    counters: Counters,
    sent_ms: Option<i64>,
    blocks: usize,
    thoughts: usize,
    counted: Counted,
}

/// A reply with parts and without its counters yet.
#[derive(Default)]
struct Open {
    began: Option<i64>,
    blocks: usize,
    thoughts: usize,
    counted: Counted,
}

/// Collects steps into calls.
#[derive(Default)]
struct Builder {
    calls: Vec<Call>,
    boundaries: Vec<Boundary>,
    open: Open,
    nodes: HashMap<String, Node>,
    responses: HashMap<String, usize>,
    pending: HashMap<String, Pending>,
    latest: HashMap<String, usize>,
}

impl Builder {
    /// Takes a step in; an error says which counter is none.
    fn step(&mut self, step: &Step) -> Result<(), String> {
        let at = At {
            line: step.line,
            id: step.name.clone(),
            parent: step.parent.clone(),
            stamp: step.stamp.as_deref().and_then(millis),
        };
        let conversation = step.agent.as_deref().unwrap_or(MAIN);
        match &step.what {
            What::Link
            | What::System(_)
            | What::Tools(_)
            | What::RolledBack { .. }
            | What::Unknown(_) => {
                self.link(&at);
            }
            What::Input(input) | What::Summary(input) => self.input(&at, conversation, input),
            What::Note { kind, text } => self.note(&at, conversation, *kind, text),
            What::Cleared => {
                self.note(&at, conversation, NoteKind::Edit, "the conversation was cleared");
            }
            What::Compaction(c) => {
                self.boundary(&at, conversation, c.pre_tokens, c.post_tokens);
            }
            What::Reply(reply) => return self.part(at, conversation, reply),
            What::Counted { counters, model } => {
                let Open { began, blocks, thoughts, counted } = std::mem::take(&mut self.open);
                self.reply(ReplyPart {
                    response: format!("line {}", at.line),
                    at: At { stamp: began.or(at.stamp), ..at },
                    conversation: conversation.to_string(),
                    model: model.clone(),
                    counters: checked(counters)?,
                    sent_ms: None,
                    blocks,
                    thoughts,
                    counted,
                });
            }
        }
        Ok(())
    }

    fn part(&mut self, at: At, conversation: &str, reply: &Reply) -> Result<(), String> {
        let counted = count(&reply.pieces);
        let thinking = |p: &&Piece| matches!(p, Piece::Said(Part::Reasoning { .. }));
        let thoughts = reply.pieces.iter().filter(thinking).count();
        let Some(response) = &reply.response else {
            self.open.began = self.open.began.or(at.stamp);
            self.open.blocks += reply.blocks;
            self.open.thoughts += thoughts;
            self.open.counted.add(&counted);
            return Ok(());
        };
        match &reply.counters {
            Err(why) => self.note(&at, conversation, NoteKind::Uncounted, why),
            Ok(counters) => self.reply(ReplyPart {
                at: At { stamp: reply.sent_ms.or(at.stamp), ..at },
                conversation: conversation.to_string(),
                response: response.clone(),
                model: reply.model.clone().unwrap_or_default(),
                counters: checked(counters)?,
                sent_ms: reply.sent_ms,
                blocks: reply.blocks,
                thoughts,
                counted,
            }),
        }
        Ok(())
    }

    fn node(&mut self, at: &At, stands: NodeKind) {
        if let Some(id) = &at.id {
            self.nodes
                .insert(id.clone(), Node { parent: at.parent.clone(), stands, stamp: at.stamp });
        }
    }

    /// A line that is only a link of the chain.
    fn link(&mut self, at: &At) {
        self.node(at, NodeKind::Other);
    }

    fn input(&mut self, at: &At, conversation: &str, input: &Input) {
        self.link(at);
        let p = self.pending.entry(conversation.to_string()).or_default();
        p.blocks += input.blocks;
        let result = |piece: &Piece| matches!(piece, Piece::Result { .. });
        p.said |= input.pieces.iter().any(|piece| !result(piece));
        p.results |= input.pieces.iter().any(result);
        p.counted.add(&count(&input.pieces));
        p.last_stamp = at.stamp.or(p.last_stamp);
    }

    /// Evidence for the next call of a conversation.
    fn note(&mut self, at: &At, conversation: &str, kind: NoteKind, text: &str) {
        self.link(at);
        let note = Note { kind, line: at.line, text: text.to_string() };
        self.pending.entry(conversation.to_string()).or_default().notes.push(note);
    }

    /// A compaction.
    fn boundary(
        &mut self,
        at: &At,
        conversation: &str,
        pre_tokens: Option<u64>,
        post_tokens: Option<u64>,
    ) {
        let p = self.pending.entry(conversation.to_string()).or_default();
        let asked_ms = p.last_stamp.or(at.stamp);
        // Content before the compaction is in the summary and not in the next prompt.
        *p = Pending { last_stamp: at.stamp, ..Pending::default() };
        self.boundaries.push(Boundary { line: at.line, pre_tokens, post_tokens, asked_ms });
        self.node(at, NodeKind::Boundary(self.boundaries.len() - 1));
    }

    /// A part of a reply. Those of one response are one call, counted once.
    fn reply(&mut self, line: ReplyPart) {
        if let Some(&i) = self.responses.get(&line.response) {
            let call = &mut self.calls[i];
            call.reply_blocks += line.blocks;
            call.thoughts += line.thoughts;
            call.reply.add(&line.counted);
            call.counters = line.counters;
            self.node(&line.at, NodeKind::Call(i));
            return;
        }
        let i = self.calls.len();
        let (before, boundary, adopted, parent_stamp) = self.ancestor(&line);
        let p = self.pending.remove(&line.conversation).unwrap_or_default();
        let began_ms = line.at.stamp;
        let sent_ms = line.sent_ms.or_else(|| {
            [parent_stamp, p.last_stamp]
                .into_iter()
                .flatten()
                .filter(|s| began_ms.is_none_or(|b| *s <= b))
                .max()
        });
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
            thoughts: line.thoughts,
            begins_turn: p.said && !p.results,
            input_blocks: p.blocks,
            reply: line.counted,
            inputs: p.counted,
            notes: p.notes,
        });
        self.node(&line.at, NodeKind::Call(i));
        self.responses.insert(line.response, i);
        self.latest.insert(line.conversation, i);
    }

    /// Returns the call or compaction that the prompt of a reply continues: the nearest one up the
    /// chain of parents. If the chain leaves the file, it is the last call of the conversation:
    /// programs that resume a session do not always name the parent.
    fn ancestor(&self, line: &ReplyPart) -> (Option<usize>, Option<usize>, bool, Option<i64>) {
        let mut next = line.at.parent.as_ref();
        let stamp = next.and_then(|p| self.nodes.get(p)).and_then(|n| n.stamp);
        for _ in 0..=self.nodes.len() {
            let Some(node) = next.and_then(|p| self.nodes.get(p)) else { break };
            match node.stands {
                NodeKind::Call(i) if self.calls[i].conversation == line.conversation => {
                    return (Some(i), None, false, stamp);
                }
                NodeKind::Boundary(b) => return (None, Some(b), false, stamp),
                _ => next = node.parent.as_ref(),
            }
        }
        let last = self.latest.get(&line.conversation).copied();
        (last, None, last.is_some(), stamp)
    }
}

fn checked(counters: &Counters) -> Result<Counters, String> {
    match counters.wrong.first() {
        Some(wrong) => Err(wrong.told.clone()),
        None => Ok(counters.clone()),
    }
}

fn count(pieces: &[Piece]) -> Counted {
    let mut c = Counted::default();
    for piece in pieces {
        match piece {
            Piece::Said(part) | Piece::Added(part, _) => match part {
                Part::Text(text) => c.words(text),
                Part::Reasoning { text, .. } if !text.is_empty() => c.words(text),
                Part::Call(call) => c.call(&call.name, &call.arguments),
                _ => c.unknown += 1,
            },
            Piece::Result { pieces, .. } => {
                for piece in pieces {
                    match piece {
                        Piece::Said(Part::Text(text)) => c.output(text),
                        _ => c.unknown += 1,
                    }
                }
            }
            Piece::Shown(_) => {}
            Piece::Opaque | Piece::Unknown(_) | Piece::Unanswered { .. } => c.unknown += 1,
        }
    }
    c
}

pub(super) fn wrong(file: &str, line: usize, what: String, expected: &str) -> InputError {
    let fix = "give the recording as the program wrote it".to_string();
    InputError { file: file.into(), line, what, expected: expected.into(), fix }
}
