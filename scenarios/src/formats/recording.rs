//! Steps of a recording, the result of a format's reader, in the order of the file. A line becomes
//! one or more steps, or none if it has no meaning for the session.
//!
//! There are two views of the steps. The session (`session.rs`) is the conversation at the end of
//! the recording. The calls (`ctxbench validate`) are all requests that the provider counted,
//! including abandoned branches, with the content before each.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::tokens::o200k;
use ctxbench_formats::{argument_text, image_at};
use ctxbench_session::{Billing, Trigger};
use serde_json::Value;

use super::counters::{Counters, known};

/// A recording and the notes on it.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub steps: Vec<RecordingStep>,
    /// Session id if a file can contain several sessions. Otherwise the file's name is used.
    pub id: Option<String>,
    /// Title given by a person. Otherwise the first text of the user is used.
    pub title: Option<String>,
    pub route: ProviderRoute,
    /// Version of the program that wrote the end of the file.
    pub version: Option<String>,
    /// Context window that the program assumed, tokens.
    pub context_window: Option<u64>,
    /// Tokens of the system prompt and the tools that the file does not show, if it counts them.
    pub prefix_tokens: Option<u64>,
    /// Whether the first line follows another one, which the file lacks.
    pub continues: bool,
    /// Whether the file is the record of a subagent. Its messages then form the session.
    pub of_subagent: bool,
    /// Whether the program, or its user, also takes content out of prompts without a compaction.
    pub drops_content: bool,
    /// Lines that are lost: they are no JSON objects.
    pub broken: Vec<usize>,
    pub beside: Vec<PathBuf>,
    /// Warnings about lines that cannot be read.
    pub warnings: Vec<String>,
    /// Parts of the recording that the session lacks.
    pub left_out: Vec<String>,
}

impl Recording {
    /// Leaves out a line, with a warning.
    pub(super) fn leave_out(&mut self, file: &str, line: usize, what: String) {
        self.warnings.push(format!("{file}:{line}: {what}; left out"));
        self.broken.push(line);
    }

    /// Notes that the document breaks off on a line.
    pub(super) fn cut_off(&mut self, file: &str, line: usize) {
        let what = "the JSON breaks off here; what comes before it is used";
        self.warnings.push(format!("{file}:{line}: {what}"));
    }

    /// Links each step to the one before it in its conversation if the reader named no step. What
    /// the session ends with does not follow a branch that was given up.
    pub(super) fn link(&mut self) {
        if self.steps.iter().any(|s| s.name.is_some()) {
            return;
        }
        let (mut newest, mut kept) = (HashMap::new(), HashMap::new());
        for (n, step) in self.steps.iter_mut().enumerate() {
            let name = format!("step {n}");
            let before = newest.insert(step.agent.clone(), name.clone());
            step.parent = match step.view {
                View::Calls => before,
                View::Both | View::Session => kept.insert(step.agent.clone(), name.clone()),
            };
            step.name = Some(name);
        }
    }
}

/// A line of a recording, or a part of it.
#[derive(Clone, Debug, Default)]
pub struct RecordingStep {
    /// Line number, from 1.
    pub line: usize,
    /// Name by which later lines refer to it. If no step has one, each follows the one before it.
    pub name: Option<String>,
    /// Name of the line that it follows in its conversation.
    pub parent: Option<String>,
    /// RFC 3339, as recorded.
    pub stamp: Option<String>,
    /// Subagent of the conversation that it belongs to. `None` = the main conversation.
    pub agent: Option<String>,
    pub view: View,
    pub what: StepKind,
}

impl RecordingStep {
    /// Creates a step of the main conversation without names.
    pub(super) fn new(line: usize, stamp: Option<String>, what: StepKind) -> RecordingStep {
        RecordingStep { line, stamp, what, ..RecordingStep::default() }
    }

    /// Creates a call that is paid and not part of the session.
    pub(super) fn of_call(line: usize, stamp: Option<String>, reply: RecordingReply) -> Self {
        let step = RecordingStep::new(line, stamp, StepKind::Reply(reply));
        RecordingStep { view: View::Calls, ..step }
    }

    /// Creates a call of which only the cost is known, as the program states it.
    pub(super) fn of_cost(line: usize, model: Option<String>, usd: f64) -> RecordingStep {
        let billing = Billing { told_usd: Some(usd), ..Billing::default() }.into();
        let counters = Ok(Counters { billing, ..Counters::default() });
        let name = format!("{usd} USD of {} on line {line}", model.as_deref().unwrap_or_default());
        let call = RecordingReply::new(name, Vec::new());
        RecordingStep::of_call(line, None, RecordingReply { counters, model, ..call })
    }

    /// Sets the identity of a call of which only the cost is known.
    pub(super) fn called(mut self, id: &str) -> RecordingStep {
        if let StepKind::Reply(RecordingReply { counters: Ok(counters), .. }) = &mut self.what {
            *counters = std::mem::take(counters).called(id);
        }
        self
    }
}

