//! A recorded case as it is read from its file.

use std::path::Path;

use ctxbench_strategies::all;
use ctxbench_strategies::conform::text::BadRecipe;
use ctxbench_strategies::conform::{Fault, Replay};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// Why a case cannot be run.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// File.
        path: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The file is not a case.
    #[error("{path}: not a case of the expected format: {source}")]
    Json {
        /// File.
        path: String,
        /// Cause, with line and column.
        source: serde_json::Error,
    },
    /// A value has an unexpected form.
    #[error("expected {what}, found {found}")]
    Format {
        /// Expected value.
        what: String,
        /// Actual value.
        found: String,
    },
    /// A member of a case is unknown, missing or invalid.
    #[error("{at}: expected {expected}, found {found}")]
    Member {
        /// Path of the member.
        at: String,
        /// Expected value.
        expected: String,
        /// Actual value.
        found: String,
    },
    /// An agent, version, event or setting that is not known here.
    #[error("unknown {what} `{name}`")]
    Unknown {
        /// Sort of thing.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Fault reported by the product.
    #[error(transparent)]
    Product(#[from] Fault),
    /// A text that cannot be made.
    #[error(transparent)]
    Text(#[from] BadRecipe),
    /// A run ended in a panic.
    #[error("the run of the case ended in a panic")]
    Poisoned,
}

/// A replay case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// `replay` or `function`.
    pub kind: String,
    /// Program.
    pub agent: String,
    /// Its version.
    pub version: String,
    /// Name of the case.
    pub name: String,
    /// Description for readers.
    #[serde(default)]
    pub shows: String,
    /// Settings of the program.
    pub settings: Map<String, Value>,
    /// Sizes of texts that are constant in the program.
    #[serde(default)]
    pub constants: Map<String, Value>,
    /// Pieces that every request shows.
    pub fixed: Vec<Value>,
    /// Events, in order.
    pub events: Vec<Value>,
    /// Items that requests name by their number, from 0.
    #[serde(default)]
    pub items: Vec<Value>,
    /// Expected requests.
    pub requests: Vec<Value>,
    /// Fields left out of the comparison.
    #[serde(default)]
    pub not_compared: Vec<String>,
    /// How it ends.
    #[serde(default)]
    pub outcome: Option<Value>,
}

impl Case {
    /// Reads a case.
    pub fn read(path: &Path) -> Result<Case, CaseError> {
        let name = path.display().to_string();
        let text = ctxbench_core::files::read_text(path)
            .map_err(|source| CaseError::Read { path: name.clone(), source })?;
        Case::parse(&text, &name)
    }

    /// Parses a case. `name` appears in errors.
    pub fn parse(text: &str, name: &str) -> Result<Case, CaseError> {
        serde_json::from_str(text)
            .map_err(|source| CaseError::Json { path: name.to_string(), source })
    }

    /// The items of a request: written out, or by their number, or as the first and last of
    /// several numbers.
    pub(super) fn items_of<'a>(&'a self, request: &'a Value) -> impl Iterator<Item = &'a Value> {
        let listed = request["items"].as_array().map_or(&[][..], Vec::as_slice);
        listed.iter().flat_map(|entry| match span(entry) {
            Some((first, last)) => self.items.get(first..=last).unwrap_or_default(),
            None => std::slice::from_ref(entry),
        })
    }

    /// How sessions of its program are replayed.
    pub(super) fn product(&self) -> Result<&'static Replay, CaseError> {
        let found = all().find(|d| d.name == self.agent).and_then(|d| d.conform.replay.as_ref());
        found.ok_or_else(|| CaseError::Unknown { what: "agent", name: self.agent.clone() })
    }
}

/// The first and last number that an entry of a request's items names; `None` = an item itself.
pub(super) fn span(entry: &Value) -> Option<(usize, usize)> {
    let number = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok());
    match entry.as_array().map(Vec::as_slice) {
        Some([first, last]) => Some((number(first)?, number(last)?)),
        _ => number(entry).map(|n| (n, n)),
    }
}
