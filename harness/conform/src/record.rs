//! Conversion of a real program's requests to a case: the pieces written by the program, the
//! position of the summary, and the settings that the case needs. The harness writes the case.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;

use ctxbench_core::block::{BlockKind, Role};
use ctxbench_provider::Item;
use ctxbench_util::files;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::case::{Constant, Constants, Outcome, Segment};

/// Functions for converting driven sessions of a program to cases.
#[derive(Clone, Copy, Debug)]
pub struct CaseRecording {
    /// Reads the sizes for a case from the program's folder.
    pub notes: fn(&Path) -> ProgramNotes,
    /// Classifies the requests of a session.
    pub read: fn(&RecordedSession<'_>) -> SessionReading,
    /// True if cases count the texts of one message separately.
    pub texts_apart: bool,
    /// True if requests contain the largest allowed reply.
    pub limits_replies: bool,
    /// True if the program's estimates need the kinds of characters of the context.
    pub context_chars: bool,
}

/// Sizes that a program notes in its folder, for its own estimates. They may differ from those on
/// the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramNotes {
    /// Size of the base instructions, bytes.
    pub base_bytes: Option<u64>,
    /// Estimate of the base instructions and the tools, tokens.
    pub base_tokens: Option<u64>,
    /// Length of the tools as JSON, UTF-16 units.
    pub tools_utf16: Option<usize>,
}

/// Number of bytes at the start of a session file that are read.
const MAX_HEAD: u64 = 4 << 20;

/// Returns the first entries of the session files below a folder, in order. Does not follow links.
pub(crate) fn logged(folder: &Path) -> impl Iterator<Item = Value> + use<> {
    let own = |p: &Path| std::fs::symlink_metadata(p).is_ok_and(|m| m.is_dir());
    let mut all = files::walk_into(folder, own, |_| {});
    all.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
    let heads = all.into_iter().filter_map(|p| Some(File::open(p).ok()?.take(MAX_HEAD)));
    let lines = heads.flat_map(|head| BufReader::new(head).lines().map_while(Result::ok));
    lines.filter_map(|line| serde_json::from_str(&line).ok())
}

/// Requests of a program in one session.
pub struct RecordedSession<'a> {
    pub model: &'a str,
    /// Window given to the program, in tokens.
    pub window: u64,
    /// Largest reply given to the program, in tokens.
    pub max_output: u64,
    /// Name of the wire API.
    pub wire: &'a str,
    /// Reports of the program about its compactions, in order, if its interface has them.
    pub told: &'a [Value],
    /// Requests of the program in order, summary requests included.
    pub requests: &'a [RecordedRequest<'a>],
    /// Texts of the received summaries, in order.
    pub summaries: &'a [&'a str],
    /// Outcome of each user message, in order: `done` or `error`.
    pub prompts: &'a [&'a str],
}

pub struct RecordedRequest<'a> {
    pub summary: bool,
    /// The program's label of the request, if its description names the field.
    pub label: Option<&'a str>,
    /// True if it was refused as too large.
    pub overflowed: bool,
    pub pieces: Vec<CasePiece<'a>>,
}

/// Source of an item of a case: a content part, or several parts of one message.
pub struct CasePiece<'a> {
    pub role: Role,
    /// Kind as far as the wire shows it: text of the user's role is `User`, even if the program
    /// wrote it.
    pub kind: BlockKind,
    pub texts: Vec<&'a str>,
    pub items: &'a [Item],
    /// True if it contains text of the session.
    pub said: bool,
}

