//! Messages of the protocol, version 1: docs/exec.md.

use std::fmt;

use ctxbench_core::prelude::*;
use ctxbench_core::usage::Ttl;
use ctxbench_util::cut::cut;
use ctxbench_util::serde_error;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(super) const VERSION: u64 = 1;

/// A line from the program: an answer or a call.
#[derive(Deserialize)]
pub(super) struct ProgramLine {
    pub(super) jsonrpc: String,
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
    pub(super) params: Option<Box<RawValue>>,
    pub(super) result: Option<Box<RawValue>>,
    pub(super) error: Option<RpcError>,
}

/// A call of the program.
#[derive(Serialize)]
pub(super) struct RpcCall<P> {
    pub(super) jsonrpc: &'static str,
    pub(super) id: u64,
    pub(super) method: &'static str,
    pub(super) params: P,
}

#[derive(Debug, Deserialize, Serialize)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Value>,
}

impl RpcError {
    pub(super) fn params(message: impl Into<String>) -> RpcError {
        RpcError { code: -32602, message: message.into(), data: None }
    }

    pub(super) fn model(e: &ModelError) -> RpcError {
        let data = json!({"class": class(e.kind), "status": e.status});
        RpcError { code: -32000, message: e.message.clone(), data: Some(data) }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Introduction {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) dialect: String,
    #[serde(default)]
    pub(super) moments: Vec<Moment>,
    /// Whether the results of parallel calls arrive as one message, which `anthropic` can express.
    #[serde(default)]
    pub(super) join_results: bool,
}

/// Events that a program can subscribe to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Moment {
    Admit,
    Reply,
    TurnEnd,
    AfterTurn,
    Error,
    Rewind,
    Idle,
    Manual,
}

/// Why a program is asked for the context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reason {
    Turn,
    #[default]
    Step,
    Overflow,
    Manual,
    Idle,
    AfterTurn,
    Resume,
}

/// A message that the program knows, and the blocks that it represents.
#[derive(Clone, Serialize)]
pub(super) struct Message {
    pub(super) id: Arc<str>,
    #[serde(rename = "message")]
    pub(super) json: Arc<RawValue>,
    /// In the order of the context; some may be hidden.
    #[serde(skip)]
    pub(super) blocks: Vec<Arc<Block>>,
}

#[derive(Default, Serialize)]
pub(super) struct ContextParams<'a> {
    pub(super) reason: Reason,
    pub(super) now: u64,
    pub(super) added: Vec<Message>,
    pub(super) new_ids: Vec<Arc<str>>,
    pub(super) usage: Option<Value>,
    pub(super) request_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idle_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u32>,
}

/// Returns the usage of a request in the form of the protocol.
pub(super) fn usage(u: &Usage) -> Value {
    json!({
        "input_tokens": u.prompt(),
        "cache_read_tokens": u.cache_read,
        "cache_write_tokens": u.cache_write + u.cache_write_1h,
        "output_tokens": u.output,
        "reasoning_tokens": u.reasoning,
    })
}

