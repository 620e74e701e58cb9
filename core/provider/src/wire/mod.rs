//! Wire formats, a folder each, behind the trait [`WireFormat`]. [`ApiFormat`] is the common part
//! of a provider's wires.

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

use ctxbench_core::block::{Block, Media};
use ctxbench_core::model::Model;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request, ServerEdit};
use ctxbench_core::session::Millis;
use serde_json::Value;
use thiserror::Error;

use crate::prompt::{Item, Prompt};

pub use incremental::IncrementalDecoder;
pub use stream::{Event, event_data};

/// All that is known of a wire format.
pub type Wire = &'static dyn WireFormat;
/// All that is known of a provider's API.
pub type Api = &'static dyn ApiFormat;

/// All wire formats. A client without a recognizable format is assumed to use the first.
pub const ALL: &[Wire] = &[
    &openai_responses::OpenaiResponses,
    &openai_chat::OpenaiChat,
    &anthropic::AnthropicMessages,
    &gemini::Gemini,
];

/// The wire of this name, as models give it.
pub fn named(name: &str) -> Option<Wire> {
    ALL.iter().copied().find(|w| w.name() == name)
}

/// The wire that a model speaks.
///
/// # Panics
///
/// If the model names a wire that is none of [`ALL`]; a test looks at those of the catalogue.
pub fn of(model: &Model) -> Wire {
    named(&model.wire).unwrap_or_else(|| panic!("{} speaks `{}`", model.name, model.wire))
}

/// The providers' APIs, in the order of their wires.
pub fn apis() -> Vec<Api> {
    let mut all: Vec<Api> = Vec::new();
    for api in ALL.iter().map(|w| w.api()) {
        if !all.contains(&api) {
            all.push(api);
        }
    }
    all
}

/// Determines a client's API from its path and headers.
pub fn speaker(path: &str, header: &dyn Fn(&str) -> bool) -> Api {
    let known = apis().into_iter().find(|a| a.speaks(path, header));
    known.unwrap_or_else(|| ALL[0].api())
}

/// A request as bytes.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub body: Vec<u8>,
    /// Path of the POST request.
    pub path: String,
    /// Headers that the provider requires besides the key: version and beta names.
    pub headers: Vec<(&'static str, String)>,
    /// Wire message index of every sent block: 0 = outside the messages, then 1, 2, … in order.
    pub messages: Vec<usize>,
    /// The block of every item that the body decodes to.
    pub shows: Vec<Arc<Block>>,
}

/// Bytes that are not a request or reply of the wire.
#[derive(Debug, Error)]
pub enum WireError {
    /// Not the JSON that the wire prescribes.
    #[error("the body is not what this wire prescribes: {0}")]
    Json(#[from] serde_json::Error),
    /// A field that must be there.
    #[error("a {in_what} lacks `{field}`")]
    Missing { field: &'static str, in_what: &'static str },
    /// Something real that this build does not model.
    #[error("{what} `{value}` is not modelled here; known: {known}")]
    Unsupported { what: &'static str, value: String, known: &'static str },
}

/// Purpose of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A reply of a model.
    Reply,
    /// The tokens of a request.
    Count,
    /// A compaction on demand.
    Compact,
    /// Contents that a client stores for later requests.
    Store,
}

/// Contents that a client stores with the provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Name given by the provider.
    pub name: Arc<str>,
    /// Name given by the client.
    pub title: Option<Arc<str>>,
    /// The model that they are for.
    pub model: Arc<str>,
    pub tokens: u64,
    /// When they were stored, ms.
    pub created_ms: Millis,
    /// When they end, ms.
    pub expires_ms: Millis,
}

/// Contents that a client asks to store, or stored ones.
#[derive(Clone, Debug)]
pub struct Storing {
    pub prompt: Prompt,
    /// Name given by the client.
    pub title: Option<Arc<str>>,
    /// Lifetime; `None` = the provider's default.
    pub ttl_ms: Option<Millis>,
}

/// When a provider wants the results of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsDue {
    /// In the message after the calls.
    NextMessage,
    /// Before the user says anything else.
    BeforeUser,
    /// Anywhere after the calls.
    Anywhere,
}

/// Reply options of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The reply comes as events.
    pub stream: bool,
    /// The reply may begin with thinking.
    pub thinking: bool,
    /// A stream of Chat ends with the usage.
    pub usage: bool,
}

/// Common part of the wires of one provider: errors, models, recognition of clients.
pub trait ApiFormat: Sync {
    fn name(&self) -> &'static str;
    /// Whether a client uses this API, judged by something only such a client sends.
    fn speaks(&self, _path: &str, _header: &dyn Fn(&str) -> bool) -> bool {
        false
    }

