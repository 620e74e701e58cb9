//! Wire formats, one folder each. A wire implements [`WireFormat`]; the wires of a provider share an
//! [`ApiFormat`].

mod anthropic;
pub(crate) mod errors;
mod gemini;
mod incremental;
pub(crate) mod json;
mod openai;
mod openai_chat;
mod openai_responses;
pub(crate) mod plan;
#[cfg(test)]
pub(crate) mod properties;
mod stream;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use ctxbench_core::Millis;
use ctxbench_core::block::{Block, Media};
use ctxbench_core::model::Model;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request, ServerEdit};
use serde_json::Value;
use thiserror::Error;

use crate::prompt::{Item, Prompt};

pub use incremental::IncrementalDecoder;
pub use stream::{StreamEvent, event_data};

/// A reference to a wire format.
pub type Wire = &'static dyn WireFormat;
/// Returns whether a request has a header.
pub type HasHeader<'a> = &'a dyn Fn(&str) -> bool;
/// A reference to a provider's API.
pub type Api = &'static ApiFormat;

/// All wire formats. The first is the default for unknown clients.
pub const ALL: &[Wire] = &[
    &openai_responses::OpenaiResponses,
    &openai_chat::OpenaiChat,
    &anthropic::AnthropicMessages,
    &gemini::Gemini,
];

/// Finds a wire by the name in a model.
pub fn find(name: &str) -> Option<Wire> {
    ALL.iter().copied().find(|w| w.name() == name)
}

/// Returns the wire of a model.
///
/// # Panics
///
/// If the model names an unknown wire; a test checks the catalogue.
pub fn for_model(model: &Model) -> Wire {
    find(&model.wire).unwrap_or_else(|| panic!("{} speaks `{}`", model.name, model.wire))
}

/// Returns the providers' APIs, in the order of their wires.
pub fn apis() -> [Api; 3] {
    [&openai::OPENAI, &anthropic::ANTHROPIC, &gemini::GOOGLE]
}

/// Detects the API of a client by path and headers.
pub fn detect_api(path: &str, header: HasHeader<'_>) -> Api {
    let known = apis().into_iter().find(|a| (a.matches_client)(path, header));
    known.unwrap_or_else(|| ALL[0].api())
}

/// An encoded request.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub body: Vec<u8>,
    pub path: String,
    /// Required headers in addition to the key: version and beta names.
    pub headers: Vec<(&'static str, String)>,
    /// Wire message of every block: 0 is outside the messages, then 1, 2, … in order.
    pub messages: Vec<usize>,
    /// The block of every item of the decoded prompt.
    pub shows: Vec<Arc<Block>>,
}

/// A body that is not a request or reply of the wire.
#[derive(Debug, Error)]
pub enum WireError {
    /// Not the JSON of the wire.
    #[error("the body does not match the wire format: {0}")]
    Json(#[from] serde_json::Error),
    /// A required field is missing.
    #[error("a {in_what} lacks `{field}`")]
    Missing { field: &'static str, in_what: &'static str },
    /// A valid value that is not simulated.
    #[error("{what} `{value}` is not modelled here; known: {known}")]
    Unsupported {
        what: &'static str,
        value: String,
        /// Supported values.
        known: &'static str,
    },
}

impl WireError {
    pub(crate) fn unsupported(what: &'static str, value: &str, known: &'static str) -> Self {
        WireError::Unsupported { what, value: value.into(), known }
    }
}

/// The endpoint of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Generates a reply.
    Reply,
    /// Counts the tokens of a request.
    Count,
    /// Compacts a conversation on demand.
    Compact,
    /// Stores contents for later requests.
    Store,
}

/// Contents that the provider stores on request.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredContents {
    /// Name given by the provider.
    pub name: Arc<str>,
    /// Name given by the client.
    pub title: Option<Arc<str>>,
    pub model: Arc<str>,
    pub tokens: u64,
    pub created_ms: Millis,
    pub expires_ms: Millis,
}

