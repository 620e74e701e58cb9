//! What each compaction took, cost and left.

use serde::{Deserialize, Serialize};

use ctxbench_core::compaction::CompactionKind;
use ctxbench_core::request::Phase;
use ctxbench_core::session::Millis;

/// One compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompactionRecord {
    /// Number in the run, from 0.
    pub seq: u64,
    /// Clear, truncate, drop or summarise.
    pub kind: CompactionKind,
    /// Product's name of the mechanism, such as `prune`.
    pub mechanism: String,
    /// When.
    pub phase: Phase,
    /// Number of the next request.
    pub before_request: u64,
    /// Virtual time, ms.
    pub at_ms: Millis,
    /// Context before, tokens.
    pub before_tokens: u64,
    /// Context after, tokens; `None` = it was recorded, and nothing tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_tokens: Option<u64>,
    /// Tokens behind the first change, which the prompt cache cannot serve any more.
    pub invalidated_tokens: u64,
    /// Tokens of the summary, if one was written.
    pub summary_tokens: u64,
    /// Waiting that it caused, ms, modelled; `None` = it was recorded, and not measured. The same
    /// below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_ms: Option<Millis>,
    /// USD of its own calls; `None` = it was recorded, and nothing tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Facts that left the verbatim context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_lost_verbatim: Option<u64>,
    /// Of these, how many the summary or restoration carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_carried: Option<u64>,
    /// Later calls needed until it has paid for itself; `None` = what it took is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub break_even_calls: Option<BreakEven>,
    /// Calls that followed before the next compaction, the one that it was made for included.
    pub calls_after: u64,
    /// Whether these were more than break-even takes; `None` = not yet, and the run was broken off
    /// before it could tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paid_off: Option<bool>,
    /// Facts established so far that are still needed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_needed_later: Option<u64>,
    /// Of these, the share that the context carries right after, per cent: a point of the drift
    /// curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retained_pct: Option<f64>,
    /// What stood in the context before and does not after, by kind, the most tokens first; empty =
    /// nothing, or not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub went: Vec<Portion>,
    /// What stands there after and did not before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came: Vec<Portion>,
}

/// Later calls until a compaction has paid for itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakEven {
    /// It saves nothing.
    Never,
    /// So many.
    #[serde(untagged)]
    Calls(f64),
}

impl BreakEven {
    /// The number of calls; `None` = never.
    pub fn calls(self) -> Option<f64> {
        match self {
            BreakEven::Never => None,
            BreakEven::Calls(calls) => Some(calls),
        }
    }
}

/// Blocks of one kind, with the words of the largest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Portion {
    /// Kind of block, and what was done to it: `output`, `output cleared`.
    pub kind: String,
    /// How many.
    pub blocks: u64,
    /// All of them, tokens.
    pub tokens: u64,
    /// The largest, the largest first; empty = the run had used up its room for words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<BlockText>,
}

/// The beginning of a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockText {
    /// The tool, of a call or a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The whole block, tokens.
    pub tokens: u64,
    /// A summary up to [`SUMMARY_TEXT`] characters, anything else up to
    /// [`EXCERPT`](super::EXCERPT).
    pub text: String,
}

/// Longest text of a summary in a [`BlockText`], characters.
pub const SUMMARY_TEXT: usize = 4_000;
