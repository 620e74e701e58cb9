//! Steps of a recording: the output of a format's reader, in the order of the file. A line becomes
//! one or more steps if something is known of it.
//!
//! The steps have two views. The session (`session.rs`) is the conversation that the recording
//! ended with. The calls (`ctxbench validate`) are every request the provider counted, abandoned
//! branches included, with the content before it.

use std::path::PathBuf;

use ctxbench_core::content::Part;
use ctxbench_core::session::Trigger;
use serde_json::{Map, Value};

use crate::bounds::{self, TAKEN};

/// A recording as it was read.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub steps: Vec<Step>,
    /// Session id, where a file may contain several; otherwise the file's name is used.
    pub id: Option<String>,
    /// Title given by a person; otherwise the first text of the user is used.
    pub title: Option<String>,
    pub route: Route,
    /// The context window that the program itself assumed, tokens.
    pub context_window: Option<u64>,
    /// The file is one subagent's: its messages are the session.
    pub of_subagent: bool,
    /// First line that is not a JSON object, and why. Calls around a lost line cannot be compared.
    pub broken: Option<(usize, String)>,
    pub last_line: usize,
    /// Companion files that were read, too.
    pub beside: Vec<PathBuf>,
    /// About lines that cannot be read.
    pub warnings: Vec<String>,
    /// Parts of the recording that the session lacks.
    pub left_out: Vec<String>,
}

/// A line of a recording, or a part of it.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Line number, from 1.
    pub line: usize,
    /// The name by which later lines refer to it.
    pub name: Option<String>,
    /// The line that it follows in its conversation.
    pub parent: Option<String>,
    /// RFC 3339, as recorded.
    pub stamp: Option<String>,
    /// Subagent with the conversation that it belongs to; `None` = the main one.
    pub agent: Option<String>,
    pub view: View,
    pub what: What,
}

/// The views that a step belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    #[default]
    Both,
    /// The calls only: a branch that the session did not end with.
    Calls,
    /// The session only: it repeats content of another file.
    Session,
}

#[derive(Clone, Debug, Default)]
pub enum What {
    /// Only a link of the chain of parents.
    #[default]
    Link,
    System(String),
    /// Definitions of the tools: objects with `name`, `description`, `input_schema`.
    Tools(Vec<Value>),
    /// Content for the model.
    Input(Input),
    /// Text that a compaction put in place of the removed messages.
    Summary(Input),
    Reply(Reply),
    /// Counters of the reply with the parts since the last counters.
    Counted {
        counters: Counters,
        model: String,
    },
    Compaction(Compaction),
    /// The newest turns of the user were taken back.
    RolledBack {
        turns: usize,
    },
    /// The user had the program forget the conversation.
    Cleared,
    /// Something that can explain why a prefix was not served.
    Note {
        kind: NoteKind,
        text: String,
    },
    /// A line that the reader does not know.
    Unknown(String),
}

#[derive(Clone, Debug, Default)]
pub struct Compaction {
    pub pre_tokens: Option<u64>,
    pub post_tokens: Option<u64>,
    pub summary: Option<String>,
    /// `None` = the recording does not say who asked for it.
    pub trigger: Option<Trigger>,
    /// Instructions of the user for the summary.
    pub instructions: Option<String>,
    /// Reply with the summary, where it was recorded.
    pub reply: Option<Box<Reply>>,
}

#[derive(Clone, Debug, Default)]
pub struct Input {
    pub id: Option<String>,
    pub pieces: Vec<Piece>,
    /// Content blocks as the provider sees them.
    pub blocks: usize,
}

/// A reply of the model, or a part of one.
#[derive(Clone, Debug)]
pub struct Reply {
    pub id: Option<String>,
    /// Id that all parts of a reply share. `None` = the part belongs to the parts before it, and
    /// its counters follow as [`What::Counted`].
    pub response: Option<String>,
    pub model: Option<String>,
    pub pieces: Vec<Piece>,
    pub blocks: usize,
    /// Provider's counters, or why they are unknown.
    pub counters: Result<Counters, String>,
    /// The output tokens are a stub.
    pub output_is_stub: bool,
    /// When it was asked for, ms since 1970.
    pub sent_ms: Option<i64>,
}

