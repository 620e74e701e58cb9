//! What was handed to subagents: plain data, as in [`super`].

use serde::{Deserialize, Serialize};

use super::Status;
use ctxbench_core::session::Millis;

/// One subagent of a run: what its own window cost, and what of it came back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delegation {
    /// Its id in the session.
    pub agent: String,
    /// The call that started it; `None` = no call could be found for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The subagent that made that call; `None` = the main conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// Number of the request whose reply made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// Whether the caller waited for its end.
    pub waited: bool,
    /// How it ended.
    pub status: Status,
    /// Recorded replies of its window that it made.
    pub steps: u64,
    /// Requests of every purpose.
    pub requests: u64,
    /// Compactions of its own window.
    pub compactions: u64,
    /// Input tokens billed, cached ones included.
    pub input_tokens: u64,
    /// Of these, read from the prompt cache.
    pub cache_read_tokens: u64,
    /// Of these, written to the prompt cache.
    pub cache_write_tokens: u64,
    /// Output tokens billed.
    pub output_tokens: u64,
    /// USD.
    pub cost_usd: f64,
    /// Virtual time at which it began, ms.
    pub started_ms: Millis,
    /// Virtual time that it took, ms.
    pub duration_ms: Millis,
    /// Of this, waiting caused by its compactions, ms.
    pub blocked_ms: Millis,
    /// Largest prompt of a normal request, tokens.
    pub peak_context_tokens: u64,
    /// Size of the result that its caller got, o200k tokens; `None` = none was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_tokens: Option<u64>,
    /// Facts that arise in its window.
    pub delegated_facts: u64,
    /// Of these, how many the result carries.
    pub returned_facts: u64,
    /// (fact, need) pairs whose fact arises in its window and whose need lies outside of it.
    pub needed_outside: u64,
    /// Of these, how many were in the context at the need.
    pub kept_outside: u64,
}
