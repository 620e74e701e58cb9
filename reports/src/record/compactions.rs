//! Size, cost and effect of each compaction, and the summaries that were requested in the
//! background for one: whether they were there when needed.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use ctxbench_core::{CompactionKind, Millis, Phase};

#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompactionRecord {
    /// Number in the run, from 0.
    pub seq: u64,
    /// Clear, truncate, drop or summarise.
    pub kind: CompactionKind,
    /// Product's name of the mechanism, such as `prune`.
    pub mechanism: String,
    /// Phase of the session.
    pub phase: Phase,
    /// Number of the next request.
    pub before_request: u64,
    /// Virtual time, ms.
    pub at_ms: Millis,
    /// Context before, tokens.
    pub before_tokens: u64,
    /// Context after, tokens; `None` if a recording does not report it.
    pub after_tokens: Option<u64>,
    /// Tokens after the first change, which the prompt cache can no longer serve.
    pub invalidated_tokens: u64,
    /// Tokens of the summary, if one was written.
    pub summary_tokens: u64,
    /// Waiting that it caused, ms, modelled; `None` for a recorded compaction, where it is not
    /// measured. This also applies to the counts of facts below.
    pub blocked_ms: Option<Millis>,
    /// Cost of the calls that the compaction made, USD; `None` if a recording does not report it.
    pub cost_usd: Option<f64>,
    /// Whether that cost has the visible output in place of a counted stub.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_is_estimate: bool,
    /// Facts that were removed from the verbatim context.
    pub facts_lost_verbatim: Option<u64>,
    /// Removed facts that the summary or restoration contains.
    pub facts_carried: Option<u64>,
    /// Number of later calls until the compaction pays for itself; `None` if its cost is unknown.
    pub break_even_calls: Option<BreakEven>,
    /// Number of calls until the next compaction, including the call for which it was made.
    pub calls_after: u64,
    /// True if `calls_after` exceeds the break-even; `None` if it does not yet and the run was
    /// interrupted.
    pub paid_off: Option<bool>,
    /// Facts established so far that are still needed later.
    pub facts_needed_later: Option<u64>,
    /// Share of the facts needed later that the context contains right after the compaction, per
    /// cent: a point of the drift curve.
    pub retained_pct: Option<f64>,
    /// Blocks removed from the context by kind, most tokens first; empty if none or unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub went: Vec<Portion>,
    /// Blocks added to the context.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub came: Vec<Portion>,
}

/// Later calls until a compaction has paid for itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakEven {
    /// It saves no tokens.
    Never,
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

/// Blocks of one kind, with excerpts of the largest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Portion {
    /// Kind of block and its change: `output`, `output cleared`.
    pub kind: String,
    pub blocks: u64,
    /// Tokens of all blocks.
    pub tokens: u64,
    /// Excerpts, the largest block first; empty if the run had no room left for excerpts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<BlockText>,
}

/// The beginning of a block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockText {
    /// Name of the tool, for a call or a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Size of the whole block, tokens.
    pub tokens: u64,
    /// Beginning of the text: up to [`SUMMARY_TEXT`] characters of a summary, and up to
    /// [`EXCERPT`](super::EXCERPT) of any other block.
    pub text: String,
}

/// Maximum length of a summary in a [`BlockText`], characters.
pub const SUMMARY_TEXT: usize = 4_000;

/// Outcome of a background summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was there when it was first needed, and was used.
    InTime,
    /// The conversation waited for it and used it.
    LateWaited,
    /// It was needed but not there yet, and the conversation continued without it. It was used
    /// later or discarded.
    LateProceeded,
    /// It was cancelled before it was needed, or the session ended first.
    Cancelled,
    /// The history that it covers had changed, so it was discarded.
    Stale,
    /// No usable summary was returned.
    Failed,
}

#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundRecord {
    /// Number of its first request in the run.
    pub request: u64,
    /// Virtual time of this request, ms.
    pub spawned_ms: Millis,
    /// Number of requests that it took. Requests to further models and for further parts of a long
    /// history count for one summary.
    pub requests: u64,
    /// Number of the request before which its last answer was used; `None` if it never was.
    pub before_request: Option<u64>,
    /// Virtual time of the delivery, ms.
    pub delivered_ms: Option<Millis>,
    /// Time that the conversation waited for it, ms.
    pub waited_ms: Millis,
    pub fate: Fate,
}