/// Views that contain a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    #[default]
    Both,
    /// Only the calls: a branch that the session did not end with.
    Calls,
    /// Only the session: it repeats content of another file.
    Session,
}

#[derive(Clone, Debug, Default)]
pub enum StepKind {
    /// No content, only a link in the chain of parents.
    #[default]
    Link,
    System(String),
    /// Definitions of the tools: objects with `name`, `description`, `input_schema`.
    Tools(Vec<Value>),
    /// Content for the model.
    Input(Input),
    /// Text of a compaction that replaces the removed messages.
    Summary(Vec<MessagePart>),
    Reply(RecordingReply),
    Compaction(RecordingCompaction),
    /// The user cleared the conversation.
    Cleared,
    /// An event that can explain a cache miss.
    Note {
        kind: NoteKind,
        text: String,
    },
    /// A line that the reader does not know.
    Unknown(String),
}

impl StepKind {
    pub(super) fn input(pieces: Vec<MessagePart>) -> StepKind {
        StepKind::Input(Input { id: None, pieces })
    }

    pub(super) fn question(id: Option<String>, mut pieces: Vec<MessagePart>) -> StepKind {
        if pieces.is_empty() {
            // An empty message still counts as a message.
            pieces.push(MessagePart::Shown(Part::Text("".into())));
        }
        StepKind::Input(Input { id, pieces })
    }

    pub(super) fn result(call_id: String, pieces: Vec<MessagePart>, is_error: bool) -> StepKind {
        StepKind::input(vec![MessagePart::Result { call_id, pieces, is_error }])
    }

