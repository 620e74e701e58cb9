//! A recorded case, read from its file.

use std::path::Path;

use ctxbench_strategies::all;
use ctxbench_strategies::conform::text::BadRecipe;
use ctxbench_strategies::conform::{MemberError, Replay};
use serde::Deserialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// Error that prevents a case from running.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The file is not a case.
    #[error("{path}: not a case of the expected format: {source}")]
    Json {
        path: String,
        /// Parse error with line and column.
        source: serde_json::Error,
    },
    /// A member of a case is unknown, missing or invalid.
    #[error("{at}: expected {expected}, found {found}")]
    Member {
        /// Path of the member.
        at: String,
        /// Description of a valid value.
        expected: String,
        found: String,
    },
    /// An agent, version, event or setting that is not known here.
    #[error("unknown {what} `{name}`")]
    Unknown {
        /// Kind of the unknown name, such as `version`.
        what: &'static str,
        name: String,
    },
    /// Fault reported by the product.
    #[error(transparent)]
    Product(#[from] MemberError),
    /// A recipe that gives no text.
    #[error(transparent)]
    Text(#[from] BadRecipe),
    /// The run panicked.
    #[error("the run of the case ended in a panic")]
    Poisoned,
}

/// Recorded session of a program, with the requests that it made.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Always `replay`.
    pub kind: String,
    /// Name of the program's strategy.
    pub agent: String,
    /// Version of the recorded program.
    pub version: String,
    /// Name of the case.
    pub name: String,
    /// Purpose of the case, for readers.
    #[serde(default)]
    pub shows: String,
    /// Settings of the program.
    pub settings: Map<String, Value>,
    /// Sizes of texts that are constant in the program.
    #[serde(default)]
    pub constants: Map<String, Value>,
    /// Pieces that every request shows.
    pub fixed: Vec<Value>,
    /// Events of the session, in order.
    pub events: Vec<Value>,
    /// Items that requests name by their number, from 0.
    #[serde(default)]
    pub items: Vec<Value>,
    pub requests: Vec<Value>,
    /// Fields left out of the comparison.
    #[serde(default)]
    pub not_compared: Vec<String>,
    /// End of the run: errors, calls and compactions.
    #[serde(default)]
    pub outcome: Option<Value>,
}

impl Case {
    /// Reads a case from a file.
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

    /// Returns the items of a request, which lists each as a value, by its number, or as the first
    /// and last of several numbers.
    pub(super) fn items_of<'a>(&'a self, request: &'a Value) -> impl Iterator<Item = &'a Value> {
        let listed = request["items"].as_array().map_or(&[][..], Vec::as_slice);
        listed.iter().flat_map(|entry| match span(entry) {
            Some((first, last)) => self.items.get(first..=last).unwrap_or_default(),
            None => std::slice::from_ref(entry),
        })
    }

    /// Returns the replay functions of the case's program.
    pub(super) fn product(&self) -> Result<&'static Replay, CaseError> {
        let found = all().find(|d| d.name == self.agent).and_then(|d| d.conform.replay());
        found.ok_or_else(|| CaseError::Unknown { what: "agent", name: self.agent.clone() })
    }
}

/// Returns the first and last number of an entry in a request's items. `None` = the entry is an
/// item.
pub(super) fn span(entry: &Value) -> Option<(usize, usize)> {
    let number = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok());
    match entry.as_array().map(Vec::as_slice) {
        Some([first, last]) => Some((number(first)?, number(last)?)),
        _ => number(entry).map(|n| (n, n)),
    }
}
