//! The file of a recorded case (CONTRIBUTING.md).

mod event;
mod request;

use std::collections::BTreeMap;

use ctxbench_core::model::Provider;
use ctxbench_core::request::Purpose;
use ctxbench_core::{Model, Role};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use event::{
    CaseCall, CaseEvent, CaseReasoning, CaseReply, CaseUsage, ContentForm, RefusedRequest,
    ReplyBlock, UserPart,
};
pub use request::{
    CaseCompaction, CaseItem, CaseRequest, Cut, Listed, Outcome, PartText, PriorSummary, Segment,
};

/// Error that prevents a case from running.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    #[error("{at}: expected {expected}, found {found}")]
    Value {
        at: String,
        /// Description of a valid value.
        expected: String,
        found: String,
    },
    /// The file is no case, something in it is not known here, or its run does not end.
    #[error("{0}")]
    Other(String),
}

impl CaseError {
    /// The file at a path, or the object in it, is not JSON, or a member is unknown, missing or
    /// mistyped.
    pub(crate) fn shape(at: &str, why: &serde_json::Error) -> CaseError {
        CaseError::Other(format!("{at}: {why}"))
    }

    /// An agent, version or wire is not known here.
    pub(crate) fn unknown(what: &str, name: &str) -> CaseError {
        CaseError::Other(format!("unknown {what} `{name}`"))
    }
}

/// Recorded session of a program, with the requests that it made.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Always `replay`.
    pub kind: String,
    /// Name of the program's strategy.
    pub agent: String,
    /// Version of the recorded program.
    pub version: String,
    pub name: String,
    /// Purpose of the case, for readers.
    #[serde(default)]
    pub shows: String,
    /// Settings of the program, as it stores them.
    pub settings: Map<String, Value>,
    /// Sizes of texts that are constant in the program.
    #[serde(default)]
    pub constants: Constants,
    /// Pieces that every request shows.
    pub fixed: Vec<FixedPiece>,
    /// Events of the session, in order.
    pub events: Vec<CaseEvent>,
    /// Items that requests name by their number, from 0.
    #[serde(default)]
    pub items: Vec<CaseItem>,
    pub requests: Vec<CaseRequest>,
    /// Fields left out of the comparison.
    #[serde(default)]
    pub not_compared: Vec<String>,
    /// End of the run: errors, calls and compactions.
    pub outcome: Option<Outcome>,
}

pub type Constants = BTreeMap<String, Constant>;

/// Sizes of a text of the program.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a size in bytes, or an object with `bytes`"
)]
pub enum Constant {
    Bytes(usize),
    Text {
        bytes: usize,
        utf16: Option<usize>,
        json_utf16: Option<usize>,
        /// A text of the same size that stands for it in the recording.
        placeholder: Option<String>,
    },
}

impl Constant {
    pub fn bytes(&self) -> usize {
        match self {
            Constant::Bytes(bytes) | Constant::Text { bytes, .. } => *bytes,
        }
    }

    pub fn placeholder(&self) -> Option<&str> {
        match self {
            Constant::Text { placeholder, .. } => placeholder.as_deref(),
            Constant::Bytes(_) => None,
        }
    }
}

/// Sizes of the parts of a content, in bytes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a size in bytes, or a list of sizes")]
pub enum Bytes {
    One(usize),
    Parts(Vec<usize>),
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::One(0)
    }
}

impl From<Vec<usize>> for Bytes {
    fn from(sizes: Vec<usize>) -> Bytes {
        match sizes.as_slice() {
            [one] => Bytes::One(*one),
            _ => Bytes::Parts(sizes),
        }
    }
}

impl Bytes {
    pub fn sizes(&self) -> &[usize] {
        match self {
            Bytes::One(size) => std::slice::from_ref(size),
            Bytes::Parts(sizes) => sizes,
        }
    }

    pub fn sum(&self) -> usize {
        self.sizes().iter().sum()
    }
}

/// The model of a recorded session, in the settings of a case.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseModel {
    pub(crate) name: Option<String>,
    /// Window, tokens.
    pub(crate) context: u64,
    /// Largest reply, tokens.
    pub(crate) output: Option<u64>,
    /// Separate limit of the input, tokens.
    pub(crate) input: Option<u64>,
}

impl CaseModel {
    /// Returns a model with these limits, and everything else from another one.
    pub(crate) fn over(self, other: Model, provider: Provider) -> Model {
        Model {
            name: self.name.as_deref().unwrap_or("mock-model").into(),
            window: self.context,
            max_output: self.output.unwrap_or(other.max_output),
            input_limit: self.input,
            provider,
            ..other
        }
    }
}

/// Wire API of a recorded session, in the settings of a case.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CaseWire {
    OpenaiChat,
    Anthropic,
    Gemini,
}

/// A piece that every request shows.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FixedPiece {
    Base(FixedText),
    Context(FixedText),
    Tools(FixedTools),
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FixedText {
    pub role: Role,
    pub bytes: Bytes,
    /// Purpose of the requests that show it. `None` = all.
    #[serde(rename = "for")]
    pub purpose: Option<Purpose>,
    /// Either the text, or `constant` if only its size is known.
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub constant: bool,
    /// Number of its message.
    pub msg: Option<usize>,
    /// Size in the program's estimate, if it differs.
    pub estimate_bytes: Option<u64>,
    pub estimate_tokens: Option<u64>,
    pub json_bytes: Option<usize>,
    pub json_utf16: Option<usize>,
    pub ascii_chars: Option<usize>,
    pub other_chars: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FixedTools {
    pub count: usize,
    #[serde(rename = "for")]
    pub purpose: Option<Purpose>,
    /// Size of the JSON form in the program's estimate.
    pub json_utf16: Option<usize>,
}

impl Case {
    pub(crate) fn settings<T: DeserializeOwned>(&self) -> Result<T, CaseError> {
        read("settings", Value::Object(self.settings.clone()))
    }

    /// Returns the size of a constant, bytes.
    pub(crate) fn constant(&self, name: &str) -> usize {
        self.constants.get(name).map_or(0, Constant::bytes)
    }

    /// Returns the first base piece of the requests of the main work.
    pub(crate) fn base(&self) -> Option<&FixedText> {
        self.fixed.iter().find_map(|f| match f {
            FixedPiece::Base(base) if base.purpose != Some(Purpose::Summary) => Some(base),
            _ => None,
        })
    }

    pub fn items_of<'a>(&'a self, request: &'a CaseRequest) -> impl Iterator<Item = &'a CaseItem> {
        request.items.iter().flat_map(|entry| match entry {
            Listed::Item(item) => std::slice::from_ref(&**item),
            Listed::Number(n) => self.items.get(*n..=*n).unwrap_or_default(),
            Listed::Numbers([first, last]) => self.items.get(*first..=*last).unwrap_or_default(),
        })
    }
}

/// Parses a value. `at` appears in errors.
pub(crate) fn read<T: DeserializeOwned>(at: &str, v: Value) -> Result<T, CaseError> {
    serde_json::from_value(v).map_err(|e| CaseError::shape(at, &e))
}