    /// Returns a reply, or the reply to the request for a summary.
    pub(super) fn any_reply(&self) -> Option<&RecordingReply> {
        match self {
            StepKind::Reply(reply) => Some(reply),
            StepKind::Compaction(c) => c.reply.as_deref(),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct RecordingCompaction {
    pub pre_tokens: Option<u64>,
    pub post_tokens: Option<u64>,
    pub summary: Option<String>,
    /// Trigger of the compaction. `None` = not recorded.
    pub trigger: Option<Trigger>,
    /// Instructions of the user for the summary.
    pub instructions: Option<String>,
    /// Reply with the summary, if recorded.
    pub reply: Option<Box<RecordingReply>>,
}

#[derive(Clone, Debug, Default)]
pub struct Input {
    pub id: Option<String>,
    pub pieces: Vec<MessagePart>,
}

/// A reply of the model, or a part of one.
#[derive(Clone, Debug)]
pub struct RecordingReply {
    pub id: Option<String>,
    /// Id that all parts of a reply share. `None` = the part belongs to the parts before it.
    pub response: Option<String>,
    pub model: Option<String>,
    pub pieces: Vec<MessagePart>,
    /// Counters of the provider, or the reason why they are unknown.
    pub counters: Result<Counters, String>,
    /// Whether `output` is a placeholder sent at the start of the stream.
    pub output_is_stub: bool,
    /// Time of the request, ms since 1970.
    pub sent_ms: Option<i64>,
    /// Tokens of the whole prompt where other counters of the call are unknown.
    pub uncounted_prompt: Option<u64>,
    /// Whether a reply without content is one call. Otherwise its counters may add up several.
    pub is_single: bool,
}

impl RecordingReply {
    /// Creates a reply. `response` is an id that its parts share.
    pub(super) fn new(response: impl Into<Option<String>>, pieces: Vec<MessagePart>) -> Self {
        RecordingReply {
            id: None,
            response: response.into(),
            model: None,
            pieces,
            counters: known(None),
            output_is_stub: false,
            sent_ms: None,
            uncounted_prompt: None,
            is_single: false,
        }
    }

    /// Creates a request of which only the counters are known. `name` identifies the call.
    pub(super) fn of_counters(name: String, model: Option<String>, counters: Counters) -> Self {
        let counters = Ok(counters.called(&*name));
        RecordingReply { model, counters, ..RecordingReply::new(name, Vec::new()) }
    }

    pub(super) fn join(&mut self, more: RecordingReply) {
        self.pieces.extend(more.pieces);
        // Counters of a stream grow, but for those of a prompt that the provider replaced. Some
        // gateways tell the prompt only once.
        let Ok(new) = more.counters else { return };
        match &mut self.counters {
            Ok(old) if old.prompt() == new.prompt() && old.output > new.output => return,
            Ok(old) if new.prompt() == 0 => old.output = old.output.max(new.output),
            Ok(old) if old.prompt() == 0 => {
                *old = Counters { output: old.output.max(new.output), ..new };
            }
            counters => *counters = Ok(new),
        }
        self.output_is_stub = more.output_is_stub;
    }
}

/// Maximum tokens of the reasoning of a reply.
const MAX_REASONING: u64 = 1 << 20;

/// Gives encrypted reasoning the size that the provider counted for it, `tokens` of a reply. The
/// envelope of a short thought is many times as large, and nobody can read it.
pub(super) fn weigh_reasoning(pieces: Vec<&mut MessagePart>, tokens: u64) {
    let parts = pieces.into_iter().filter_map(|piece| match piece {
        MessagePart::Said(Part::Reasoning { text, encrypted: Some(envelope) })
        | MessagePart::Shown(Part::Reasoning { text, encrypted: Some(envelope) }) => {
            Some((text.clone(), envelope))
        }
        _ => None,
    });
    let mut parts: Vec<(Arc<str>, &mut Arc<str>)> = parts.collect();
    let total: u64 = parts.iter().map(|(_, envelope)| envelope.len() as u64).sum();
    for (text, envelope) in &mut parts {
        let own = tokens.min(MAX_REASONING) * envelope.len() as u64 / total.max(1);
        // A readable summary counts with the envelope, which is base64 and has four bytes a token.
        let letters = (own.saturating_sub(o200k(text)).max(1) * 16).div_ceil(3);
        let sized: String = envelope.chars().cycle().take(letters as usize).collect();
        **envelope = sized.into();
    }
}

/// A part of a message.
#[derive(Clone, Debug)]
pub enum MessagePart {
    /// Written by the user or the model.
    Said(Part),
    /// Added to the context by the program itself.
    Added(Part, ContextPlace),
    /// Result of a tool.
    Result { call_id: String, pieces: Vec<MessagePart>, is_error: bool },
    /// Shown to the user only. A different text for the model is a [`MessagePart::Opaque`] or is missing.
    Shown(Part),
    /// Question to a tool of the provider, from an item of this `kind` without a result.
    Unanswered { kind: String, asked: Part },
    /// Content that cannot be counted.
    Opaque,
    /// A block of an unknown kind.
    Unknown(String),
}

/// Position in the session for text of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextPlace {
    /// It joins a message.
    Message,
    /// A memory file with this name if it precedes the first message, otherwise like
    /// [`ContextPlace::Message`].
    Memory(String),
    /// Part of the system prompt if it precedes the first message, otherwise like
    /// [`ContextPlace::Message`].
    System,
}

impl MessagePart {
    pub fn text(text: &str) -> MessagePart {
        MessagePart::Said(Part::Text(text.into()))
    }

    /// Creates a call of the model. Arguments that are not text are written as JSON.
    pub(super) fn call(id: &str, name: &str, arguments: Option<&Value>) -> MessagePart {
        let arguments = argument_text(None, arguments);
        MessagePart::Said(Part::Call(ToolCall::new(id, name, arguments)))
    }

    /// Creates reasoning that is sent again.
    pub(super) fn reasoning(text: &str, encrypted: Option<&str>) -> MessagePart {
        let encrypted = encrypted.map(Into::into);
        MessagePart::Said(Part::Reasoning { text: text.into(), encrypted })
    }

    /// Creates an image from its address. The type comes from a data URL.
    pub(super) fn image(url: &str) -> MessagePart {
        MessagePart::Said(image_at(url))
    }

    /// Marks what is said as added by the program.
    pub(super) fn added(self, place: ContextPlace) -> MessagePart {
        match self {
            MessagePart::Said(part) => MessagePart::Added(part, place),
            other => other,
        }
    }

    /// Returns the part for the session.
    pub fn into_part(self) -> Option<Part> {
        match self {
            MessagePart::Said(part)
            | MessagePart::Added(part, _)
            | MessagePart::Shown(part)
            | MessagePart::Unanswered { asked: part, .. } => Some(part),
            MessagePart::Result { .. } | MessagePart::Opaque | MessagePart::Unknown(_) => None,
        }
    }
}

/// Marks what is said as added to a message by the program.
pub(super) fn added(pieces: Vec<MessagePart>) -> Vec<MessagePart> {
    pieces.into_iter().map(|piece| piece.added(ContextPlace::Message)).collect()
}

/// Returns a message as it was sent, with the text that the user typed apart from what the program
/// added around it.
pub(super) fn sent_around(sent: &str, typed: &str) -> Vec<MessagePart> {
    let of_program = |text: &str| MessagePart::text(text).added(ContextPlace::Message);
    match sent.rsplit_once(typed).filter(|_| !typed.is_empty()) {
        Some((before, after)) => {
            let around = [before, after].into_iter().filter(|text| !text.trim().is_empty());
            around.map(of_program).chain([MessagePart::text(typed)]).collect()
        }
        None if sent.is_empty() => vec![MessagePart::text(typed)],
        None => vec![MessagePart::text(sent)],
    }
}

/// Events between two calls of a conversation that may have changed the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// Earlier content was cleared or replaced.
    Edit,
    /// A parameter of the request that is part of the cached prefix.
    Settings,
    /// A request without recorded counters.
    Uncounted,
}

/// Route of the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderRoute {
    /// Directly to the provider, with the evidence.
    Direct(String),
    /// Through a proxy or another cloud, with the evidence.
    Gateway(String),
    /// Unknown, with the missing information.
    Unknown(String),
}

impl Default for ProviderRoute {
    fn default() -> ProviderRoute {
        ProviderRoute::Unknown("the recording names neither a provider nor request ids".into())
    }
}
