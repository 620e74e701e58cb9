//! Work delegated to subagents: plain data, as in [`super`].

use serde::{Deserialize, Serialize};

use super::Status;
use ctxbench_core::session::Millis;

/// One subagent of a run, with the cost of its window and the facts that it returned.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// Id of the subagent in the session.
    pub agent: String,
    /// The call that started it; `None` = no call could be found for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The subagent that made that call; `None` = the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Request with the reply that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// True if the caller waited for the end of the subagent.
    pub waited: bool,
    pub status: Status,
    /// Recorded replies of its window that were made.
    pub steps: u64,
    /// Requests of every purpose.
    pub requests: u64,
    /// Compactions of its window.
    pub compactions: u64,
    /// Input tokens billed, cached ones included.
    pub input_tokens: u64,
    /// Input tokens read from the prompt cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the prompt cache.
    pub cache_write_tokens: u64,
    pub output_tokens: u64,
    /// Cost in USD.
    pub cost_usd: f64,
    /// Virtual time at which it began, ms.
    pub started_ms: Millis,
    /// Virtual time that it took, ms.
    pub duration_ms: Millis,
    /// Part of the duration that it waited for its compactions, ms.
    pub blocked_ms: Millis,
    /// Largest prompt of a normal request, tokens.
    pub peak_context_tokens: u64,
    /// Size of the result that its caller got, o200k tokens; `None` = none was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_tokens: Option<u64>,
    /// Facts that arise in its window.
    pub delegated_facts: u64,
    /// Delegated facts that the result carries.
    pub returned_facts: u64,
    /// (fact, need) pairs with a fact that arises in its window and a need outside of it.
    pub needed_outside: u64,
    /// Pairs among these with a fact that was in the context at the need.
    pub kept_outside: u64,
}
