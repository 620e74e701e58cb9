//! Wire formats: each is a folder here, behind the one trait [`WireFormat`].

mod anthropic;
pub(crate) mod errors;
pub(crate) mod json;
mod openai;
mod openai_chat;
mod openai_responses;
pub(crate) mod plan;
#[cfg(test)]
mod properties;
mod stream;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use ctxbench_core::block::Block;
use ctxbench_core::model::{Model, Wire};
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request, ServerEdit};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use thiserror::Error;

use crate::prompt::Prompt;

pub use anthropic::edits_among;
pub use stream::Event;

/// The wire formats. Where nothing tells which one a client speaks it is the last.
pub const ALL: [Wire; 3] = [Wire::AnthropicMessages, Wire::OpenaiResponses, Wire::OpenaiChat];

/// All that is known of a wire format.
pub fn format(wire: Wire) -> &'static dyn WireFormat {
    match wire {
        Wire::AnthropicMessages => &anthropic::AnthropicMessages,
        Wire::OpenaiResponses => &openai_responses::OpenaiResponses,
        Wire::OpenaiChat => &openai_chat::OpenaiChat,
    }
}

/// A request as bytes.
#[derive(Clone, Debug)]
pub struct Encoded {
    /// The JSON body.
    pub body: Vec<u8>,
    /// Where it is posted.
    pub path: String,
    /// Headers the provider demands beside the key: version and beta names.
    pub headers: Vec<(&'static str, String)>,
    /// Wire message of every block that is sent: 0 = beside the messages, then 1, 2, … in order.
    pub messages: Vec<usize>,
    /// The block behind every item of the prompt that the body decodes to.
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
    Missing {
        /// The field.
        field: &'static str,
        /// Where.
        in_what: &'static str,
    },
    /// Something real that this build does not model.
    #[error("{what} `{value}` is not modelled here; known: {known}")]
    Unsupported {
        /// What sort of thing.
        what: &'static str,
        /// What was found.
        value: String,
        /// What is understood.
        known: &'static str,
    },
}

/// Whose API a wire belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// `/v1/messages` and what belongs to it.
    Anthropic,
    /// `/v1/responses`, `/v1/chat/completions` and what belongs to them.
    Openai,
}

impl Family {
    /// The wire in whose shape errors are told where no request says more.
    pub fn wire(self) -> Wire {
        let own = |w: &&Wire| format(**w).family() == self;
        *ALL.iter().find(own).expect("every family has a wire")
    }
}

/// What a path of a wire is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A reply of a model.
    Reply,
    /// The tokens of a request.
    Count,
    /// A compaction on demand.
    Compact,
}

/// When a provider wants the results of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsDue {
    /// In the message after the calls.
    NextMessage,
    /// Before the user says anything else.
    BeforeUser,
    /// Anywhere behind the calls.
    Anywhere,
}

/// What a body says to the server and not to the model.
#[derive(Deserialize)]
pub struct ServerParams {
    stream: Option<bool>,
    thinking: Option<Thinking>,
    reasoning: Option<IgnoredAny>,
    stream_options: Option<StreamOptions>,
    previous_response_id: Option<IgnoredAny>,
    conversation: Option<IgnoredAny>,
    background: Option<bool>,
    n: Option<u64>,
}

#[derive(Deserialize)]
struct Thinking {
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// How a request wants its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The reply comes as events.
    pub stream: bool,
    /// The reply may begin with thinking.
    pub thinking: bool,
    /// A stream of Chat ends with the usage.
    pub usage: bool,
}

/// A wire format: how requests, replies, errors and streams look, and what a server that speaks it
/// demands. Methods without a default are what every wire must have.
pub trait WireFormat: Sync {
    /// Whose API it belongs to.
    fn family(&self) -> Family;
    /// Where a request for a reply of this model is posted.
    fn path(&self, model: &str) -> String;
    /// What a path is for.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;
    /// Whether a client speaks this family's language, by what only such a client sends.
    fn speaks(&self, _path: &str, _header: &dyn Fn(&str) -> bool) -> bool {
        false
    }

