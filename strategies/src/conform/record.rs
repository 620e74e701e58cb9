//! Conversion of a real program's requests to a case: the pieces written by the program, the
//! position of the summary, and the settings that the case needs. The harness writes the case.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ctxbench_core::block::{BlockKind, Role};
use ctxbench_core::files;
use serde_json::{Map, Value};

/// Functions for converting driven sessions of a program to cases.
#[derive(Clone, Copy, Debug)]
pub struct CaseRecording {
    /// Reads the facts for a case from the program's folder.
    pub notes: fn(&Path) -> Map<String, Value>,
    /// Classifies the requests of a session.
    pub read: fn(&RecordedSession<'_>) -> SessionReading,
    /// True if cases count the texts of one message separately.
    pub texts_apart: bool,
}

/// Returns no notes, for programs that have no facts to read in their folder.
pub fn no_notes(_: &Path) -> Map<String, Value> {
    Map::new()
}

/// Returns the session files below a folder, in order. Does not follow links.
pub(crate) fn jsonl_in(folder: &Path) -> Vec<PathBuf> {
    let own = |p: &Path| std::fs::symlink_metadata(p).is_ok_and(|m| m.is_dir());
    let mut all = files::walk_into(folder, own, |_| {});
    all.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
    all
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
    pub notes: &'a Map<String, Value>,
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

/// Classification of a piece.
#[derive(Clone, Debug, PartialEq)]
pub enum Classification {
    /// A text from the conversation, or derived from it. The text is compared.
    Said(BlockKind),
    /// A text of the program. Only its size is recorded.
    Constant(BlockKind),
    /// A summary after a text of the program, which ends where the body starts.
    Summary { body: Range<usize> },
    /// A summary in segments, without the program's text around it.
    Segments(Vec<SummarySegment>),
    /// A summary prompt that contains the conversation as a text.
    Prompt {
        /// Variant of the program's prompt, if cases distinguish them.
        variant: Option<&'static str>,
        transcript: String,
        /// The previous summary. Empty = none.
        prior: Vec<SummarySegment>,
        /// Size of the rest, bytes.
        constant_bytes: usize,
    },
}

/// A piece of a summary.
#[derive(Clone, Debug, PartialEq)]
pub enum SummarySegment {
    /// Written by a model.
    Said(String),
    /// A text of the program, by its name among the constants of its cases, and its size in bytes.
    Constant(&'static str, usize),
}

impl SummarySegment {
    pub fn bytes(&self) -> usize {
        match self {
            SummarySegment::Said(text) => text.len(),
            SummarySegment::Constant(_, bytes) => *bytes,
        }
    }
}

/// A product's classification of a recorded session.
#[derive(Default)]
pub struct SessionReading {
    pub settings: Map<String, Value>,
    pub constants: Map<String, Value>,
    /// Further members of the first base piece.
    pub base: Map<String, Value>,
    /// Facts about the first context piece.
    pub context: Map<String, Value>,
    /// Facts about the tools.
    pub tools: Map<String, Value>,
    /// Phase, if the product reports it, and classification of the pieces, for each request.
    pub requests: Vec<(Option<String>, Vec<Classification>)>,
    /// Offset of the message numbers of items. `None` = items have no numbers.
    pub numbered: Option<usize>,
    /// Facts about the end of the session, as far as the program reports them.
    pub outcome: Map<String, Value>,
    /// True if requests contain the largest allowed reply.
    pub limits_replies: bool,
    /// True if usage reports cache reads and writes separately instead of within the input.
    pub cache_beside_input: bool,
}

impl SessionReading {
    /// Returns the sizes of a constant text as cases write them, with a filler.
    pub(crate) fn constant(&mut self, name: &str, text: &str) {
        let utf16 = |t: &str| t.encode_utf16().count();
        let json = Value::from(text).to_string();
        let sizes = serde_json::json!({
            "bytes": text.len(),
            "utf16": utf16(text),
            "json_utf16": utf16(&json) - 2,
            "placeholder": super::text::filler(name, text.len()),
        });
        self.constants.insert(name.to_string(), sizes);
    }
}

/// Shared test data for the products' recordings.
#[cfg(test)]
pub(crate) mod testing {
    use std::sync::LazyLock;

    use super::*;

    static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

    /// Returns a piece with a text.
    pub(crate) fn piece<'a>(role: Role, text: &'a str, said: bool) -> CasePiece<'a> {
        let kind = if role == Role::Assistant { BlockKind::Assistant } else { BlockKind::User };
        CasePiece { role, kind, texts: vec![text], said }
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
            notes: &NOTHING,
            told: &[],
            requests,
            summaries,
            prompts: &[],
        }
    }
}
