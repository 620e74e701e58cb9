//! Lines of a rollout: `{timestamp, type, payload}` (docs/sources/codex.md §4).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::item::Item;
use ctxbench_core::request::Usage;

type Rest = Map<String, Value>;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RolloutLine {
    /// ISO 8601, UTC.
    pub timestamp: String,
    /// Place in the file, from 0; 0.169 writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinal: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub payload: Payload,
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum Payload {
    /// The session begins.
    SessionMeta(SessionMeta),
    /// Something entered the history.
    ResponseItem(Item),
    /// The history was compacted.
    Compacted(Compacted),
    /// Model and settings of a turn.
    TurnContext(Rest),
    /// Something was shown to the user.
    EventMsg(Event),
    /// The state of files and environment after a compaction (0.169).
    WorldState(Value),
    /// Tokens of one response (0.169).
    TokenUsageRecord(Value),
}

/// The first line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// The session.
    pub id: String,
    /// Version of the program.
    #[serde(default)]
    pub cli_version: String,
    /// `{"text"}`: the base instructions that token estimates use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_instructions: Option<Value>,
    /// Further members.
    #[serde(flatten)]
    pub rest: Rest,
}

/// What a compaction put in the place of the history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compacted {
    /// The whole summary with its prefix; empty where the provider compacted.
    pub message: String,
    /// The new history; absent in local compactions of 0.63 and 0.104, which rebuild it when they
    /// resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement_history: Option<Vec<Item>>,
    /// Number and id of the window in 0.169, and further members.
    #[serde(flatten)]
    pub rest: Rest,
}

/// An event; only those that a resume reads have a shape here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// A turn begins.
    TaskStarted {
        /// Further members.
        #[serde(flatten)]
        rest: Rest,
    },
    /// Tokens so far.
    TokenCount(TokenCount),
    /// The newest turns were taken back.
    ThreadRolledBack {
        /// How many turns of the user.
        num_turns: usize,
        /// Further members.
        #[serde(flatten)]
        rest: Rest,
    },
    /// Any other event, as it stands.
    #[serde(untagged)]
    Other(Value),
}

/// Tokens so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenCount {
    /// Counters, if any are known.
    pub info: Option<TokenInfo>,
    /// Further members, rate limits among them.
    #[serde(flatten)]
    pub rest: Rest,
}

/// Counters of the session and of its newest response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// Of the whole session.
    pub total_token_usage: Counters,
    /// Of the newest response, or the local estimate after a compaction.
    pub last_token_usage: Counters,
    /// Window that the program reports: 95 % of the model's.
    #[serde(default)]
    pub model_context_window: Option<u64>,
}

/// Tokens as OpenAI counts them: cached ones are part of the input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Input, cached tokens included.
    pub input_tokens: u64,
    /// Input from the prompt cache.
    pub cached_input_tokens: u64,
    /// Output, reasoning included.
    pub output_tokens: u64,
    /// Reasoning within the output.
    pub reasoning_output_tokens: u64,
    /// Input and output.
    pub total_tokens: u64,
}

impl From<&Usage> for Counters {
    fn from(u: &Usage) -> Self {
        Counters {
            input_tokens: u.prompt(),
            cached_input_tokens: u.cache_read,
            output_tokens: u.output,
            reasoning_output_tokens: u.reasoning,
            total_tokens: u.total(),
        }
    }
}

impl TokenCount {
    /// After a response: it is added to the session, and is the newest.
    pub fn response(before: &TokenInfo, usage: &Usage) -> TokenCount {
        let (old, new) = (before.total_token_usage, Counters::from(usage));
        let total_token_usage = Counters {
            input_tokens: old.input_tokens + new.input_tokens,
            cached_input_tokens: old.cached_input_tokens + new.cached_input_tokens,
            output_tokens: old.output_tokens + new.output_tokens,
            reasoning_output_tokens: old.reasoning_output_tokens + new.reasoning_output_tokens,
            total_tokens: old.total_tokens + new.total_tokens,
        };
        TokenCount {
            info: Some(TokenInfo { total_token_usage, last_token_usage: new, ..before.clone() }),
            rest: Rest::new(),
        }
    }

    /// After a compaction: the newest counters are a local estimate with nothing but a total
    /// (docs/sources/codex.md §1.5).
    pub fn estimate(before: &TokenInfo, tokens: u64) -> TokenCount {
        let last_token_usage = Counters { total_tokens: tokens, ..Counters::default() };
        TokenCount {
            info: Some(TokenInfo { last_token_usage, ..before.clone() }),
            rest: Rest::new(),
        }
    }
}
