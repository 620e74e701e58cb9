//! Model calls of a recording: the provider's counters of each call, and the content before it.
//!
//! The steps from a format's reader are in file order. The builder determines the earlier call that
//! each call's prompt continues, by the parents of the lines.

use std::collections::HashMap;

use ctxbench_core::content::Part;
use ctxbench_core::tokens::{content_hash, o200k};
use ctxbench_scenarios::InputError;
pub use ctxbench_scenarios::formats::{Counters, NoteKind, ProviderRoute};
use ctxbench_scenarios::formats::{
    Input, MessagePart, Recording, RecordingReply, RecordingStep, StepKind, View, millis,
};

/// A [`NoteKind`] with its position.
#[derive(Clone, Debug)]
pub struct Note {
    /// Problem that the note may explain.
    pub kind: NoteKind,
    /// Line number, from 1.
    pub line: usize,
    /// Description for the user.
    pub text: String,
}

/// A recorded compaction.
#[derive(Clone, Debug)]
pub struct Boundary {
    /// Line number, from 1.
    pub line: usize,
    /// Earliest possible time of the summary request, ms.
    pub asked_ms: Option<i64>,
}

/// Our o200k count of content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentCount {
    pub tokens: u64,
    /// Number of parts that cannot be counted, such as images and encrypted reasoning.
    pub unknown: usize,
}

impl ContentCount {
    fn add(&mut self, o: ContentCount) {
        self.tokens += o.tokens;
        self.unknown += o.unknown;
    }
}

#[derive(Clone, Debug)]
pub struct ModelCall {
    /// Line number of the first part, from 1.
    pub line: usize,
    /// Conversation in the file: the main one, or a subagent's.
    pub conversation: String,
    pub model: String,
    /// Earliest possible time of the request, ms since 1970. This is the time of the newest content
    /// in it.
    pub sent_ms: Option<i64>,
    /// Time of the first part of the reply, ms since 1970.
    pub began_ms: Option<i64>,
    pub counters: Counters,
    /// Index of the call that this prompt continues.
    pub before: Option<usize>,
    /// Index of the compaction at the beginning of this context, if no call followed it yet.
    pub boundary: Option<usize>,
    /// True if the file names no previous call, so that the call is assumed to continue the
    /// conversation.
    pub adopted: bool,
    /// Identity of the end of the prompt. Two calls that end with the same line are repetitions.
    pub key: u64,
    /// Number of content blocks in the reply.
    pub reply_blocks: usize,
    /// Number of thinking blocks among them.
    pub thoughts: usize,
    /// True if the user sent a message since the previous call, without a tool result.
    pub begins_turn: bool,
    /// Number of content blocks added since the previous call.
    pub input_blocks: usize,
    /// Our count of the reply.
    pub reply: ContentCount,
    /// Our count of the content added since the previous call.
    pub inputs: ContentCount,
    /// Notes since the conversation's previous call.
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug)]
pub struct Calls {
    /// The file, and the session if the file has several.
    pub name: String,
    pub format: &'static str,
    /// Calls in file order.
    pub calls: Vec<ModelCall>,
    /// Compactions in file order.
    pub boundaries: Vec<Boundary>,
    pub route: ProviderRoute,
    pub warnings: Vec<String>,
}

impl Calls {
    /// Returns the calls of a recording. A call after a lost line has a note.
    pub(super) fn from_recording(
        format: &'static str,
        recording: &Recording,
        file: &str,
    ) -> Result<Calls, InputError> {
        let id = recording.id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
        let mut b = CallBuilder::default();
        let mut lost = recording.broken.iter().peekable();
        for step in recording.steps.iter().filter(|s| s.view != View::Session) {
            while let Some(line) = lost.next_if(|line| **line < step.line) {
                b.note(
                    *line,
                    conversation_of(step),
                    NoteKind::Uncounted,
                    "the line cannot be read",
                );
            }
            b.step(step)
                .map_err(|what| wrong(file, step.line, what, "a number of tokens, 0 or more"))?;
        }
        if b.calls.is_empty() {
            let what = "no model call with counters up to here".into();
            let line = recording.steps.last().map_or(1, |step| step.line);
            return Err(wrong(file, line, what, "at least one reply with usage"));
        }
        Ok(Calls {
            name: format!("{file}{id}"),
            format,
            calls: b.calls,
            boundaries: b.boundaries,
            route: recording.route.clone(),
            warnings: recording.warnings.clone(),
        })
    }