impl Default for Reply {
    fn default() -> Reply {
        Reply {
            id: None,
            response: None,
            model: None,
            pieces: Vec::new(),
            blocks: 0,
            counters: Err("a reply without counters".into()),
            output_is_stub: false,
            sent_ms: None,
        }
    }
}

impl Reply {
    /// Takes in a further part of the same reply.
    pub(super) fn join(&mut self, more: Reply) {
        self.pieces.extend(more.pieces);
        if more.counters.is_ok() {
            (self.counters, self.output_is_stub) = (more.counters, more.output_is_stub);
        }
    }
}

/// A part of a message.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Written by the user or the model.
    Said(Part),
    /// Put into the context by the program itself.
    Added(Part, Place),
    /// Result of a tool.
    Result { call_id: String, pieces: Vec<Piece>, is_error: bool },
    /// Shown to people; the text that the model is sent instead counts as [`Piece::Opaque`] or not
    /// at all.
    Shown(Part),
    /// Question to a tool of the provider, in an item of a `kind` that lacks the result.
    Unanswered { kind: String, asked: Part },
    /// Content that cannot be counted.
    Opaque,
    /// A block of a kind that the reader does not know.
    Unknown(String),
}

/// Position in the session for text of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It joins a message.
    Message,
    /// Before the first message a memory file of this name, later as [`Place::Message`].
    Memory(String),
    /// Before the first message part of the system prompt, later as [`Place::Message`].
    System,
}

impl Piece {
    pub fn text(text: &str) -> Piece {
        Piece::Said(Part::Text(text.into()))
    }

    /// The part that a session shows.
    pub fn into_part(self) -> Option<Part> {
        match self {
            Piece::Said(part)
            | Piece::Added(part, _)
            | Piece::Shown(part)
            | Piece::Unanswered { asked: part, .. } => Some(part),
            Piece::Result { .. } | Piece::Opaque | Piece::Unknown(_) => None,
        }
    }
}

/// Provider's counters of one call, tokens. Input, read and write add up to the prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Neither read nor written.
    pub input: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache.
    pub write: u64,
    pub output: u64,
    /// Writes are for the long lifetime; `None` = nothing was written, or unknown.
    pub long: Option<bool>,
    /// Values that are not numbers of tokens.
    pub wrong: Vec<Wrong>,
}

/// Counter that is not a number of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Name and value of the counter.
    pub told: String,
    /// Value that is used instead.
    pub taken: u64,
}

impl Counters {
    /// Returns the tokens of the whole prompt.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.read).saturating_add(self.write)
    }

    /// Converts counters of a provider that includes read and written tokens in the input.
    pub(super) fn of_whole_prompt(self) -> Counters {
        let read = self.read.min(self.input);
        let write = self.write.min(self.input - read);
        Counters { input: self.input - read - write, read, write, ..self }
    }

    /// Counters under these names: input, read, write, output.
    pub fn read(usage: &Map<String, Value>, names: [&str; 4]) -> Counters {
        let mut wrong = Vec::new();
        let [input, read, write, output] = names.map(|name| count(usage, name, &mut wrong));
        Counters { input, read, write, output, long: None, wrong }
    }

    /// Adds output that is counted under another name.
    pub(super) fn and_output(mut self, usage: &Map<String, Value>, name: &str) -> Counters {
        let more = count(usage, name, &mut self.wrong);
        Counters { output: self.output.saturating_add(more), ..self }
    }
}

/// Maximum tokens of a counter; larger values are not numbers of tokens.
const MAX_TOKENS: u64 = 1 << 40;