impl CasePiece<'_> {
    /// Returns the first text, or an empty text if there is none.
    pub fn text(&self) -> &str {
        self.texts.first().copied().unwrap_or("")
    }

    /// Returns whether this is a text in the user's role.
    pub fn of_user(&self) -> bool {
        self.kind == BlockKind::User && self.role == Role::User
    }

    pub fn instructs(&self) -> bool {
        matches!(self.role, Role::Instructions | Role::System | Role::Developer)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Classification {
    /// A text from the conversation, or derived from it. The text is compared.
    Said(BlockKind),
    /// A text of the program, with its name among the constants of a case, if it has one. Only its
    /// size is recorded.
    Constant(BlockKind, Option<&'static str>),
    /// A summary after a text of the program, which ends where the body starts.
    Summary { body: Range<usize> },
    /// A summary in segments, with the sizes of the program's texts before and after it.
    Segments { around: [usize; 2], segments: Vec<Segment> },
    /// A summary prompt that contains the conversation as a text.
    Prompt {
        /// Variant of the program's prompt, if cases distinguish them.
        variant: Option<&'static str>,
        transcript: String,
        /// The previous summary. Empty = none.
        prior: Vec<Segment>,
        /// The rest: its name among the constants of a case, and its size in bytes.
        constant: (&'static str, usize),
    },
}

/// A product's classification of a recorded session.
#[derive(Default)]
pub struct SessionReading {
    pub settings: Map<String, Value>,
    pub constants: Constants,
    /// Phase, if the product reports it, and classification of the pieces, for each request.
    pub requests: Vec<(Option<String>, Vec<Classification>)>,
    /// Offset of the message numbers of items. `None` = items have no numbers.
    pub numbered: Option<usize>,
    /// Facts about the end of the session, as far as the program reports them.
    pub outcome: Option<Outcome>,
    /// True if usage reports cache reads and writes separately instead of within the input.
    pub cache_beside_input: bool,
}

impl SessionReading {
    /// Adds a request with the classification of its pieces, given by their index.
    pub(crate) fn add(
        &mut self,
        request: &RecordedRequest<'_>,
        phase: Option<&str>,
        classify: impl Fn(usize, &CasePiece<'_>) -> Classification,
    ) {
        let pieces = request.pieces.iter().enumerate();
        let all: Vec<Classification> = pieces.map(|(i, p)| classify(i, p)).collect();
        for (piece, of) in request.pieces.iter().zip(&all) {
            self.note_sizes(piece.text(), of);
        }
        self.requests.push((phase.map(str::to_string), all));
    }

    /// Notes the sizes of the program's texts in a piece.
    fn note_sizes(&mut self, text: &str, of: &Classification) {
        let segments = match of {
            Classification::Constant(_, Some(name)) => return self.note(name, text.len()),
            Classification::Prompt { prior, constant: (name, bytes), .. } => {
                self.note(name, *bytes);
                prior
            }
            Classification::Segments { around: [head, tail], segments } => {
                self.note("summary_head", *head);
                self.note("summary_tail", *tail);
                segments
            }
            _ => return,
        };
        for s in segments {
            if let Some(name) = &s.constant {
                self.note(name, s.bytes);
            }
        }
    }

    /// Notes the size of a text of the program at its first occurrence, bytes.
    pub(crate) fn note(&mut self, name: &str, bytes: usize) {
        self.constants.entry(name.to_string()).or_insert(Constant::Bytes(bytes));
    }

    /// Notes the sizes of a text of the program, and a filler that stands for it.
    pub(crate) fn replace(&mut self, name: &str, text: &str) -> String {
        let utf16 = |t: &str| t.encode_utf16().count();
        let filler = crate::text::filler(name, text.len());
        let constant = Constant::Text {
            bytes: text.len(),
            utf16: Some(utf16(text)),
            json_utf16: Some(utf16(&Value::from(text).to_string()) - 2),
            placeholder: Some(filler.clone()),
        };
        self.constants.insert(name.to_string(), constant);
        filler
    }

    pub(crate) fn set(&mut self, settings: &impl Serialize) {
        if let Ok(Value::Object(all)) = serde_json::to_value(settings) {
            self.settings = all;
        }
    }
}

/// Shared test data for the products' recordings.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    pub(crate) fn piece<'a>(role: Role, text: &'a str, said: bool) -> CasePiece<'a> {
        let kind = if role == Role::Assistant { BlockKind::Assistant } else { BlockKind::User };
        CasePiece { role, kind, texts: vec![text], items: &[], said }
    }

    /// Returns a request that was not refused.
    pub(crate) fn new_request(summary: bool, pieces: Vec<CasePiece<'_>>) -> RecordedRequest<'_> {
        RecordedRequest { summary, label: None, overflowed: false, pieces }
    }

    /// Builds a session in a window of 30,000 tokens without notes or reports.
    pub(crate) fn new_session<'a>(
        wire: &'a str,
        requests: &'a [RecordedRequest<'a>],
        summaries: &'a [&'a str],
    ) -> RecordedSession<'a> {
        RecordedSession {
            model: "m",
            window: 30_000,
            max_output: 4_000,
            wire,
            told: &[],
            requests,
            summaries,
            prompts: &[],
        }
    }
}
