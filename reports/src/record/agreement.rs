//! Agreement of our implementation of an agent with the agent itself.

use serde::{Deserialize, Serialize};

/// Link from the row of our implementation to the agent that was driven. It is a second row of the
/// same product and does not compete.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counterpart {
    /// The label of the agent's own row.
    pub row: String,
    /// Agreement of the two; `None` if one of them did not finish the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

/// Comparison of two rows of one session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    pub figures: Vec<TwoFigures>,
    /// Numbers of the requests that ask for a summary, among all requests.
    pub summary_requests: Two<Vec<u64>>,
    /// First normal request that differs by more than 0.5 % of its tokens, or that only one of the
    /// two made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<TwoRequests>,
}

/// A value of the agent and of our implementation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Two<T> {
    /// Value of the agent.
    pub real: T,
    /// Value of our implementation.
    pub ours: T,
}

/// A figure of the agent and of our implementation; `None` if unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TwoFigures {
    /// Name, with its unit.
    pub what: String,
    /// Value of the agent.
    pub real: Option<f64>,
    /// Value of our implementation.
    pub ours: Option<f64>,
}

/// A request of the agent and of our implementation; `None` if it was not made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoRequests {
    /// Number of the request, from 1.
    pub request: usize,
    /// Tokens of the agent's request.
    pub real_tokens: Option<u64>,
    /// Tokens of our implementation.
    pub our_tokens: Option<u64>,
}
