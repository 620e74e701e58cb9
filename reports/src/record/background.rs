//! Background summaries: when each was requested, when it was delivered, and whether it was there
//! when needed.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use ctxbench_core::Millis;

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