    /// Gives the blocks of a request their role, message and breakpoint.
    fn lay_out(&self, slots: &mut [plan::Slot], request: &Request);
    /// Writes the body of a request.
    fn encode(&self, request: &Request, slots: &[plan::Slot]) -> Vec<u8>;
    /// Headers the provider demands beside the key.
    fn headers(&self, _request: &Request, _slots: &[plan::Slot]) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// Reads the body that was posted to a path.
    fn decode(&self, path: &str, body: &[u8]) -> Result<Prompt, WireError>;
    /// A tool definition in the wire's shape; `None` = as sessions hold it.
    fn tool(&self, name: &Value, description: Value, schema: &Value) -> Option<Value>;
    /// The largest reply, as sent.
    fn max_tokens(&self, request: &Request) -> Option<u64> {
        request.max_tokens
    }
    /// The edit as far as the wire can ask for it.
    fn carried_edit(&self, _edit: &ServerEdit) -> Option<ServerEdit> {
        None
    }
    /// Whether a provider's compaction travels as such; else it is text.
    fn shows_compaction(&self, _block: &Block) -> bool {
        false
    }
    /// Whether a request for a compaction travels as such; else it is text.
    fn shows_trigger(&self, _block: &Block, _last: bool) -> bool {
        false
    }
    /// Whether the summary of a compaction can be read on the wire.
    fn shows_summaries(&self) -> bool {
        false
    }
    /// Whether tool results say that the tool failed.
    fn tells_failures(&self) -> bool {
        false
    }

    /// Writes a reply of a model.
    fn encode_reply(&self, reply: &Reply, model: &str) -> Vec<u8>;
    /// Reads a reply; its latency is 0.
    fn decode_reply(&self, body: &[u8]) -> Result<Reply, WireError>;
    /// Writes the answer to a compaction on demand that has an endpoint of its own.
    fn encode_compacted(&self, _prompt: &Prompt, reply: &Reply, model: &str) -> Vec<u8> {
        self.encode_reply(reply, model)
    }
    /// A whole reply as events; `usage` = the client wants the usage where it may choose.
    fn events(&self, whole: &[u8], usage: bool) -> serde_json::Result<Vec<Event>>;

    /// Writes the question how many tokens a request has, with all that its thread holds.
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

    /// The code of a kind of error where the error itself names none.
    fn error_code(&self, kind: ErrorKind) -> &'static str;
    /// The code of a refusal by the server and not by the model.
    fn status_code(&self, status: u16) -> Option<&'static str> {
        (status == 413).then_some("request_too_large")
    }
    /// The body of an error answer.
    fn error_body(&self, status: u16, code: &str, message: &str) -> Value;
    /// The code in an error answer.
    fn code_of(&self, detail: errors::Detail) -> Option<String>;
    /// The refusal of a prompt of `prompt` tokens by a window of `window` tokens.
    fn overflow(&self, prompt: u64, window: u64) -> ModelError;
    /// Code and words for a model that does not exist.
    fn unknown_model(&self, name: &str) -> (&'static str, String);
    /// Words for a call without its result (`call`) or a result without its call.
    fn unpaired(&self, call: bool, id: &str) -> String;

    /// The provider keeps conversations that a later request goes on with.
    fn keeps_threads(&self) -> bool {
        false
    }
    /// The provider edits what it is sent: a compaction block stands for all before it, results and
    /// thinking are cleared on demand, and requests are held to the rules of that.
    fn edits_context(&self) -> bool {
        false
    }
    /// When the results of calls must be there.
    fn results_due(&self) -> ResultsDue {
        ResultsDue::Anywhere
    }
    /// The field of the body that holds the conversation.
    fn conversation_field(&self) -> &'static str {
        "messages"
    }
    /// Whether a request must limit its reply.
    fn demands_max_tokens(&self) -> bool {
        false
    }
    /// Whether the reply comes as events.
    fn streams(&self, _path: &str, given: &ServerParams) -> bool {
        given.stream == Some(true)
    }
    /// Whether the reply may begin with thinking.
    fn thinks(&self, _given: &ServerParams) -> bool {
        false
    }
    /// Thinking is shown whether or not it was asked for.
    fn always_thinks(&self) -> bool {
        false
    }
    /// Why a server that keeps nothing cannot answer.
    fn not_kept(&self, _given: &ServerParams) -> Option<&'static str> {
        None
    }
    /// The id of a reply where the provider gave none.
    fn reply_id(&self, number: u64) -> String;
    /// The header in which a response names its request.
    fn request_id_header(&self) -> &'static str {
        "x-request-id"
    }
    /// One model as the list of models shows it; `window` instead of its own, tokens.
    fn model(&self, model: &Model, window: Option<u64>) -> Value;
    /// The list of models.
    fn model_list(&self, all: Vec<Value>) -> Value;
}

