//! How far our implementation of an agent agrees with the agent itself.

use serde::{Deserialize, Serialize};

/// Our implementation of an agent that was driven, on the session as that lived it: the same
/// product a second time, so it competes with nobody.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// The label of the agent's own row.
    pub row: String,
    /// How far the two agree; `None` = one of them did not come to the end of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
}

/// Two rows of one session held together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Figure by figure.
    pub figures: Vec<TwoFigures>,
    /// Numbers of the requests, among all that are sent, that ask for a summary.
    pub summary_requests: Two<Vec<u64>>,
    /// The first request of the agent's own that differs by more than one in two hundred tokens, or
    /// that only one of the two made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<TwoRequests>,
}

/// The same of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Two<T> {
    /// Of the agent.
    pub real: T,
    /// Of our implementation.
    pub ours: T,
}

/// A figure of both; `None` = unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TwoFigures {
    /// What it is, with its unit.
    pub what: String,
    /// Of the agent.
    pub real: Option<f64>,
    /// Of our implementation.
    pub ours: Option<f64>,
}

/// A request of both; `None` = not made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoRequests {
    /// Its number, from 1.
    pub request: usize,
    /// Tokens of the agent's.
    pub real_tokens: Option<u64>,
    /// Tokens of ours.
    pub our_tokens: Option<u64>,
}
