//! Requests and replies, independent of the wire format.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::block::Block;
use crate::content::{Part, ToolCall};
use crate::model::{Counting, Model};
use crate::time::Millis;
use crate::tokens;
use crate::usage::{Ttl, Usage};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's main work.
    #[default]
    Sample,
    Summary,
    /// Keeping the prompt cache warm.
    Ping,
    /// Another model writes the edits that the agent's model described.
    Edit,
}

/// The time of a compaction relative to the turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the user's message is recorded.
    PreTurn,
    /// Between two steps.
    #[default]
    MidTurn,
    /// After the last reply of a turn.
    PostTurn,
    /// Outside a turn, at the user's request.
    StandaloneTurn,
    /// Concurrently with the conversation.
    Background,
}

/// Tool definitions, counted and hashed once.
#[derive(Debug)]
pub struct Tools {
    /// The definitions as one JSON array, exactly as sent.
    pub json: Box<RawValue>,
    o200k: OnceLock<u64>,
    hash: OnceLock<u64>,
}

impl PartialEq for Tools {
    fn eq(&self, o: &Self) -> bool {
        self.json.get() == o.json.get()
    }
}

impl Tools {
    /// Creates tools from definitions; `None` if there are none.
    pub fn new(definitions: &[serde_json::Value]) -> Option<Arc<Self>> {
        if definitions.is_empty() {
            return None;
        }
        let json =
            serde_json::value::to_raw_value(definitions).expect("JSON values always serialise");
        Some(Tools::from_json(json))
    }

    pub fn from_json(json: Box<RawValue>) -> Arc<Self> {
        Arc::new(Tools { json, o200k: OnceLock::new(), hash: OnceLock::new() })
    }

    /// Returns the o200k tokens of the array.
    pub fn o200k(&self) -> u64 {
        *self.o200k.get_or_init(|| tokens::o200k(self.json.get()))
    }

    pub fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| tokens::content_hash(self.json.get().as_bytes()))
    }

    /// Returns the billed tokens.
    pub fn tokens(&self, by: &Counting) -> u64 {
        by.text(self.o200k())
    }
}

/// Threshold of `clear_tool_uses_20250919`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "value", rename_all = "snake_case")]
pub enum ClearTrigger {
    InputTokens(u64),
    ToolUses(u64),
}

/// Calls for which `clear_tool_uses_20250919` also clears the arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClearInputs {
    #[default]
    None,
    /// Every cleared call.
    All,
    /// Calls of these tools.
    Of(Vec<String>),
}

impl ClearInputs {
    /// Returns whether the arguments of a tool are cleared.
    pub fn includes(&self, tool: &str) -> bool {
        match self {
            ClearInputs::None => false,
            ClearInputs::All => true,
            ClearInputs::Of(names) => names.iter().any(|n| n == tool),
        }
    }
}

/// A conversation that the provider stores (Anthropic's message threads,
/// docs/sources/anthropic-sdk.md §2.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Thread {
    /// A new thread; the request contains the whole conversation.
    Create,
    /// The provider has the conversation up to one of its replies, including system prompt and tools.
    Continue {
        /// Id of the reply.
        #[serde(rename = "previous_message_id")]
        after: Arc<str>,
        /// Number of leading blocks that the provider already has; they are not sent.
        #[serde(skip)]
        held: usize,
    },
}

/// A context edit requested from the provider, as Anthropic's wire writes it, with its documented
/// defaults (docs/sources/anthropic-sdk.md §3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ServerEdit {
    #[serde(rename = "clear_tool_uses_20250919")]
    ClearToolUses {
        #[serde(default = "edit_json::clear_trigger")]
        trigger: ClearTrigger,
        /// Number of newest tool uses to keep.
        #[serde(default = "edit_json::three", deserialize_with = "edit_json::number")]
        #[serde(serialize_with = "edit_json::uses")]
        keep: usize,
        /// Minimum number of tokens to clear, else nothing is cleared.
        #[serde(default, deserialize_with = "edit_json::number")]
        #[serde(
            skip_serializing_if = "edit_json::is_default",
            serialize_with = "edit_json::tokens"
        )]
        clear_at_least: u64,
        /// Tools with results to keep.
        #[serde(default, rename = "exclude_tools", skip_serializing_if = "Vec::is_empty")]
        exclude: Vec<String>,
        #[serde(default, rename = "clear_tool_inputs", deserialize_with = "edit_json::cleared")]
        #[serde(
            skip_serializing_if = "edit_json::is_default",
            serialize_with = "edit_json::inputs"
        )]
        inputs: ClearInputs,
    },
    /// Clears thinking of older turns.
    #[serde(rename = "clear_thinking_20251015")]
    ClearThinking {
        /// Number of newest turns with thinking to keep; `None` means all.
        #[serde(default, deserialize_with = "edit_json::optional")]
        #[serde(serialize_with = "edit_json::turns")]
        keep: Option<usize>,
    },
    #[serde(rename = "compact_20260112")]
    Compact {
        /// Threshold in input tokens.
        #[serde(default = "edit_json::compact_trigger", deserialize_with = "edit_json::number")]
        #[serde(serialize_with = "edit_json::tokens")]
        trigger: u64,
        /// Stop after the summary instead of continuing.
        #[serde(default, rename = "pause_after_compaction")]
        pause: bool,
        /// Replaces the provider's own prompt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instructions: Option<Arc<str>>,
    },
    /// Hides the results of these calls from the model while the cached prefix remains valid
    /// (docs/sources/claude-code.md §1.2, grade C; the wire format is not published).
    #[serde(rename = "cache_edits")]
    CacheEdits {
        #[serde(default, rename = "delete")]
        results: Vec<Arc<str>>,
    },
}

