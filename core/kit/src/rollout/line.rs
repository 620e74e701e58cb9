//! Lines of a rollout: `{timestamp, type, payload}` (docs/sources/codex.md §4).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::item::RolloutItem;

/// A line of a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutLine {
    /// Time in ISO 8601, UTC.
    pub timestamp: String,
    /// Zero-based line number, written since 0.169.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<u64>,
    #[serde(flatten)]
    pub payload: Payload,
}

/// Content of a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum Payload {
    /// Start of the session.
    SessionMeta(SessionMeta),
    /// A new item in the history.
    ResponseItem(RolloutItem),
    /// A compaction of the history.
    Compacted(Compacted),
    /// Model and settings of a turn.
    TurnContext(Value),
    /// An event shown to the user.
    EventMsg(RolloutEvent),
    /// State of files and environment after a compaction (0.169).
    WorldState(Value),
    /// Token usage of a response (0.169).
    TokenUsageRecord(Value),
}

/// Session metadata in the first line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// Session ID.
    pub id: String,
    /// Codex version.
    #[serde(default)]
    pub cli_version: String,
}

/// Result of a compaction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// The whole summary with its prefix; empty if the provider compacted.
    pub message: String,
    /// The new history. Absent in local compactions of 0.63 and 0.104, which rebuild it on resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement_history: Option<Vec<RolloutItem>>,
}

/// An event. Only events that a resume reads are parsed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RolloutEvent {
    /// Start of a turn.
    TaskStarted {
        #[serde(default, skip_serializing_if = "Value::is_null")]
        model_context_window: Value,
    },
    /// Token counters.
    TokenCount(TokenCount),
    /// Rollback of the newest turns.
    ThreadRolledBack {
        /// Number of user turns.
        num_turns: usize,
    },
    /// Any other event, unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// Token counters, if known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenCount {
    pub info: Option<TokenInfo>,
}

/// Token counters of a session and its newest response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// Total of the session.
    pub total_token_usage: Counters,
    /// Usage of the newest response, or the local estimate after a compaction.
    pub last_token_usage: Counters,
    /// Window that Codex reports: 95 % of the model's.
    #[serde(default)]
    pub model_context_window: Option<u64>,
}

/// Token usage in OpenAI's terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Input tokens, including cached ones.
    pub input_tokens: u64,
    /// Input tokens read from the prompt cache.
    pub cached_input_tokens: u64,
    /// Output tokens, including reasoning.
    pub output_tokens: u64,
    /// Reasoning tokens.
    pub reasoning_output_tokens: u64,
    /// Sum of input and output.
    pub total_tokens: u64,
}

impl TokenCount {
    /// Returns the counters after a compaction: the last usage is a local estimate with only a total
    /// (docs/sources/codex.md §1.5).
    pub fn estimate(before: &TokenInfo, tokens: u64) -> TokenCount {
        let last_token_usage = Counters { total_tokens: tokens, ..Counters::default() };
        TokenCount { info: Some(TokenInfo { last_token_usage, ..before.clone() }) }
    }
}