    /// Returns the previous call of each call in its conversation, in file order.
    pub fn previous(&self) -> Vec<Option<usize>> {
        let mut last: HashMap<&str, usize> = HashMap::new();
        self.calls.iter().enumerate().map(|(i, c)| last.insert(&c.conversation, i)).collect()
    }
}

const MAIN: &str = "main";

/// Returns the conversation of a step.
fn conversation_of(step: &RecordingStep) -> &str {
    step.agent.as_deref().unwrap_or(MAIN)
}

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
struct OpenCall {
    blocks: usize,
    said: bool,
    results: bool,
    counted: ContentCount,
    notes: Vec<Note>,
    last_stamp: Option<i64>,
}

/// Collects steps into calls.
#[derive(Default)]
struct CallBuilder {
    calls: Vec<ModelCall>,
    boundaries: Vec<Boundary>,
    nodes: HashMap<String, Node>,
    responses: HashMap<String, usize>,
    pending: HashMap<String, OpenCall>,
    latest: HashMap<String, usize>,
}

impl CallBuilder {
    /// Adds a step. An error names an invalid counter.
    fn step(&mut self, step: &RecordingStep) -> Result<(), String> {
        let stamp = step.stamp.as_deref().and_then(millis);
        let conversation = conversation_of(step);
        let mut stands = NodeKind::Other;
        match &step.what {
            StepKind::Link | StepKind::System(_) | StepKind::Tools(_) | StepKind::Unknown(_) => {}
            StepKind::Input(Input { pieces, .. }) | StepKind::Summary(pieces) => {
                let p = self.pending.entry(conversation.to_string()).or_default();
                p.blocks += pieces.len();
                let result = |piece: &MessagePart| matches!(piece, MessagePart::Result { .. });
                p.said |= pieces.iter().any(|piece| !result(piece));
                p.results |= pieces.iter().any(result);
                p.counted.add(count(pieces));
                p.last_stamp = stamp.or(p.last_stamp);
            }
            StepKind::Note { kind, text } => self.note(step.line, conversation, *kind, text),
            StepKind::Cleared => {
                self.note(step.line, conversation, NoteKind::Edit, "the conversation was cleared");
            }
            StepKind::Compaction(_) => {
                let p = self.pending.entry(conversation.to_string()).or_default();
                let asked_ms = p.last_stamp.or(stamp);
                // Content before the compaction is in the summary, and not in the next prompt.
                *p = OpenCall { last_stamp: stamp, ..OpenCall::default() };
                self.boundaries.push(Boundary { line: step.line, asked_ms });
                stands = NodeKind::Boundary(self.boundaries.len() - 1);
            }
            StepKind::Reply(reply) => {
                let stamp = reply.sent_ms.or(stamp);
                return self.reply(step, stamp, conversation, reply);
            }
        }
        self.node(step, stamp, stands);
        Ok(())
    }

    fn node(&mut self, step: &RecordingStep, stamp: Option<i64>, stands: NodeKind) {
        if let Some(id) = &step.name {
            self.nodes.insert(id.clone(), Node { parent: step.parent.clone(), stands, stamp });
        }
    }

    /// Adds a note for the next call of a conversation.
    fn note(&mut self, line: usize, conversation: &str, kind: NoteKind, text: &str) {
        let note = Note { kind, line, text: text.to_string() };
        self.pending.entry(conversation.to_string()).or_default().notes.push(note);
    }

