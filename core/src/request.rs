//! What goes to a model and what comes back, neutral of any wire.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::block::Block;
use crate::content::{Part, ToolCall};
use crate::context_editing::prompt_tokens;
use crate::model::{Counting, Model};
use crate::session::Millis;
use crate::tokens;

/// Why a request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The agent's own work.
    Sample,
    /// A summary for a compaction.
    Summary,
    /// Keeping the prompt cache warm.
    Ping,
    /// Another model writes the edits that the agent's own model has described.
    Edit,
}

/// When a compaction happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the user's message is recorded.
    PreTurn,
    /// Between two steps.
    MidTurn,
    /// After the last reply of a turn.
    PostTurn,
    /// On the user's command.
    StandaloneTurn,
    /// Beside the conversation.
    Background,
}

/// Tool definitions that a model is offered, counted and hashed once for all who share them.
#[derive(Debug)]
pub struct Tools {
    /// The definitions as one JSON array, byte for byte what is sent.
    pub json: Box<RawValue>,
    o200k: OnceLock<u64>,
    hash: OnceLock<u64>,
}

impl Tools {
    /// Tools from definitions; an empty list makes none.
    pub fn new(definitions: &[serde_json::Value]) -> Option<Arc<Self>> {
        if definitions.is_empty() {
            return None;
        }
        let json =
            serde_json::value::to_raw_value(definitions).expect("JSON values always serialise");
        Some(Tools::of(json))
    }

    /// Those of a JSON array.
    pub fn of(json: Box<RawValue>) -> Arc<Self> {
        Arc::new(Tools { json, o200k: OnceLock::new(), hash: OnceLock::new() })
    }

    /// o200k tokens of the array.
    pub fn o200k(&self) -> u64 {
        *self.o200k.get_or_init(|| tokens::o200k(self.json.get()))
    }

    /// Hash of the array.
    pub fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| tokens::content_hash(self.json.get().as_bytes()))
    }

    /// Billed tokens.
    pub fn tokens(&self, by: &Counting) -> u64 {
        by.text(self.o200k())
    }
}

/// How long a cache entry lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ttl {
    /// Five minutes.
    #[default]
    #[serde(rename = "5m")]
    FiveMinutes,
    /// One hour.
    #[serde(rename = "1h")]
    OneHour,
}

impl Ttl {
    /// Lifetime in ms.
    pub fn millis(self) -> Millis {
        match self {
            Ttl::FiveMinutes => 300_000,
            Ttl::OneHour => 3_600_000,
        }
    }
}

/// From when `clear_tool_uses_20250919` acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClearTrigger {
    /// From a prompt of this many input tokens.
    InputTokens(u64),
    /// From this many tool uses in the prompt.
    ToolUses(u64),
}

/// Whose call arguments `clear_tool_uses_20250919` clears beside the results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClearInputs {
    /// Nobody's.
    #[default]
    None,
    /// Those of every cleared call.
    All,
    /// Those of these tools.
    Of(Vec<String>),
}

impl ClearInputs {
    /// Whether the arguments of this tool go.
    pub fn takes(&self, tool: &str) -> bool {
        match self {
            ClearInputs::None => false,
            ClearInputs::All => true,
            ClearInputs::Of(names) => names.iter().any(|n| n == tool),
        }
    }
}

/// The conversation as the provider keeps it on its side (Anthropic's message threads,
/// docs/sources/anthropic-sdk.md §2.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Thread {
    /// A new one; the request holds the whole conversation.
    Create,
    /// The provider has the conversation up to one of its replies, with system prompt and tools.
    Continue {
        /// Id of that reply.
        after: Arc<str>,
        /// Number of the first blocks of the request that the provider has and that are not sent.
        held: usize,
    },
}

