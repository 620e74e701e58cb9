//! Facts at their needs, and their history over a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use ctxbench_core::fact::{FactKind, Match};

/// Kind of block that carries a fact; if there are several, the last of these counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactPlace {
    #[default]
    Nowhere,
    Summary,
    /// Memory files, the system prompt, a repo map.
    Memory,
    /// A file that was shown again.
    Restored,
    /// Unchanged part of the history.
    Verbatim,
}

/// A (fact, need) pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FactRecord {
    /// Fact id.
    pub fact: String,
    /// Its kind.
    pub kind: FactKind,
    /// The needing message.
    pub need: String,
    /// Replies since a tool or a user showed it last; `None` = only the agent stated it
    /// in this window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<u64>,
    /// Whether its last showing, or else the reply in which it arises, belongs to an earlier
    /// session of the project.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub across: bool,
    /// Whether it asks for memory: a user message needs the fact, or a reply that comes long after
    /// the last showing.
    #[serde(default)]
    pub counts: bool,
    /// Whether a request before the need had removed or changed the block that showed it last;
    /// `None` = not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exposed: Option<bool>,
    /// Number of the request at the need; `None` = the run did not get there.
    pub request: Option<u64>,
    /// Quality of the match in the context.
    pub found: Match,
    /// Which kind of block carried it.
    pub place: FactPlace,
    /// Whether the fact was gone and an older value that it replaced was there.
    pub stale: bool,
    /// The fact and an older value that it replaced were both there.
    #[serde(default)]
    pub both: bool,
    /// A summary asserted something else in the fact's place.
    #[serde(default)]
    pub contradicted: bool,
    /// Whether the fact was gone and a summary contained it in altered form.
    #[serde(default)]
    pub drifted: bool,
    /// It arises in another window than the needing one and was never said there, so that no
    /// strategy could show it; it counts in no share.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undelivered: bool,
    /// Number of compactions before the need.
    pub compactions_before: u64,
}

/// Longest text in a [`FactLife`], characters.
pub const EXCERPT: usize = 200;

/// History of a fact. Texts are cut to [`EXCERPT`] characters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FactLife {
    /// Fact id.
    pub fact: String,
    /// Its literals; of a fact without any, the stems of its text.
    pub tokens: Vec<String>,
    /// Id of the message or call that states it first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arises: String,
    /// Excerpt of its source.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub text: Arc<str>,
    /// The first request that showed it; `None` = no request did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_shown: Option<u64>,
    /// Compactions that moved it from one place to another, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moves: Vec<FactMove>,
}

/// A compaction that took a fact from one place to another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FactMove {
    /// Number of the compaction in the run.
    pub compaction: u64,
    pub from: FactPlace,
    pub to: FactPlace,
    /// Excerpt from before.
    pub before: Arc<str>,
    /// The words around it after; where it is gone, the line of a summary nearest to the words
    /// before. Empty = no such line.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub after: Arc<str>,
}