/// A request to store contents, or to change their lifetime.
#[derive(Clone, Debug)]
pub struct StoreRequest {
    pub prompt: Prompt,
    /// Name given by the client.
    pub title: Option<Arc<str>>,
    /// Lifetime in ms; `None` for the default.
    pub ttl_ms: Option<Millis>,
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

/// Options of a reply.
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
    /// Name for users.
    pub name: &'static str,
    /// Address of the provider.
    pub address: &'static str,
    /// Environment variables with which SDKs and common clients set another address, each with the path
    /// that the address must end with.
    pub base_urls: &'static [(&'static str, &'static str)],
    /// Response header with the request id.
    pub request_id_header: &'static str,
    /// Paths of the list of models; a single model follows after a slash.
    models_paths: &'static [&'static str],
    /// Returns whether path and headers are those of a client of this API.
    matches_client: fn(&str, HasHeader<'_>) -> bool,

    /// Default error code of a kind of error.
    error_code: fn(ErrorKind) -> &'static str,
    /// Error codes of refusals by the server instead of the model, by status.
    status_codes: &'static [(u16, &'static str)],
    /// Builds the body of an error response from status, code and message.
    pub error_body: fn(u16, &str, &str) -> Value,
    /// Adds the seconds to wait to the body of an error, if the header `retry-after` is not enough.
    add_retry_delay: fn(&mut Value, u64),
    /// Returns status and message for a body of more bytes than a limit.
    pub too_large: fn(usize) -> (u16, String),
    /// Returns the code in the `error` of an error response.
    code_of: fn(&Value) -> Option<&str>,
    /// Returns code and message for an unknown model.
    pub unknown_model: fn(&str) -> (&'static str, String),
    /// Returns the message for a call without its result (`true`) or a result without its call, by id.
    pub unpaired_message: fn(bool, &str) -> String,

    /// Builds the entry of a model; the second argument overrides its window in tokens.
    pub model: fn(&Model, Option<u64>) -> Value,
    /// Builds the list of models.
    pub model_list: fn(Vec<Value>) -> Value,
}

fn too_large(limit: usize) -> (u16, String) {
    (413, format!("the request body is larger than {limit} bytes"))
}

/// A wire format: requests, replies and streams, and the rules of its servers.
pub trait WireFormat: Sync {
    /// Returns the name in models.
    fn name(&self) -> &'static str;
    /// Returns the API of the provider.
    fn api(&self) -> Api;
    /// Returns the path of requests to a model.
    fn path(&self, model: &str) -> String;
    /// Returns the endpoint of a path.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;

