//! The one door to the three wire formats: requests, replies and errors as bytes and back.

use thiserror::Error;

use super::models::Wire;
use super::prompt::Prompt;
use super::{anthropic, errors, openai_chat, openai_responses, plan};
use crate::request::{ModelError, Reply, Request};

/// A request as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON body.
    pub body: Vec<u8>,
    /// Where it is posted.
    pub path: &'static str,
    /// Headers the provider demands beside the key: version and beta names.
    pub headers: Vec<(&'static str, String)>,
    /// Wire message of every block that is sent: 0 = beside the messages, then 1, 2, … in order.
    pub messages: Vec<usize>,
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

/// Encodes a request as a provider's JSON.
pub fn encode(wire: Wire, request: &Request) -> Encoded {
    let request = &*request.sent();
    let slots = plan::plan(wire, request);
    let (body, path) = match wire {
        Wire::AnthropicMessages => (anthropic::encode(request, &slots, true), "/v1/messages"),
        Wire::OpenaiResponses => (openai_responses::encode(request, &slots), "/v1/responses"),
        Wire::OpenaiChat => (openai_chat::encode(request, &slots), "/v1/chat/completions"),
    };
    let headers = if wire == Wire::AnthropicMessages { anthropic::headers(request, &slots) } else { Vec::new() };
    Encoded { body, path, headers, messages: messages(request, &slots) }
}

/// Path of Anthropic's counting endpoint.
pub const COUNT_TOKENS_PATH: &str = "/v1/messages/count_tokens";

/// Encodes the question how many tokens a request has (Anthropic), with all that its thread holds.
pub fn encode_count(request: &Request) -> Encoded {
    let request = &Request { thread: None, ..request.clone() };
    let slots = plan::plan(Wire::AnthropicMessages, request);
    let body = anthropic::encode(request, &slots, false);
    Encoded { body, path: COUNT_TOKENS_PATH, headers: anthropic::headers(request, &slots), messages: messages(request, &slots) }
}

/// Encodes the answer to [`encode_count`]; `original` = tokens before server edits, where there were any.
pub fn encode_count_reply(tokens: u64, original: Option<u64>) -> Vec<u8> {
    match original {
        Some(o) => format!(r#"{{"input_tokens":{tokens},"context_management":{{"original_input_tokens":{o}}}}}"#),
        None => format!(r#"{{"input_tokens":{tokens}}}"#),
    }
    .into_bytes()
}

/// Decodes the answer to [`encode_count`]: tokens.
pub fn decode_count_reply(body: &[u8]) -> Result<u64, WireError> {
    #[derive(serde::Deserialize)]
    struct Count {
        input_tokens: u64,
    }
    Ok(super::json::parse::<Count>(body)?.input_tokens)
}

fn messages(request: &Request, slots: &[plan::Slot]) -> Vec<usize> {
    let mut messages = vec![0; request.blocks.len()];
    for s in slots {
        messages[s.block] = s.message;
    }
    messages
}

/// Decodes a request body.
pub fn decode(wire: Wire, body: &[u8]) -> Result<Prompt, WireError> {
    match wire {
        Wire::AnthropicMessages => anthropic::decode(body),
        Wire::OpenaiResponses => openai_responses::decode(body),
        Wire::OpenaiChat => openai_chat::decode(body),
    }
}

/// Encodes a reply. Latency is not on any wire.
pub fn encode_reply(wire: Wire, reply: &Reply, model: &str) -> Vec<u8> {
    match wire {
        Wire::AnthropicMessages => super::anthropic_reply::encode(reply, model),
        Wire::OpenaiResponses => super::openai_reply::encode_responses(reply, model),
        Wire::OpenaiChat => super::openai_reply::encode_chat(reply, model),
    }
}

/// Encodes the answer of OpenAI's `/responses/compact` to a prompt, from the reply that holds the compaction.
pub fn encode_compacted(prompt: &Prompt, reply: &Reply, model: &str) -> Vec<u8> {
    super::openai_reply::encode_compacted(prompt, reply, model)
}

/// Decodes a reply body; its latency is 0.
pub fn decode_reply(wire: Wire, body: &[u8]) -> Result<Reply, WireError> {
    match wire {
        Wire::AnthropicMessages => super::anthropic_reply::decode(body),
        Wire::OpenaiResponses => super::openai_reply::decode_responses(body),
        Wire::OpenaiChat => super::openai_reply::decode_chat(body),
    }
}

/// Encodes an error as HTTP status and body.
pub fn encode_error(wire: Wire, error: &ModelError) -> (u16, Vec<u8>) {
    errors::encode(wire, error)
}

/// Decodes an error answer; never fails, since an error must not hide behind another.
pub fn decode_error(wire: Wire, status: u16, body: &[u8]) -> ModelError {
    errors::decode(wire, status, body)
}

/// The refusal of a prompt of `prompt` tokens by a window of `window` tokens, in the provider's manner.
pub fn overflow(wire: Wire, prompt: u64, window: u64) -> ModelError {
    errors::overflow(wire, prompt, window)
}

/// A refusal with the provider's own words, as a client understands it.
pub fn refusal(wire: Wire, status: u16, code: Option<String>, message: String) -> ModelError {
    errors::refusal(wire, status, code, message)
}