/// Context editing that the provider is asked to do (Anthropic, docs/sources/anthropic-sdk.md
/// §3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEdit {
    /// `clear_tool_uses_20250919`.
    ClearToolUses {
        /// From when it acts.
        trigger: ClearTrigger,
        /// Newest tool uses that stay.
        keep: usize,
        /// Tokens that must go for it to act at all.
        clear_at_least: u64,
        /// Tools whose results stay.
        exclude: Vec<String>,
        /// Whose call arguments go together with the results.
        inputs: ClearInputs,
    },
    /// `clear_thinking_20251015`: thinking of older turns goes.
    ClearThinking {
        /// Newest turns with thinking that keep it; `None` = all of them.
        keep: Option<usize>,
    },
    /// `compact_20260112`.
    Compact {
        /// Input tokens from which it acts.
        trigger: u64,
        /// Replaces the provider's own prompt.
        instructions: Option<Arc<str>>,
        /// Return after the summary instead of going on.
        pause: bool,
    },
    /// `cache_edits`: the results of these calls are left out of what the model sees, and the
    /// cached prefix stays valid (docs/sources/claude-code.md §1.2, grade C; its shape on the
    /// wire is not published).
    CacheEdits {
        /// Calls whose results go.
        results: Vec<Arc<str>>,
    },
}

/// One request to a model.
#[derive(Clone, Debug)]
pub struct Request {
    /// Why.
    pub purpose: Purpose,
    /// When, for summaries.
    pub phase: Option<Phase>,
    /// Who is asked.
    pub model: Arc<Model>,
    /// Largest reply in tokens.
    pub max_tokens: Option<u64>,
    /// Tools offered, if any.
    pub tools: Option<Arc<Tools>>,
    /// What it shows, in order.
    pub blocks: Vec<Arc<Block>>,
    /// Positions after which a prompt-cache breakpoint stands.
    pub breakpoints: Vec<usize>,
    /// Lifetime asked for at the breakpoints.
    pub ttl: Ttl,
    /// Edits asked of the provider.
    pub server_edits: Vec<ServerEdit>,
    /// Messages stay apart on the wire although their neighbour has the same role. The default is
    /// to merge them, as most clients do.
    pub keep_messages: bool,
    /// Further parameters that the caller sets, sent as they are (Anthropic's wire). Context edits
    /// among them stand in `server_edits` too, and are sent from here.
    pub params: serde_json::Map<String, serde_json::Value>,
    /// The provider keeps the conversation (Anthropic's wire). `blocks` hold all that the model
    /// sees either way.
    pub thread: Option<Thread>,
}

impl Request {
    /// What goes over the wire: everything, or in a continued thread what the provider does not
    /// have yet.
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

    /// Billed tokens of tools and blocks, before any edit that the provider is asked to do.
    pub fn tokens(&self) -> u64 {
        self.tools_tokens() + prompt_tokens(&self.model, &self.server_edits, &self.blocks)
    }

    /// Billed tokens of the tool definitions.
    pub fn tools_tokens(&self) -> u64 {
        self.tools.as_ref().map_or(0, |t| t.tokens(&self.model.counting))
    }
}

/// Tokens of one reply as the provider reports them. The four input kinds add up to the whole
/// prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input neither read from nor written to the prompt cache.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Reasoning within the output.
    pub reasoning: u64,
    /// Input read from the prompt cache.
    pub cache_read: u64,
    /// Input written to the prompt cache for five minutes.
    pub cache_write: u64,
    /// Input written to the prompt cache for one hour.
    pub cache_write_1h: u64,
    /// The provider's own total where it differs from the sum of the parts.
    pub reported_total: Option<u64>,
}

impl Usage {
    /// All input tokens: uncached, read and written.
    pub fn prompt(&self) -> u64 {
        [self.cache_read, self.cache_write, self.cache_write_1h]
            .into_iter()
            .fold(self.input, u64::saturating_add)
    }

    /// Prompt and output together, as the provider says or as the parts add up.
    pub fn total(&self) -> u64 {
        self.reported_total.unwrap_or(self.prompt().saturating_add(self.output))
    }