    /// Assigns role, message and breakpoint to the blocks of a request.
    fn assign(&self, slots: &mut [plan::Slot], request: &Request);
    /// Encodes the body of a request.
    fn body(&self, request: &Request, slots: &[plan::Slot]) -> Vec<u8>;
    /// Returns the required headers in addition to the key.
    fn headers(&self, _request: &Request, _slots: &[plan::Slot]) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// Decodes the body of a request to a path.
    fn decode(&self, path: &str, body: &[u8]) -> Result<Prompt, WireError>;
    /// Returns whether a message decodes independently of earlier ones.
    fn has_independent_messages(&self) -> bool {
        true
    }
    /// Decodes a body without the first messages of its conversation, which are given decoded.
    fn decode_rest(
        &self,
        path: &str,
        body: &[u8],
        _first: &[Vec<Item>],
    ) -> Result<Prompt, WireError> {
        self.decode(path, body)
    }
    /// Decodes the reply options of a valid request, or returns why this server cannot answer.
    fn reply_options(&self, path: &str, body: &[u8]) -> Result<ReplyOptions, String>;
    /// Builds a tool definition of the wire; `None` to use that of the session unchanged.
    fn tool(&self, name: &Value, description: Value, schema: &Value) -> Option<Value>;
    /// Returns the name in a tool definition of the wire.
    fn tool_name<'t>(&self, tool: &'t Value) -> Option<&'t str> {
        tool["name"].as_str()
    }
    /// Returns the maximum size of the reply, as sent.
    fn max_tokens(&self, request: &Request) -> Option<u64> {
        request.max_tokens
    }
    /// Decodes the context edits among raw parameters; none if they are invalid.
    fn edits_among(&self, _params: &serde_json::Map<String, Value>) -> Vec<ServerEdit> {
        Vec::new()
    }
    /// Returns the part of an edit that the wire can request.
    fn carried_edit(&self, _edit: &ServerEdit) -> Option<ServerEdit> {
        None
    }
    /// Returns whether a request can continue a stored conversation.
    fn carries_threads(&self) -> bool {
        false
    }
    /// Returns whether a provider's compaction has a wire type; else it becomes text.
    fn shows_compaction(&self, _block: &Block) -> bool {
        false
    }
    /// Returns whether a compaction trigger has a wire type; else it becomes text.
    fn shows_trigger(&self, _block: &Block, _last: bool) -> bool {
        false
    }
    /// Returns whether summaries of compactions are readable on the wire.
    fn shows_summaries(&self) -> bool {
        false
    }
    /// Returns whether tool results can be errors.
    fn has_tool_errors(&self) -> bool {
        false
    }

    /// Returns the part of a file reference that the wire carries.
    fn carried_media(&self, media: &Media) -> Media {
        plan::carried_media(media)
    }
    /// Returns why the provider refuses a conversation with complete calls and results.
    fn refuses(&self, _prompt: &Prompt) -> Option<String> {
        None
    }

    /// Encodes a reply.
    fn encode_reply(&self, reply: &Reply, model: &Model) -> Vec<u8>;
    /// Decodes a reply with a latency of 0.
    fn decode_reply(&self, body: &[u8]) -> Result<Reply, WireError>;
    /// Returns the part of a reply that survives encoding and decoding.
    #[cfg(test)]
    fn carried_reply(&self, reply: Reply) -> Reply;
    /// Encodes the response of the compaction endpoint.
    fn encode_compacted(&self, _prompt: &Prompt, reply: &Reply, model: &Model) -> Vec<u8> {
        self.encode_reply(reply, model)
    }
    /// Splits an encoded reply into events; `usage` requests the optional usage.
    fn events(&self, whole: &[u8], usage: bool) -> serde_json::Result<Vec<StreamEvent>>;
    /// Assembles the reply from the data of stream events; `None` if the stream was interrupted or
    /// failed, or the wire does not support this.
    fn assemble(&self, _events: &[String]) -> Option<Vec<u8>> {
        None
    }
    /// Returns a generated reply id.
    fn reply_id(&self, number: u64) -> String;
    /// Returns the provider's error for a prompt of `prompt` tokens and a window of `window` tokens.
    fn overflow(&self, prompt: u64, window: u64) -> ModelError;

    /// Encodes a request to the count endpoint, including the messages of its thread.
    fn encode_count(&self, _request: &Request) -> Option<Encoded> {
        None
    }
    /// Encodes a count; `original` is the number of tokens before the provider's edits, if any.
    fn encode_count_reply(&self, _tokens: u64, _original: Option<u64>) -> Vec<u8> {
        Vec::new()
    }
    /// Decodes a count in tokens.
    fn decode_count_reply(&self, _body: &[u8]) -> Result<u64, WireError> {
        Err(WireError::Missing { field: "input_tokens", in_what: "reply" })
    }

    /// Returns the name of stored contents in a path.
    fn stored_name<'p>(&self, _path: &'p str) -> Option<&'p str> {
        None
    }
    /// Decodes a request to store contents, or to change their lifetime.
    fn decode_store_request(&self, _body: &[u8]) -> Result<StoreRequest, WireError> {
        Err(WireError::Missing { field: "contents", in_what: "request" })
    }
    /// Builds the response for stored contents.
    fn stored(&self, _stored: &StoredContents) -> Value {
        Value::Null
    }
    /// Builds the list of stored contents.
    fn stored_list(&self, all: Vec<Value>) -> Value {
        all.into()
    }

    /// Returns the required position of tool results.
    fn results_due(&self) -> ResultsDue {
        ResultsDue::Anywhere
    }
    /// Returns whether a conversation must begin with the user.
    fn begins_with_user(&self) -> bool {
        false
    }
    /// Returns the body's field for the conversation.
    fn conversation_field(&self) -> &'static str {
        "messages"
    }
    /// Returns the body's fields for tools and text outside the messages.
    fn head_fields(&self) -> &'static [&'static str];
    /// Returns whether a request must limit its reply.
    fn requires_max_tokens(&self) -> bool {
        false
    }
    /// Returns whether replies contain thinking by default.
    fn always_thinks(&self) -> bool {
        false
    }
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

impl dyn WireFormat {
    /// Encodes a request in this wire's format.
    pub fn encode(&self, request: &Request) -> Encoded {
        let request = &*request.sent();
        let slots = plan::plan(self, request);
        let body = self.body(request, &slots);
        self.encoded(request, self.path(&request.model.name), body, &slots)
    }

    fn encoded(
        &self,
        request: &Request,
        path: String,
        body: Vec<u8>,
        slots: &[plan::Slot],
    ) -> Encoded {
        let mut messages = vec![0; request.blocks.len()];
        for s in slots {
            messages[s.block] = s.message;
        }
        let shows = slots.iter().map(|s| request.blocks[s.block].clone()).collect();
        Encoded { body, path, headers: self.headers(request, slots), messages, shows }
    }

    /// Converts the definitions of a session (`name`, `description`, `input_schema`) to the wire. Other
    /// values are unchanged. Build [`ctxbench_core::request::Tools`] from them once per run.
    pub fn tool_definitions(&self, definitions: &[Value]) -> Vec<Value> {
        let translate = |d: &Value| {
            let (name, schema) = (d.get("name")?, d.get("input_schema")?);
            let description = d.get("description").cloned().unwrap_or_else(|| "".into());
            self.tool(name, description, schema)
        };
        definitions.iter().map(|d| translate(d).unwrap_or_else(|| d.clone())).collect()
    }
}

impl PartialEq for dyn WireFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for dyn WireFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