impl ServerEdit {
    /// Creates an edit that clears the results of all tools but no arguments.
    pub fn clear(trigger: ClearTrigger, keep: usize, clear_at_least: u64) -> Self {
        let (exclude, inputs) = (Vec::new(), ClearInputs::None);
        ServerEdit::ClearToolUses { trigger, keep, clear_at_least, exclude, inputs }
    }

    /// Creates an edit that compacts with the provider's own prompt and continues.
    pub fn compact(trigger: u64) -> Self {
        ServerEdit::Compact { trigger, instructions: None, pause: false }
    }
}

/// JSON of context edits; an amount is `{"type": …, "value": …}`.
mod edit_json {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::{Value, json};

    use super::ClearInputs;

    fn amount<S: Serializer>(kind: &str, value: u64, s: S) -> Result<S::Ok, S::Error> {
        json!({"type": kind, "value": value}).serialize(s)
    }

    pub(super) fn tokens<S: Serializer>(n: &u64, s: S) -> Result<S::Ok, S::Error> {
        amount("input_tokens", *n, s)
    }

    pub(super) fn uses<S: Serializer>(n: &usize, s: S) -> Result<S::Ok, S::Error> {
        amount("tool_uses", *n as u64, s)
    }

    pub(super) fn turns<S: Serializer>(n: &Option<usize>, s: S) -> Result<S::Ok, S::Error> {
        match n {
            Some(n) => amount("thinking_turns", *n as u64, s),
            None => "all".serialize(s),
        }
    }

    pub(super) fn number<'de, D: Deserializer<'de>, N: TryFrom<u64>>(d: D) -> Result<N, D::Error> {
        let n = Value::deserialize(d)?["value"].as_u64().and_then(|n| n.try_into().ok());
        n.ok_or_else(|| D::Error::custom("an amount without a `value`"))
    }

    pub(super) fn optional<'de, D: Deserializer<'de>>(d: D) -> Result<Option<usize>, D::Error> {
        Ok(Value::deserialize(d)?["value"].as_u64().map(|n| n as usize))
    }

    pub(super) fn inputs<S: Serializer>(inputs: &ClearInputs, s: S) -> Result<S::Ok, S::Error> {
        match inputs {
            ClearInputs::Of(tools) => tools.serialize(s),
            all => (*all == ClearInputs::All).serialize(s),
        }
    }

    pub(super) fn cleared<'de, D: Deserializer<'de>>(d: D) -> Result<ClearInputs, D::Error> {
        match Value::deserialize(d)? {
            Value::Bool(true) => Ok(ClearInputs::All),
            Value::Bool(false) | Value::Null => Ok(ClearInputs::None),
            tools => serde_json::from_value(tools).map(ClearInputs::Of).map_err(D::Error::custom),
        }
    }

    pub(super) fn clear_trigger() -> super::ClearTrigger {
        super::ClearTrigger::InputTokens(100_000)
    }

    pub(super) fn compact_trigger() -> u64 {
        150_000
    }

    pub(super) fn three() -> usize {
        3
    }

    pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
        *value == T::default()
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    pub purpose: Purpose,
    /// Set for summaries.
    pub phase: Option<Phase>,
    pub model: Arc<Model>,
    /// Maximum size of the reply, tokens.
    pub max_tokens: Option<u64>,
    pub tools: Option<Arc<Tools>>,
    pub blocks: Vec<Arc<Block>>,
    /// Block positions that end at a prompt-cache breakpoint.
    pub breakpoints: Vec<usize>,
    /// Cache lifetime for the breakpoints.
    pub ttl: Ttl,
    pub server_edits: Vec<ServerEdit>,
    /// Whether adjacent messages of the same role remain separate on the wire. Most clients merge
    /// them.
    pub keep_messages: bool,
    /// Additional parameters, sent unchanged (Anthropic's wire). Context edits among them are also in
    /// `server_edits`, but sent from here.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// Set if the provider stores the conversation (Anthropic's wire). `blocks` contain the whole prompt
    /// in any case.
    pub thread: Option<Thread>,
}