    /// Adds another usage.
    pub fn add(&mut self, o: &Usage) {
        self.input += o.input;
        self.output += o.output;
        self.reasoning += o.reasoning;
        self.cache_read += o.cache_read;
        self.cache_write += o.cache_write;
        self.cache_write_1h += o.cache_write_1h;
        self.reported_total = None;
    }
}

/// Why a reply ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model was done.
    #[default]
    EndTurn,
    /// It wants tools to run.
    ToolUse,
    /// The output limit was reached.
    MaxTokens,
    /// A stop sequence was written.
    StopSequence,
    /// The provider compacted and paused.
    Compaction,
    /// The provider paused a long turn.
    PauseTurn,
    /// The model refused.
    Refusal,
    /// The window was full while writing.
    WindowExceeded,
}

/// What a provider says it edited before the model saw the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Tool results cleared, oldest first.
    pub cleared_tool_uses: usize,
    /// Tokens that went with them.
    pub cleared_tokens: u64,
    /// Turns whose thinking was cleared, oldest first.
    pub cleared_thinking_turns: usize,
    /// Tokens of that thinking.
    pub thinking_tokens: u64,
}

/// A reply of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The provider's id of it. Read from the wire only where a later request may refer to it
    /// (Anthropic).
    pub id: Option<Arc<str>>,
    /// Contents in order.
    pub parts: Vec<Part>,
    /// Tokens of the answer itself; the size of the context comes from here.
    pub usage: Usage,
    /// Tokens of everything billed, provider-side compaction included.
    pub billed: Usage,
    /// Why it ended.
    pub stop: StopReason,
    /// Provider-side edits.
    pub applied: Applied,
    /// Virtual time until the reply was complete, ms.
    pub latency_ms: Millis,
    /// Tokens of the prompt, of the summarised one where the provider compacts, that a cache
    /// without lifetimes would have served besides those that were read; 0 where nobody knows.
    pub expired: u64,
}

impl Reply {
    /// The text parts joined by blank lines; `None` when there are none.
    pub fn text(&self) -> Option<String> {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// The calls in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(Part::as_call)
    }

    /// Whether it asks for tools.
    pub fn has_calls(&self) -> bool {
        self.calls().next().is_some()
    }

    /// The summary of a provider-side compaction in this reply.
    pub fn compaction(&self) -> Option<&Arc<str>> {
        self.parts.iter().find_map(|p| match p {
            Part::Compaction(Some(s)) => Some(s),
            _ => None,
        })
    }
}

/// What kind of failure a model error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The prompt is larger than the window.
    Overflow,
    /// Too many requests or tokens.
    RateLimited,
    /// The request is malformed.
    Invalid,
    /// The provider failed.
    Server,
    /// The stream broke off.
    Stream,
    /// There is nothing left to answer with: a scripted session is over.
    Ended,
}

/// A request that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the model answered {status}: {message}")]
pub struct ModelError {
    /// What kind.
    pub kind: ErrorKind,
    /// HTTP status.
    pub status: u16,
    /// The provider's code, if it gave one.
    pub code: Option<String>,
    /// The provider's words.
    pub message: String,
}

impl ModelError {
    /// The script has no further answer.
    pub fn ended() -> Self {
        ModelError {
            kind: ErrorKind::Ended,
            status: 0,
            code: None,
            message: "the session has no further reply".into(),
        }
    }

    /// Whether the same request may succeed a little later: too many requests or tokens, a failure
    /// of the provider or of the connection.
    pub fn is_passing(&self) -> bool {
        matches!(self.kind, ErrorKind::RateLimited | ErrorKind::Server | ErrorKind::Stream)
    }

    /// Whether the prompt was larger than the window.
    pub fn is_overflow(&self) -> bool {
        self.kind == ErrorKind::Overflow
    }
}