    /// Address of the real provider.
    fn address(&self) -> Option<&'static str> {
        None
    }
    /// Environment variables from which its official SDKs and common clients take another address,
    /// each with the path that they expect at its end.
    fn base_urls(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The code of a kind of error where the error itself names none.
    fn error_code(&self, kind: ErrorKind) -> &'static str;
    /// The code of a refusal by the server and not by the model.
    fn status_code(&self, status: u16) -> Option<&'static str> {
        (status == 413).then_some("request_too_large")
    }
    /// The body of an error answer.
    fn error_body(&self, status: u16, code: &str, message: &str) -> Value;
    /// Puts into the body of an error when to try again, where the header `retry-after` is not
    /// enough.
    fn tell_pause(&self, _body: &mut Value, _seconds: u64) {}
    /// Status and message for a body of more than `limit` bytes.
    fn too_large(&self, limit: usize) -> (u16, String) {
        (413, format!("the request body is larger than {limit} bytes"))
    }
    /// The code in the `error` of an error answer.
    fn code_of(&self, error: &Value) -> Option<String>;
    /// Code and message for an unknown model.
    fn unknown_model(&self, name: &str) -> (&'static str, String);
    /// Message for a call without its result (`call`) or a result without its call.
    fn unpaired(&self, call: bool, id: &str) -> String;
    /// The header in which a response names its request.
    fn request_id_header(&self) -> &'static str {
        "x-request-id"
    }

    /// Paths of the model list; each model is below them.
    fn models_paths(&self) -> &'static [&'static str] {
        &["/v1/models"]
    }
    /// A model as the list shows it, with `window` instead of its own, in tokens.
    fn model(&self, model: &Model, window: Option<u64>) -> Value;
    fn model_list(&self, all: Vec<Value>) -> Value;
}

/// A wire format: the form of requests, replies and streams, and the rules of a server that speaks
/// it. Methods without a default are required for every wire.
pub trait WireFormat: Sync {
    /// The name that models give it.
    fn name(&self) -> &'static str;
    fn api(&self) -> Api;
    /// Path of a request for a reply of this model.
    fn path(&self, model: &str) -> String;
    /// Purpose of a path.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;