/// Encodes a request as a provider's JSON.
pub fn encode(wire: Wire, request: &Request) -> Encoded {
    let (wire, request) = (format(wire), &*request.sent());
    let slots = plan::plan(wire, request);
    encoded(wire, request, wire.path(&request.model), wire.encode(request, &slots), &slots)
}

fn encoded(
    wire: &dyn WireFormat,
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
    Encoded { body, path, headers: wire.headers(request, slots), messages, shows }
}

/// Decodes the body of a request that was posted to a path.
pub fn decode(wire: Wire, path: &str, body: &[u8]) -> Result<Prompt, WireError> {
    format(wire).decode(path, body)
}

/// Reads how a request wants its reply, from a body that is known to be JSON of the wire.
pub fn asked(wire: Wire, path: &str, body: &[u8]) -> Result<Asked, String> {
    let wire = format(wire);
    let given: ServerParams = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    if let Some(why) = wire.not_kept(&given) {
        return Err(why.to_string());
    }
    if given.background == Some(true) || given.n.is_some_and(|n| n != 1) {
        return Err(
            "this server answers at once and with one choice: leave `background` and `n` out"
                .to_string(),
        );
    }
    Ok(Asked {
        stream: wire.streams(path, &given),
        thinking: wire.thinks(&given),
        usage: given.stream_options.and_then(|o| o.include_usage).unwrap_or(false),
    })
}

/// Encodes a reply. Latency is not on any wire.
pub fn encode_reply(wire: Wire, reply: &Reply, model: &str) -> Vec<u8> {
    format(wire).encode_reply(reply, model)
}

/// Decodes a reply body; its latency is 0.
pub fn decode_reply(wire: Wire, body: &[u8]) -> Result<Reply, WireError> {
    format(wire).decode_reply(body)
}

/// Encodes an error as HTTP status and body.
pub fn encode_error(wire: Wire, error: &ModelError) -> (u16, Vec<u8>) {
    errors::encode(format(wire), error)
}

/// Decodes an error answer; never fails, since an error must not hide behind another.
pub fn decode_error(wire: Wire, status: u16, body: &[u8]) -> ModelError {
    errors::decode(format(wire), status, body)
}

/// The refusal of a prompt of `prompt` tokens by a window of `window` tokens, in the provider's
/// manner.
pub fn overflow(wire: Wire, prompt: u64, window: u64) -> ModelError {
    format(wire).overflow(prompt, window)
}

/// A refusal with the provider's own words, as a client understands it.
pub fn refusal(wire: Wire, status: u16, code: Option<String>, message: String) -> ModelError {
    errors::refusal(format(wire), status, code, message)
}

/// The definitions of a session (`name`, `description`, `input_schema`) as a wire wants them;
/// anything of another shape stays as it is. Meant for building
/// [`ctxbench_core::request::Tools`] once per run, whose bytes are then sent and billed unchanged.
pub fn tool_definitions(wire: Wire, definitions: &[Value]) -> Vec<Value> {
    let translate = |d: &Value| {
        let (name, schema) = (d.get("name")?, d.get("input_schema")?);
        let description = d.get("description").cloned().unwrap_or_else(|| "".into());
        format(wire).tool(name, description, schema)
    };
    definitions.iter().map(|d| translate(d).unwrap_or_else(|| d.clone())).collect()
}