/// A whole number of tokens. Some programs write each number with a point.
pub(super) fn tokens(value: &Value) -> Option<u64> {
    let whole = |f: &f64| f.fract() == 0.0 && (0.0..=MAX_TOKENS as f64).contains(f);
    value.as_u64().or_else(|| value.as_f64().filter(whole).map(|f| f as u64))
}

/// Reads a counter. A value that is not a number of tokens becomes 0, and an impossibly large one
/// the maximum.
fn count(usage: &Map<String, Value>, name: &str, wrong: &mut Vec<Wrong>) -> u64 {
    let Some(value) = usage.get(name).filter(|v| !v.is_null()) else { return 0 };
    let taken = match tokens(value) {
        Some(n) if n <= MAX_TOKENS => return n,
        Some(n) => n,
        None if value.as_f64().is_some_and(|f| f > MAX_TOKENS as f64) => bounds::TOKENS,
        None => 0,
    };
    wrong.push(Wrong { told: format!("{name} is {value}"), taken });
    taken
}

/// Describes counters that are not numbers of tokens, with the values used: the first of those that
/// inflate the figures, then the first of the others. Counters that are merely too large are
/// reported with the bounds.
pub(super) fn wrong_counters(steps: &[Step], file: &str) -> Vec<String> {
    let wrong = |step: &Step| {
        let reply = match &step.what {
            What::Reply(reply) => reply,
            What::Compaction(c) => c.reply.as_deref()?,
            _ => return None,
        };
        let wrong = reply.counters.as_ref().ok()?.wrong.iter();
        Some(wrong.map(|w| (step.line, w.clone())).collect::<Vec<_>>())
    };
    let all: Vec<(usize, Wrong)> = steps.iter().filter_map(wrong).flatten().collect();
    let taken = [(bounds::TOKENS, ", the largest there is"), (0, "")];
    let note = |(taken, meaning): (u64, &str)| {
        let mut all = all.iter().filter(|(_, w)| w.taken == taken);
        let (line, Wrong { told, .. }) = all.next()?;
        let more = match all.count() {
            0 => String::new(),
            1 => "; so is one more counter".to_string(),
            n => format!("; so are {n} more counters"),
        };
        Some(format!(
            "{file}:{line}: {told}, which is not a number of tokens{TAKEN}{taken}{meaning}{more}"
        ))
    };
    taken.into_iter().filter_map(note).collect()
}

/// Events between two calls of a conversation that may have changed the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// Earlier content was cleared or replaced.
    Edit,
    /// A parameter of the request that is part of the cached prefix.
    Settings,
    /// A request of which no counters were recorded.
    Uncounted,
}

/// Which way the calls went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// To the provider itself; why we think so.
    Direct(String),
    /// Through a proxy or another cloud; why we think so.
    Gateway(String),
    /// Unknown, because the recording lacks this.
    Unknown(String),
}

impl Default for Route {
    fn default() -> Route {
        Route::Unknown("the recording names no provider".into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_counter_is_a_whole_number_of_tokens() {
        let read = |value: Value| {
            let usage = json!({"output": value});
            let all =
                Counters::read(usage.as_object().unwrap(), ["input", "read", "write", "output"]);
            (all.output, all.wrong.into_iter().next().map(|w| (w.told, w.taken)))
        };
        let wrong = |told: &str, taken: u64| Some((format!("output is {told}"), taken));
        assert_eq!(read(json!(20)), (20, None));
        assert_eq!(read(json!(20.0)), (20, None));
        assert_eq!(read(json!(null)), (0, None));
        assert_eq!(read(json!(20.5)), (0, wrong("20.5", 0)));
        assert_eq!(read(json!(-20)), (0, wrong("-20", 0)));
        assert_eq!(read(json!("20")), (0, wrong("\"20\"", 0)));
        assert_eq!(read(json!(1e23)), (1_000_000_000, wrong("1e+23", 1_000_000_000)));
        assert_eq!(read(json!(u64::MAX)), (u64::MAX, wrong("18446744073709551615", u64::MAX)));
    }
}
