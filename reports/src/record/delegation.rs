//! Work delegated to subagents: plain data, as in [`super`].

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Status;
use ctxbench_core::Millis;

/// One subagent of a run, with the cost of its window and the facts that it returned.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// Id of the subagent in the session.
    pub agent: String,
    /// Call that started the subagent; `None` if no call was found.
    pub call: Option<String>,
    /// Subagent that made the call; `None` for the main conversation.
    pub caller: Option<String>,
    /// Number of the request with the reply that made the call.
    pub request: Option<u64>,
    /// True if the caller waited for the end of the subagent.
    pub waited: bool,
    pub status: Status,
    /// Number of recorded replies that were made in its window.
    pub steps: u64,
    /// Number of requests of every purpose.
    pub requests: u64,
    /// Number of compactions of its window.
    pub compactions: u64,
    /// Input tokens billed, cached ones included.
    pub input_tokens: u64,
    /// Input tokens read from the prompt cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the prompt cache.
    pub cache_write_tokens: u64,
    pub output_tokens: u64,
    pub cost_usd: f64,
    /// Virtual time at which it began, ms.
    pub started_ms: Millis,
    /// Virtual duration, ms.
    pub duration_ms: Millis,
    /// Part of the duration spent waiting for its compactions, ms.
    pub blocked_ms: Millis,
    /// Largest prompt of a normal request, tokens.
    pub peak_context_tokens: u64,
    /// Size of the result that the caller received, o200k tokens; `None` if none was recorded.
    pub result_tokens: Option<u64>,
    /// Number of facts that arise in its window.
    pub delegated_facts: u64,
    /// Number of delegated facts that the result contains.
    pub returned_facts: u64,
    /// Number of (fact, need) pairs with a fact that arises in its window and a need outside of it.
    pub needed_outside: u64,
    /// Number of these pairs with a fact that was in the context at the need.
    pub kept_outside: u64,
}