impl Request {
    /// Creates a normal request of these blocks only, without breakpoints.
    pub fn new(model: Arc<Model>, blocks: Vec<Arc<Block>>) -> Request {
        Request {
            purpose: Purpose::Sample,
            phase: None,
            model,
            max_tokens: None,
            tools: None,
            blocks,
            breakpoints: Vec::new(),
            ttl: Ttl::default(),
            server_edits: Vec::new(),
            keep_messages: false,
            params: serde_json::Map::new(),
            thread: None,
        }
    }

    /// Returns the request as sent: in a continued thread, without the blocks that the provider has.
    pub fn sent(&self) -> Cow<'_, Request> {
        let Some(Thread::Continue { after, held }) = &self.thread else {
            return Cow::Borrowed(self);
        };
        let held = (*held).min(self.blocks.len());
        Cow::Owned(Request {
            tools: None,
            blocks: self.blocks[held..].to_vec(),
            breakpoints: self.breakpoints.iter().filter_map(|b| b.checked_sub(held)).collect(),
            thread: Some(Thread::Continue { after: after.clone(), held: 0 }),
            ..self.clone()
        })
    }

    /// Returns the billed tokens of the tool definitions.
    pub fn tools_tokens(&self) -> u64 {
        self.tools.as_ref().map_or(0, |t| t.tokens(&self.model.counting))
    }
}

/// The reason why a reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    #[default]
    EndTurn,
    /// The model calls tools.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    StopSequence,
    /// The provider compacted and paused.
    Compaction,
    /// The provider paused a long turn.
    PauseTurn,
    /// The model refused.
    Refusal,
    /// The reply filled the window.
    WindowExceeded,
}

/// The provider's report on its context edits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Tool results cleared, oldest first.
    pub cleared_tool_uses: usize,
    /// Tokens of the cleared results.
    pub cleared_tokens: u64,
    /// Number of turns from which thinking was cleared, oldest first.
    pub cleared_thinking_turns: usize,
    /// Tokens of the cleared thinking.
    pub thinking_tokens: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The provider's id, if a later request may refer to it (Anthropic).
    pub id: Option<Arc<str>>,
    pub parts: Vec<Part>,
    /// Tokens of the reply itself. Use these for the size of the context.
    pub usage: Usage,
    /// All billed tokens, including a compaction by the provider.
    pub billed: Usage,
    pub stop: StopReason,
    pub applied: Applied,
    /// Virtual time until the reply was complete, in ms.
    pub latency_ms: Millis,
    /// Additional tokens of the prompt that a cache without expiry would have served; 0 if unknown. If
    /// the provider compacted, tokens of the summarised prompt.
    pub expired: u64,
}

impl Reply {
    /// Joins the text parts with blank lines; `None` if there are none.
    pub fn text(&self) -> Option<String> {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(Part::as_call)
    }

    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// Returns the summary of a compaction by the provider.
    pub fn compaction(&self) -> Option<&Arc<str>> {
        self.parts.iter().find_map(|p| match p {
            Part::Compaction(Some(s)) => Some(s),
            _ => None,
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The prompt is larger than the window.
    Overflow,
    /// Too many requests or tokens.
    RateLimited,
    Invalid,
    /// The provider failed.
    Server,
    Stream,
    /// A scripted session has no further reply.
    SessionEnd,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model answered {status}: {message}")]
pub struct ModelError {
    pub kind: ErrorKind,
    /// HTTP status code.
    pub status: u16,
    /// The provider's error code.
    pub code: Option<String>,
    /// The provider's error message.
    pub message: String,
}

impl ModelError {
    /// Creates the error for a request that the provider refuses with status 400 and without a code.
    pub fn invalid(message: impl Into<String>) -> Self {
        let message = message.into();
        ModelError { kind: ErrorKind::Invalid, status: 400, code: None, message }
    }

    /// Creates the error for a script without further replies.
    pub fn ended() -> Self {
        ModelError {
            kind: ErrorKind::SessionEnd,
            status: 0,
            code: None,
            message: "the session has no further reply".into(),
        }
    }

    /// Returns whether a retry may succeed: rate limits, and failures of the provider or the
    /// connection.
    pub fn is_passing(&self) -> bool {
        matches!(self.kind, ErrorKind::RateLimited | ErrorKind::Server | ErrorKind::Stream)
    }

    /// Returns whether the prompt exceeded the window.
    pub fn is_overflow(&self) -> bool {
        self.kind == ErrorKind::Overflow
    }
}
