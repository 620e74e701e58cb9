//! Anthropic Messages: `POST /v1/messages`.

mod edits;
mod layout;
mod reply;
mod request;
mod stream;

use ctxbench_core::block::Block;
use ctxbench_core::model::{Model, find};
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request, ServerEdit};
use serde_json::{Value, json};

use super::plan::{Slot, plan};
use super::{
    Encoded, Endpoint, Event, Family, ResultsDue, ServerParams, WireError, WireFormat, errors,
};
use crate::prompt::Prompt;

pub use edits::edits_among;

const PATH: &str = "/v1/messages";
const COUNT_TOKENS_PATH: &str = "/v1/messages/count_tokens";

/// What detailed error codes begin with.
const DETAILED: [&str; 2] = ["compaction_", "thread_"];

pub(super) struct AnthropicMessages;

/// This wire demands a limit, so the model's largest reply stands in.
fn max_tokens(request: &Request) -> u64 {
    const UNKNOWN_MODEL: u64 = 32_000;
    request
        .max_tokens
        .unwrap_or_else(|| find(&request.model).map_or(UNKNOWN_MODEL, |m| m.max_output))
}

impl WireFormat for AnthropicMessages {
    fn family(&self) -> Family {
        Family::Anthropic
    }
    fn path(&self, _model: &str) -> String {
        PATH.into()
    }
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path {
            PATH => Some(Endpoint::Reply),
            COUNT_TOKENS_PATH => Some(Endpoint::Count),
            _ => None,
        }
    }
    fn speaks(&self, path: &str, header: &dyn Fn(&str) -> bool) -> bool {
        header("anthropic-version") || path.starts_with(PATH)
    }

    fn lay_out(&self, slots: &mut [Slot], request: &Request) {
        layout::lay_out(slots, request);
    }
    fn encode(&self, request: &Request, slots: &[Slot]) -> Vec<u8> {
        request::encode(request, slots, true)
    }
    fn headers(&self, request: &Request, slots: &[Slot]) -> Vec<(&'static str, String)> {
        request::headers(request, slots)
    }
    fn decode(&self, _path: &str, body: &[u8]) -> Result<Prompt, WireError> {
        request::decode(body)
    }
    fn tool(&self, _name: &Value, _description: Value, _schema: &Value) -> Option<Value> {
        None
    }
    fn max_tokens(&self, request: &Request) -> Option<u64> {
        Some(max_tokens(request))
    }
    fn carried_edit(&self, edit: &ServerEdit) -> Option<ServerEdit> {
        Some(edit.clone())
    }
    fn shows_compaction(&self, _block: &Block) -> bool {
        true
    }
    fn shows_trigger(&self, _block: &Block, last: bool) -> bool {
        last
    }
    fn shows_summaries(&self) -> bool {
        true
    }
    fn tells_failures(&self) -> bool {
        true
    }

    fn encode_reply(&self, reply: &Reply, model: &str) -> Vec<u8> {
        reply::encode(reply, model)
    }
    fn decode_reply(&self, body: &[u8]) -> Result<Reply, WireError> {
        reply::decode(body)
    }
    fn events(&self, whole: &[u8], _usage: bool) -> serde_json::Result<Vec<Event>> {
        stream::events(whole)
    }

    fn encode_count(&self, request: &Request) -> Option<Encoded> {
        let request = &Request { thread: None, ..request.clone() };
        let slots = plan(self, request);
        let body = request::encode(request, &slots, false);
        Some(super::encoded(self, request, COUNT_TOKENS_PATH.into(), body, &slots))
    }
    fn encode_count_reply(&self, tokens: u64, original: Option<u64>) -> Vec<u8> {
        match original {
            Some(o) => format!(
                r#"{{"input_tokens":{tokens},"context_management":{{"original_input_tokens":{o}}}}}"#
            ),
            None => format!(r#"{{"input_tokens":{tokens}}}"#),
        }
        .into_bytes()
    }
    fn decode_count_reply(&self, body: &[u8]) -> Result<u64, WireError> {
        #[derive(serde::Deserialize)]
        struct Count {
            input_tokens: u64,
        }
        Ok(super::json::parse::<Count>(body)?.input_tokens)
    }

    fn error_code(&self, kind: ErrorKind) -> &'static str {
        match kind {
            ErrorKind::RateLimited => "rate_limit_error",
            ErrorKind::Server | ErrorKind::Stream => "api_error",
            ErrorKind::Overflow | ErrorKind::Invalid | ErrorKind::Ended => "invalid_request_error",
        }
    }
    fn status_code(&self, status: u16) -> Option<&'static str> {
        match status {
            401 => Some("authentication_error"),
            403 => Some("permission_error"),
            404 => Some("not_found_error"),
            413 => Some("request_too_large"),
            529 => Some("overloaded_error"),
            _ => None,
        }
    }
    /// Refusals of compactions and threads have a code of their own beside the type
    /// (docs/sources/anthropic-sdk.md §3).
    fn error_body(&self, _status: u16, code: &str, message: &str) -> Value {
        if DETAILED.iter().any(|d| code.starts_with(d)) {
            let details = json!({"error_code": code});
            let error =
                json!({"type": "invalid_request_error", "message": message, "details": details});
            return json!({"type": "error", "error": error});
        }
        json!({"type": "error", "error": {"type": code, "message": message}})
    }
    fn code_of(&self, detail: errors::Detail) -> Option<String> {
        detail.details.and_then(|x| x.error_code).or(detail.kind)
    }
    fn overflow(&self, prompt: u64, window: u64) -> ModelError {
        ModelError {
            kind: ErrorKind::Overflow,
            status: 400,
            code: Some("invalid_request_error".into()),
            message: format!("prompt is too long: {prompt} tokens > {window} maximum"),
        }
    }
    fn unknown_model(&self, name: &str) -> (&'static str, String) {
        ("not_found_error", format!("model: {name}"))
    }
    fn unpaired(&self, call: bool, id: &str) -> String {
        if call {
            return format!(
                "messages: tool_use `{id}` is not followed by its tool_result in the next message"
            );
        }
        format!("messages: tool_result `{id}` has no tool_use before it")
    }

    fn keeps_threads(&self) -> bool {
        true
    }
    fn edits_context(&self) -> bool {
        true
    }
    fn results_due(&self) -> ResultsDue {
        ResultsDue::NextMessage
    }
    fn demands_max_tokens(&self) -> bool {
        true
    }
    fn thinks(&self, given: &ServerParams) -> bool {
        given.thinking.as_ref().is_some_and(|t| t.kind != "disabled")
    }
    fn reply_id(&self, number: u64) -> String {
        format!("msg_{number:04}")
    }
    fn request_id_header(&self) -> &'static str {
        "request-id"
    }
    /// The catalogue does not know when a model came out.
    fn model(&self, m: &Model, window: Option<u64>) -> Value {
        json!({
            "type": "model", "id": m.name, "display_name": m.name, "created_at": "1970-01-01T00:00:00Z",
            "max_input_tokens": window.unwrap_or(m.window), "max_tokens": m.max_output,
        })
    }
    fn model_list(&self, all: Vec<Value>) -> Value {
        let id = |v: Option<&Value>| v.map(|v| v["id"].clone());
        json!({"first_id": id(all.first()), "last_id": id(all.last()), "has_more": false, "data": all})
    }
}
