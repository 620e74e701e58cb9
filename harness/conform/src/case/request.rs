//! Expected requests of a case, and the end of the run.

use ctxbench_core::prelude::*;
use ctxbench_strategies::evidence::FileLists;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{Bytes, ContentForm};

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CaseRequest {
    pub purpose: Purpose,
    /// True if any tools are offered.
    pub tools: bool,
    pub phase: Option<String>,
    pub model: Option<String>,
    pub max_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// The program's estimate of its history after a compaction.
    pub tokens_after: Option<u64>,
    pub items: Vec<Listed>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Listed {
    Item(Box<CaseItem>),
    /// Number among the items of the case.
    Number(usize),
    /// First and last of several numbers.
    Numbers([usize; 2]),
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Listed, D::Error> {
        let entry = Value::deserialize(d)?;
        let what = || {
            D::Error::custom(format!(
                "expected an item, its number, or the first and last of several, found {entry}"
            ))
        };
        match &entry {
            Value::Object(_) => CaseItem::deserialize(&entry)
                .map(|item| Listed::Item(Box::new(item)))
                .map_err(D::Error::custom),
            Value::Array(_) => {
                <[usize; 2]>::deserialize(&entry).map(Listed::Numbers).map_err(|_| what())
            }
            _ => usize::deserialize(&entry).map(Listed::Number).map_err(|_| what()),
        }
    }
}

/// An item of a request. Its text is given in one of several forms.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CaseItem {
    pub kind: BlockKind,
    pub role: Option<Role>,
    pub bytes: Bytes,
    /// Number of its message.
    pub msg: Option<usize>,
    pub id: Option<String>,
    pub name: Option<String>,
    pub form: Option<ContentForm>,
    /// True if a breakpoint of the cache follows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cache: bool,
    pub encrypted_bytes: Option<usize>,
    /// Form of the summary prompt.
    pub variant: Option<String>,
    pub text: Option<String>,
    pub sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartText>,
    /// Pieces of a summary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub segments: Vec<Segment>,
    /// The conversation in a summary prompt.
    pub transcript: Option<PartText>,
    pub prior_summary: Option<PriorSummary>,
    /// Size of a summary prompt without its transcript and prior summary.
    pub constant_bytes: Option<usize>,
    /// A text of the program, which is not compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub constant: bool,
    /// A text that differs from run to run, which is not compared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unstable: bool,
    /// True if `text` is within a text of the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrapped: bool,
    /// Sizes to which an output was cut. Its text is not compared.
    pub cut: Option<Cut>,
    /// Origin of the text, for readers.
    pub derived: Option<String>,
}

/// A text, or its hash if it is long.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PartText {
    pub bytes: Option<usize>,
    pub text: Option<String>,
    pub sha256: Option<String>,
    /// Media type of a file.
    pub media: Option<String>,
    /// The messages of a transcript, separated by a blank line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartText>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a text, or an object with `bytes` and `segments`"
)]
pub enum PriorSummary {
    Text(String),
    Segments { bytes: usize, segments: Vec<Segment> },
}

/// A piece of a summary: written by a model, constant in the program, or lists of files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    pub bytes: usize,
    pub text: Option<String>,
    pub constant: Option<String>,
    pub files: Option<FileLists>,
}

impl Segment {
    /// Creates a segment that a model has written.
    pub fn written(text: &str) -> Segment {
        Segment { bytes: text.len(), text: Some(text.to_string()), ..Segment::default() }
    }

    /// Creates a text of the program, by its name among the constants of its cases.
    pub fn constant(name: &str, bytes: usize) -> Segment {
        Segment { bytes, constant: Some(name.to_string()), ..Segment::default() }
    }
}

/// Remaining parts of an output that was cut.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    pub head_chars: usize,
    pub tail_chars: usize,
    pub omitted_chars: usize,
}

/// End of a run. Members that are missing are not compared.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    pub requests: Option<usize>,
    /// `path` argument of each call that ran.
    pub tool_calls_executed: Option<Vec<String>>,
    /// Class of the error that ended the run.
    pub error: Option<String>,
    /// The last message of the model, if there was no error.
    #[serde(rename = "final")]
    pub last: Option<Vec<String>>,
    pub compactions: Option<Vec<CaseCompaction>>,
    /// Reasons of failed compactions.
    pub failed: Option<Vec<String>>,
    /// Outcome of each message of the user: `done` or `error`.
    pub prompts: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CaseCompaction {
    pub reason: Option<String>,
    pub tokens_before: Option<u64>,
    pub tokens_after: Option<u64>,
    pub read_files: Option<Vec<String>>,
    pub modified_files: Option<Vec<String>>,
}