    /// Gives the blocks of a request their role, message and breakpoint.
    fn lay_out(&self, slots: &mut [plan::Slot], request: &Request);
    /// Writes the body of a request.
    fn body(&self, request: &Request, slots: &[plan::Slot]) -> Vec<u8>;
    /// Headers that the provider requires besides the key.
    fn headers(&self, _request: &Request, _slots: &[plan::Slot]) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// Reads the body that was posted to a path.
    fn decode(&self, path: &str, body: &[u8]) -> Result<Prompt, WireError>;
    /// Whether a message decodes the same after any other messages.
    fn reads_messages_alone(&self) -> bool {
        true
    }
    /// Decodes a body without the first messages of its conversation; `said` is their content.
    fn decode_rest(
        &self,
        path: &str,
        body: &[u8],
        _first: &[Vec<Item>],
    ) -> Result<Prompt, WireError> {
        self.decode(path, body)
    }
    /// Reads how a request wants its reply, from a body that is known to be one of the wire; an
    /// error says why this server cannot answer.
    fn asked(&self, path: &str, body: &[u8]) -> Result<Asked, String>;
    /// Converts a tool definition; `None` = the form of sessions.
    fn tool(&self, name: &Value, description: Value, schema: &Value) -> Option<Value>;
    /// The name of a tool by its definition in the wire's shape.
    fn tool_name<'t>(&self, tool: &'t Value) -> Option<&'t str> {
        tool["name"].as_str()
    }
    /// The largest reply, as sent.
    fn max_tokens(&self, request: &Request) -> Option<u64> {
        request.max_tokens
    }
    /// The context edits among a caller's raw parameters; none where they cannot be read.
    fn edits_among(&self, _params: &serde_json::Map<String, Value>) -> Vec<ServerEdit> {
        Vec::new()
    }
    /// The edit as far as the wire can ask for it.
    fn carried_edit(&self, _edit: &ServerEdit) -> Option<ServerEdit> {
        None
    }
    /// Whether a request can name the conversation that it continues.
    fn carries_threads(&self) -> bool {
        false
    }
    /// Whether a provider's compaction is sent as such; otherwise it is text.
    fn shows_compaction(&self, _block: &Block) -> bool {
        false
    }
    /// Whether a request for a compaction is sent as such; otherwise it is text.
    fn shows_trigger(&self, _block: &Block, _last: bool) -> bool {
        false
    }
    /// Whether the summary of a compaction is readable on the wire.
    fn shows_summaries(&self) -> bool {
        false
    }
    /// Whether tool results carry an error flag.
    fn tells_failures(&self) -> bool {
        false
    }

    /// Returns the part of a file's description that the wire carries.
    fn carried_media(&self, media: &Media) -> Media {
        plan::carried_media(media)
    }
    /// Why the provider refuses a conversation in which calls and results are paired.
    fn refuses(&self, _prompt: &Prompt) -> Option<String> {
        None
    }

    /// Writes a reply of a model.
    fn encode_reply(&self, reply: &Reply, model: &Model) -> Vec<u8>;
    /// Reads a reply; its latency is 0.
    fn decode_reply(&self, body: &[u8]) -> Result<Reply, WireError>;
    /// Returns the part of a reply that the wire carries: the result of reading after writing.
    #[cfg(test)]
    fn carried_reply(&self, reply: Reply) -> Reply;
    /// Writes the answer of the separate endpoint for a compaction on demand.
    fn encode_compacted(&self, _prompt: &Prompt, reply: &Reply, model: &Model) -> Vec<u8> {
        self.encode_reply(reply, model)
    }
    /// A whole reply as events; `usage` = the client wants the usage where it may choose.
    fn events(&self, whole: &[u8], usage: bool) -> serde_json::Result<Vec<Event>>;
    /// Assembles a reply from the data of a stream's events; `None` = the stream broke off or
    /// failed, or this wire's streams cannot be read.
    fn whole(&self, _events: &[String]) -> Option<Vec<u8>> {
        None
    }
    /// The id of a reply where the provider gave none.
    fn reply_id(&self, number: u64) -> String;
    /// The refusal of a prompt of `prompt` tokens by a window of `window` tokens, in the
    /// provider's manner.
    fn overflow(&self, prompt: u64, window: u64) -> ModelError;

    /// Writes a request for the token count of a request and its thread.
    fn encode_count(&self, _request: &Request) -> Option<Encoded> {
        None
    }
    /// Writes the answer; `original` = tokens before the provider's edits, where there were any.
    fn encode_count_reply(&self, _tokens: u64, _original: Option<u64>) -> Vec<u8> {
        Vec::new()
    }
    /// Reads the answer: tokens.
    fn decode_count_reply(&self, _body: &[u8]) -> Result<u64, WireError> {
        Err(WireError::Missing { field: "input_tokens", in_what: "reply" })
    }

    /// The name of stored contents in a path that has one.
    fn stored_name<'p>(&self, _path: &'p str) -> Option<&'p str> {
        None
    }
    /// Reads a request to store contents, or to change their lifetime.
    fn decode_storing(&self, _body: &[u8]) -> Result<Storing, WireError> {
        Err(WireError::Missing { field: "contents", in_what: "request" })
    }
    /// Describes stored contents as the provider does.
    fn stored(&self, _stored: &Stored) -> Value {
        Value::Null
    }
    /// The list of them.
    fn stored_list(&self, all: Vec<Value>) -> Value {
        all.into()
    }

    /// When the results of calls must be there.
    fn results_due(&self) -> ResultsDue {
        ResultsDue::Anywhere
    }
    /// Whether the provider refuses a conversation that begins with the model.
    fn begins_with_user(&self) -> bool {
        false
    }
    /// Field of the body with the conversation.
    fn conversation_field(&self) -> &'static str {
        "messages"
    }
    /// Fields of the body with the tools and everything outside the messages.
    fn head_fields(&self) -> &'static [&'static str];
    /// Whether a request must limit its reply.
    fn demands_max_tokens(&self) -> bool {
        false
    }
    /// Thinking is shown whether or not it was asked for.
    fn always_thinks(&self) -> bool {
        false
    }
}

impl dyn ApiFormat {
    /// Returns the model that a path asks about, empty for the list; `None` = not a path of models.
    pub fn model_in<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = self.models_paths().iter().find_map(|models| path.strip_prefix(models))?;
        if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
    }
}

impl dyn WireFormat {
    /// A request as a provider's JSON.
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

    /// Converts the definitions of a session (`name`, `description`, `input_schema`) to the wire's
    /// form; others stay unchanged. Use it to build [`ctxbench_core::request::Tools`] once per run:
    /// these bytes are sent and billed unchanged.
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

impl PartialEq for dyn ApiFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for dyn ApiFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
