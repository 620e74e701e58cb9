//! The format of a wire as data: requests, replies, streams, and the rules of its servers. The wires of
//! a provider share an [`ApiFormat`].

use std::fmt;

use ctxbench_core::model::Model;
use ctxbench_core::prelude::*;
use serde_json::{Map, Value};
use thiserror::Error;

use super::slot::{Slot, carried_media};
use super::stream::StreamEvent;
use crate::prompt::Prompt;

pub type Wire = &'static WireFormat;
pub type HasHeader<'a> = &'a dyn Fn(&str) -> bool;
/// A reference to a provider's API.
pub type Api = &'static ApiFormat;
/// Names and values of headers.
pub type Headers = Vec<(&'static str, String)>;
/// Encodes the response of the compaction endpoint from the prompt and the reply.
pub(super) type EncodeCompacted = fn(&Prompt, &Reply, &Model) -> Vec<u8>;

#[derive(Clone, Debug)]
pub struct Encoded {
    pub body: Vec<u8>,
    pub path: String,
    /// Required headers in addition to the key: version and beta names.
    pub headers: Headers,
    /// Wire message of every block: 0 is outside the messages, then 1, 2, … in order.
    pub messages: Vec<usize>,
    /// The block of every item of the decoded prompt.
    pub shows: Vec<Arc<Block>>,
}

/// A body that is not a request or reply of the wire.
#[derive(Debug, Error)]
pub enum WireError {
    #[error("the body does not match the wire format: {0}")]
    Json(#[from] serde_json::Error),
    #[error("a {in_what} lacks `{field}`")]
    Missing { field: &'static str, in_what: &'static str },
    /// A valid value that is not simulated.
    #[error("{what} `{value}` is not modelled here")]
    Unsupported { what: &'static str, value: String },
}

impl WireError {
    pub(crate) fn unsupported(what: &'static str, value: &str) -> Self {
        WireError::Unsupported { what, value: value.into() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Reply,
    /// Counts the tokens of a request.
    Count,
    /// Compacts a conversation on demand.
    Compact,
}

/// The required position of tool results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsDue {
    /// In the message directly after the calls.
    NextMessage,
    /// Before the next user message.
    BeforeUser,
    /// Anywhere after the calls.
    Anywhere,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplyOptions {
    /// Whether to send the reply as a stream of events.
    pub stream: bool,
    /// Whether the reply may begin with thinking.
    pub thinking: bool,
    /// Whether a stream of Chat Completions ends with the usage.
    pub usage: bool,
}

/// The API of a provider, shared by its wires: errors, models, and detection of clients.
pub struct ApiFormat {
    pub name: &'static str,
    /// Address of the provider.
    pub address: &'static str,
    /// Environment variables with which SDKs and common clients set another address, each with the path
    /// that the address must end with.
    pub base_urls: &'static [(&'static str, &'static str)],
    /// Response header with the request id.
    pub request_id_header: &'static str,
    /// Paths of the list of models; a single model follows after a slash.
    pub(super) models_paths: &'static [&'static str],
    /// Returns whether path and headers are those of a client of this API.
    pub(super) matches_client: fn(&str, HasHeader<'_>) -> bool,

    /// Default error code of a kind of error.
    pub(super) error_code: fn(ErrorKind) -> &'static str,
    /// Error codes of refusals by the server instead of the model, by status.
    pub(super) status_codes: &'static [(u16, &'static str)],
    /// Builds the body of an error response from status, code and message.
    pub error_body: fn(u16, &str, &str) -> Value,
    /// Adds the seconds to wait to the body of an error, if the header `retry-after` is not enough.
    pub(super) add_retry_delay: fn(&mut Value, u64),
    /// Returns status and message for a body of more bytes than a limit.
    pub too_large: fn(usize) -> (u16, String),
    /// Returns the code in the `error` of an error response.
    pub(super) code_of: fn(&Value) -> Option<&str>,
    /// Returns code and message for an unknown model.
    pub unknown_model: fn(&str) -> (&'static str, String),
    /// Returns the message for a call without its result (`true`) or a result without its call, by id.
    pub unpaired_message: fn(bool, &str) -> String,

    /// Builds the entry of a model; the second argument overrides its window in tokens.
    pub model: fn(&Model, Option<u64>) -> Value,
    pub model_list: fn(Vec<Value>) -> Value,
}

/// Creates the error for a prompt that is larger than the window.
pub(super) fn overflow(code: &str, message: String) -> ModelError {
    ModelError { kind: ErrorKind::Overflow, status: 400, code: Some(code.into()), message }
}

pub(super) fn too_large(limit: usize) -> (u16, String) {
    (413, format!("the request body is larger than {limit} bytes"))
}

pub struct WireFormat {
    /// Name in models.
    pub name: &'static str,
    /// API of the provider.
    pub api: Api,
    /// Returns the path of requests to a model.
    pub path: fn(&str) -> String,
    pub endpoint: fn(&str) -> Option<Endpoint>,

    /// Assigns role, message and breakpoint to the blocks of a request.
    pub(super) assign: fn(&mut [Slot], &Request),
    pub(super) body: fn(&Request, &[Slot]) -> Vec<u8>,
    /// Decodes the body of a request to a path.
    pub(super) decode: fn(&str, &[u8]) -> Result<Prompt, WireError>,
    /// Decodes the reply options of a valid request, or returns why this server cannot answer.
    pub reply_options: fn(&str, &[u8]) -> Result<ReplyOptions, String>,
    /// Builds a tool definition of the wire from name, description and schema; `None` to use that of
    /// the session unchanged.
    pub(super) tool: fn(&Value, Value, &Value) -> Option<Value>,

    pub encode_reply: fn(&Reply, &Model) -> Vec<u8>,
    /// Decodes a reply with a latency of 0.
    pub decode_reply: fn(&[u8]) -> Result<Reply, WireError>,
    /// Splits an encoded reply into events; `true` requests the optional usage.
    pub events: fn(&[u8], bool) -> serde_json::Result<Vec<StreamEvent>>,
    /// Assembles the reply from the data of stream events; `None` if the stream was interrupted or
    /// failed.
    pub assemble: fn(&[String]) -> Option<Vec<u8>>,
    /// Start of generated reply ids, before a number.
    pub reply_id: &'static str,
    /// Returns the provider's error for the tokens of a prompt and of the window.
    pub overflow: fn(u64, u64) -> ModelError,

    pub rules: Rules,
    pub(super) count: Option<CountFormat>,
}

/// Rules in which wires differ.
pub struct Rules {
    /// Returns the required headers in addition to the key.
    pub(super) headers: fn(&Request, &[Slot]) -> Headers,
    /// Returns the name in a tool definition of the wire.
    pub tool_name: fn(&Value) -> Option<&str>,
    /// Returns the maximum size of the reply, as sent.
    pub(super) max_tokens: fn(&Request) -> Option<u64>,
    /// Decodes the context edits among raw parameters; none if they are invalid.
    pub edits_among: fn(&Map<String, Value>) -> Vec<ServerEdit>,
    /// Returns the part of an edit that the wire can request.
    pub(super) carried_edit: fn(&ServerEdit) -> Option<ServerEdit>,
    /// Whether a request can continue a stored conversation.
    pub(super) carries_threads: bool,
    /// Returns whether a provider's compaction has a wire type; else it becomes text.
    pub(super) shows_compaction: fn(&Block) -> bool,
    /// Returns whether a compaction trigger, possibly the last block, has a wire type; else it becomes
    /// text.
    pub(super) shows_trigger: fn(&Block, bool) -> bool,
    /// Whether summaries of compactions are readable on the wire.
    pub(super) shows_summaries: bool,
    /// Whether tool results can be errors.
    pub(super) has_tool_errors: bool,
    /// Returns the part of a file reference that the wire carries.
    pub(super) carried_media: fn(&Media) -> Media,
    /// Returns why the provider refuses a conversation with complete calls and results.
    pub refuses: fn(&Prompt) -> Option<String>,
    /// Encodes the response of the compaction endpoint, if that is not a reply.
    pub(super) encode_compacted: Option<EncodeCompacted>,
    /// The required position of tool results.
    pub results_due: ResultsDue,
    /// Whether a conversation must begin with the user.
    pub begins_with_user: bool,
    /// The body's field for the conversation.
    pub conversation_field: &'static str,
    /// Whether a request must limit its reply.
    pub requires_max_tokens: bool,
    /// Whether replies contain thinking by default.
    pub always_thinks: bool,
}

impl Rules {
    pub(super) const DEFAULT: Rules = Rules {
        headers: |_, _| Vec::new(),
        tool_name: |tool| tool["name"].as_str(),
        max_tokens: |request| request.max_tokens,
        edits_among: |_| Vec::new(),
        carried_edit: |_| None,
        carries_threads: false,
        shows_compaction: |_| false,
        shows_trigger: |_, _| false,
        shows_summaries: false,
        has_tool_errors: false,
        carried_media,
        refuses: |_| None,
        encode_compacted: None,
        results_due: ResultsDue::Anywhere,
        begins_with_user: false,
        conversation_field: "messages",
        requires_max_tokens: false,
        always_thinks: false,
    };
}

pub(super) struct CountFormat {
    /// Returns the path of requests about a model.
    pub(super) path: fn(&str) -> String,
    pub(super) body: fn(&Request, &[Slot]) -> Vec<u8>,
    /// Builds the reply from a count and the number of tokens before the provider's edits, if any.
    pub(super) reply: fn(u64, Option<u64>) -> Value,
    /// Field of the reply with the count.
    pub(super) field: &'static str,
}

impl ApiFormat {
    /// Returns the model in a path, empty for the list of all; `None` for other paths.
    pub fn model_in<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = self.models_paths.iter().find_map(|models| path.strip_prefix(models))?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }

    /// Returns the error code of a refusal by the server instead of the model.
    pub fn status_code(&self, status: u16) -> Option<&'static str> {
        self.status_codes.iter().find(|(s, _)| *s == status).map(|(_, code)| *code)
    }
}

impl PartialEq for WireFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for ApiFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for ApiFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
