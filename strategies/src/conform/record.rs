//! How what a real program sent becomes a case: which pieces of its requests are its own words,
//! where a summary stands, and which settings a case needs. Writing the case is the harness's.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ctxbench_core::block::{BlockKind, Role};
use ctxbench_core::files;
use serde_json::{Map, Value};

/// How driven sessions of a program become cases.
#[derive(Clone, Copy, Debug)]
pub struct Recording {
    /// What the program left in the folder that it ran in and a case needs to know.
    pub notes: fn(&Path) -> Map<String, Value>,
    /// What its requests mean.
    pub read: fn(&Heard<'_>) -> Reading,
    /// Cases count the texts of one message apart.
    pub texts_apart: bool,
}

/// Nothing of what a program left behind matters.
pub fn no_notes(_: &Path) -> Map<String, Value> {
    Map::new()
}

/// The session files below a folder, in order. What links lead to is none of the program's.
pub(crate) fn jsonl_in(folder: &Path) -> Vec<PathBuf> {
    let own = |p: &Path| std::fs::symlink_metadata(p).is_ok_and(|m| m.is_dir());
    let mut all = files::walk_into(folder, own, |_| {});
    all.retain(|p| p.extension().is_some_and(|e| e == "jsonl"));
    all
}

/// What a program sent its model in one session.
pub struct Heard<'a> {
    pub model: &'a str,
    /// Window that the program was told, tokens.
    pub window: u64,
    /// Largest reply that it was told, tokens.
    pub max_output: u64,
    /// Name of the wire.
    pub wire: &'a str,
    pub notes: &'a Map<String, Value>,
    /// What it said of its compactions beside its requests, in order, where it is spoken to in a
    /// way that has words for that.
    pub told: &'a [Value],
    /// Its own work and its summaries, in order.
    pub requests: &'a [Asked<'a>],
    /// Texts of the summaries that it got, in order.
    pub summaries: &'a [&'a str],
    /// How each message of the user ended: `done` or `error`.
    pub prompts: &'a [&'a str],
}

/// A request.
pub struct Asked<'a> {
    pub summary: bool,
    /// What the program itself says of the request, where its description names the place.
    pub label: Option<&'a str>,
    /// It was refused as too large.
    pub overflowed: bool,
    pub pieces: Vec<Piece<'a>>,
}

/// What an item of a case is written of: a content part or several of one message.
pub struct Piece<'a> {
    pub role: Role,
    /// As far as the wire tells: text of the user's role is `User`, also where the program wrote it.
    pub kind: BlockKind,
    pub texts: Vec<&'a str>,
    /// It holds words of the session.
    pub said: bool,
}

impl Piece<'_> {
    /// Its text, where it is one text.
    pub fn text(&self) -> &str {
        self.texts.first().copied().unwrap_or("")
    }

    /// Text in the user's place.
    pub fn of_user(&self) -> bool {
        self.kind == BlockKind::User && self.role == Role::User
    }

    /// The program's instructions.
    pub fn instructs(&self) -> bool {
        matches!(self.role, Role::Instructions | Role::System | Role::Developer)
    }
}

/// What a piece is.
#[derive(Clone, Debug, PartialEq)]
pub enum As {
    /// The conversation's, or made of it: its text is compared.
    Said(BlockKind),
    /// The program's own words, of which only the size is told.
    Constant(BlockKind),
    /// A summary behind words of the program, which end where the body begins.
    Summary { body: Range<usize> },
    /// A summary in pieces, without the words of the program around it.
    Segments(Vec<Segment>),
    /// A summary prompt that holds the conversation as a text.
    Prompt {
        /// Which of the program's prompts it is, where cases tell.
        variant: Option<&'static str>,
        transcript: String,
        /// The summary before it; nothing = there is none.
        prior: Vec<Segment>,
        /// Size of the rest, bytes.
        constant_bytes: usize,
    },
}

/// A piece of a summary.
#[derive(Clone, Debug, PartialEq)]
pub enum Segment {
    /// Written by a model.
    Said(String),
    /// The program's own words, by their name among the constants of its cases, and their size,
    /// bytes.
    Constant(&'static str, usize),
}

impl Segment {
    /// Its size, bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Segment::Said(text) => text.len(),
            Segment::Constant(_, bytes) => *bytes,
        }
    }
}

/// What a product makes of a recorded session.
#[derive(Default)]
pub struct Reading {
    pub settings: Map<String, Value>,
    pub constants: Map<String, Value>,
    /// Further members of the first base piece.
    pub base: Map<String, Value>,
    /// The same of the first context piece.
    pub context: Map<String, Value>,
    /// The same of the tools.
    pub tools: Map<String, Value>,
    /// Of every request when it was made, where the product tells, and what its pieces are.
    pub requests: Vec<(Option<String>, Vec<As>)>,
    /// Items carry the number of their message less this.
    pub numbered: Option<usize>,
    /// What cases say of the end, as far as the program tells.
    pub outcome: Map<String, Value>,
    /// Requests carry the largest reply that they allow.
    pub limits_replies: bool,
    /// Usage counts what the cache served or stored beside the input and not within it.
    pub cache_beside_input: bool,
}

impl Reading {
    /// Sizes of a constant text as cases write them, with a filler that may stand for it.
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

/// What tests of the products' recordings lay out.
#[cfg(test)]
pub(crate) mod testing {
    use std::sync::LazyLock;

    use super::*;

    static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

    /// A text of a role.
    pub(crate) fn piece<'a>(role: Role, text: &'a str, said: bool) -> Piece<'a> {
        let kind = if role == Role::Assistant { BlockKind::Assistant } else { BlockKind::User };
        Piece { role, kind, texts: vec![text], said }
    }

    /// A request that came through.
    pub(crate) fn asked(summary: bool, pieces: Vec<Piece<'_>>) -> Asked<'_> {
        Asked { summary, label: None, overflowed: false, pieces }
    }

    /// A session in a window of 30,000 tokens of which nothing was noted or told.
    pub(crate) fn heard<'a>(
        wire: &'a str,
        requests: &'a [Asked<'a>],
        summaries: &'a [&'a str],
    ) -> Heard<'a> {
        Heard {
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