pub(super) fn class(kind: ErrorKind) -> Value {
    json!(if kind == ErrorKind::SessionEnd { ErrorKind::Server } else { kind })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErrorAnswer {
    #[serde(default)]
    pub(super) again: bool,
    pub(super) fail: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdmitAnswer {
    pub(super) message: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContextAnswer {
    #[serde(default)]
    pub(super) unchanged: bool,
    pub(super) keep: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    pub(super) scope: Scope,
    pub(super) compaction: Option<CompactionNote>,
    pub(super) trigger: Option<TriggerNote>,
    pub(super) breakpoints: Option<Vec<Breakpoint>>,
    #[serde(default)]
    pub(super) params: RequestParams,
    pub(super) fail: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Scope {
    #[default]
    State,
    Request,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompactionNote {
    pub(super) kind: Option<CompactionKind>,
    pub(super) mechanism: Option<String>,
    pub(super) ids: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TriggerNote {
    pub(super) check: String,
    pub(super) believed: u64,
    pub(super) limit: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Breakpoint {
    pub(super) id: String,
    pub(super) ttl: Option<Ttl>,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestParams {
    pub(super) max_tokens: Option<u64>,
    pub(super) effort: Option<Value>,
}

/// An entry of a list of messages: an id, an altered message with its id, or new text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageEntry {
    pub(super) id: Option<String>,
    pub(super) message: Option<Box<RawValue>>,
}

impl MessageEntry {
    /// An untagged enum could not keep the raw text of the message.
    pub(super) fn read(raw: &RawValue) -> Result<MessageEntry, String> {
        if let Ok(id) = serde_json::from_str(raw.get()) {
            return Ok(MessageEntry { id: Some(id), message: None });
        }
        match serde_json::from_str(raw.get()) {
            Ok(entry @ MessageEntry { message: Some(_), .. }) => Ok(entry),
            Err(e) if raw.get().starts_with('{') => Err(serde_error::in_json(raw.get(), &e)),
            _ => {
                let expected = "an id, {\"id\", \"message\"} or {\"message\"}";
                Err(format!("expected {expected}, not {}", clipped(raw.get())))
            }
        }
    }
}

/// Cuts a text for an error message.
pub(super) fn clipped(text: &str) -> String {
    cut(text, 120)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Complete {
    pub(super) messages: Vec<Box<RawValue>>,
    pub(super) system: Option<Value>,
    pub(super) tools: Option<ToolChoice>,
    pub(super) max_tokens: Option<u64>,
    #[serde(default)]
    pub(super) model: ModelChoice,
    #[serde(default)]
    pub(super) background: bool,
}

/// The tools that `complete` offers.
pub(super) enum ToolChoice {
    /// Those of the session, or none.
    Session(bool),
    /// Those of the program. The model calls the first.
    Own(Vec<OwnTool>),
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<ToolChoice, D::Error> {
        struct Choice;
        impl<'de> Visitor<'de> for Choice {
            type Value = ToolChoice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "true, false or a list of {\"name\", \"description\", \"input_schema\"}",
                )
            }
            fn visit_bool<E>(self, session: bool) -> Result<ToolChoice, E> {
                Ok(ToolChoice::Session(session))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ToolChoice, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(ToolChoice::Own)
            }
        }
        d.deserialize_any(Choice)
    }
}

/// A tool that only a `complete` offers.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnTool {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    pub(super) input_schema: Value,
}

impl OwnTool {
    /// Returns the first required field that is a text or a list, and whether it is a list.
    fn field(&self) -> Option<(&str, bool)> {
        let required = self.input_schema["required"].as_array()?;
        required.iter().filter_map(Value::as_str).find_map(|name| {
            let kind = &self.input_schema["properties"][name]["type"];
            (kind == "string" || kind == "array").then(|| (name, kind == "array"))
        })
    }

    /// Returns the arguments of a call that says a text. A list has its lines.
    pub(super) fn arguments(&self, text: &str) -> Result<Value, RpcError> {
        let (name, is_list) = self.field().ok_or_else(|| {
            RpcError::params(format!(
                "the tool `{}` needs a required field of type `string` or `array`, which gets the \
                 text of the model",
                self.name
            ))
        })?;
        let lines = || text.lines().filter(|l| !l.trim().is_empty()).collect::<Vec<_>>();
        Ok(json!({name: if is_list { json!(lines()) } else { json!(text) }}))
    }
}

/// The model that `complete` asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModelChoice {
    #[default]
    Main,
    Summary,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Collect {
    pub(super) task: u64,
    #[serde(default)]
    pub(super) wait: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountTokens {
    pub(super) messages: Option<Vec<Box<RawValue>>>,
}

#[derive(Deserialize)]
pub(super) struct LogMessage {
    pub(super) message: String,
}