    /// Adds a part of a reply. Parts of one response form one call, which is counted once.
    fn reply(
        &mut self,
        step: &RecordingStep,
        began_ms: Option<i64>,
        conversation: &str,
        reply: &RecordingReply,
    ) -> Result<(), String> {
        let Some(response) = &reply.response else { return Ok(()) };
        let counters = match &reply.counters {
            Err(why) => {
                self.note(step.line, conversation, NoteKind::Uncounted, why);
                self.node(step, step.stamp.as_deref().and_then(millis), NodeKind::Other);
                return Ok(());
            }
            Ok(counters) => match counters.wrong.first() {
                Some(wrong) => return Err(wrong.told.clone()),
                // Only its cost is known.
                None if counters.prompt().max(counters.output) == 0 => return Ok(()),
                None => counters.clone(),
            },
        };
        let (counted, blocks) = (count(&reply.pieces), reply.pieces.len());
        let thinking = |p: &&MessagePart| matches!(p, MessagePart::Said(Part::Reasoning { .. }));
        let thoughts = reply.pieces.iter().filter(thinking).count();
        let i = match self.responses.get(response) {
            Some(&i) => {
                let call = &mut self.calls[i];
                call.reply_blocks += blocks;
                call.thoughts += thoughts;
                call.reply.add(counted);
                call.counters = counters;
                i
            }
            None => {
                let i = self.calls.len();
                let (before, boundary, adopted, parent_stamp) = self.ancestor(step, conversation);
                let p = self.pending.remove(conversation).unwrap_or_default();
                let earlier = [parent_stamp, p.last_stamp].into_iter().flatten();
                let newest = earlier.filter(|s| began_ms.is_none_or(|b| *s <= b)).max();
                let end = step.parent.clone().unwrap_or_else(|| format!("call {i}"));
                self.calls.push(ModelCall {
                    line: step.line,
                    conversation: conversation.to_string(),
                    model: reply.model.clone().unwrap_or_default(),
                    sent_ms: reply.sent_ms.or(newest).or(began_ms),
                    began_ms,
                    counters,
                    before,
                    boundary,
                    adopted,
                    key: content_hash(end.as_bytes()),
                    reply_blocks: blocks,
                    thoughts,
                    begins_turn: p.said && !p.results,
                    input_blocks: p.blocks,
                    reply: counted,
                    inputs: p.counted,
                    notes: p.notes,
                });
                self.responses.insert(response.clone(), i);
                self.latest.insert(conversation.to_string(), i);
                i
            }
        };
        self.node(step, began_ms, NodeKind::Call(i));
        Ok(())
    }

    /// Returns the call or compaction that the prompt of a reply continues, the nearest one up the
    /// chain of parents. If the chain leaves the file, this is the last call of the conversation,
    /// because programs that resume a session do not always name the parent.
    fn ancestor(
        &self,
        reply: &RecordingStep,
        conversation: &str,
    ) -> (Option<usize>, Option<usize>, bool, Option<i64>) {
        let mut next = reply.parent.as_ref();
        let stamp = next.and_then(|p| self.nodes.get(p)).and_then(|n| n.stamp);
        for _ in 0..=self.nodes.len() {
            let Some(node) = next.and_then(|p| self.nodes.get(p)) else { break };
            match node.stands {
                NodeKind::Call(i) if self.calls[i].conversation == conversation => {
                    return (Some(i), None, false, stamp);
                }
                NodeKind::Boundary(b) => return (None, Some(b), false, stamp),
                _ => next = node.parent.as_ref(),
            }
        }
        let last = self.latest.get(conversation).copied();
        (last, None, last.is_some(), stamp)
    }
}

fn count(pieces: &[MessagePart]) -> ContentCount {
    let mut c = ContentCount::default();
    let mut add = |text: Option<&str>| match text {
        Some(text) => c.tokens += o200k(text),
        None => c.unknown += 1,
    };
    for piece in pieces {
        match piece {
            MessagePart::Said(part) | MessagePart::Added(part, _) => match part {
                Part::Reasoning { text, .. } if text.is_empty() => add(None),
                Part::Text(text) | Part::Reasoning { text, .. } => add(Some(text)),
                Part::Call(call) => {
                    add(Some(&call.name));
                    add(Some(&call.arguments));
                }
                _ => add(None),
            },
            MessagePart::Result { pieces, .. } => pieces.iter().for_each(|piece| match piece {
                MessagePart::Said(Part::Text(text)) => add(Some(text)),
                _ => add(None),
            }),
            MessagePart::Shown(_) => {}
            MessagePart::Opaque | MessagePart::Unknown(_) | MessagePart::Unanswered { .. } => {
                add(None)
            }
        }
    }
    c
}

pub(super) fn wrong(file: &str, line: usize, what: String, expected: &str) -> InputError {
    InputError::new(line, what, expected, "give the recording as the program wrote it").at(file)
}
