//! Anthropic Messages: `POST /v1/messages`.

mod edits;
mod layout;
mod reply;
mod request;
mod stream;
mod whole;

use ctxbench_core::block::Block;
use ctxbench_core::model::Model;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request, ServerEdit};
use serde::Deserialize;
use serde_json::{Value, json};

use super::plan::{Slot, plan};
use super::{
    Api, ApiFormat, Encoded, Endpoint, ReplyOptions, ResultsDue, StreamEvent, WireError,
    WireFormat, too_large,
};
use crate::prompt::Prompt;

const PATH: &str = "/v1/messages";
const COUNT_TOKENS_PATH: &str = "/v1/messages/count_tokens";

/// Prefix of detailed error codes.
const DETAILED: [&str; 2] = ["compaction_", "thread_"];

pub(super) static ANTHROPIC: ApiFormat = ApiFormat {
    name: "anthropic",
    address: "https://api.anthropic.com",
    base_urls: &[("ANTHROPIC_BASE_URL", "")],
    request_id_header: "request-id",
    models_paths: &["/v1/models"],
    matches_client: |path, header| header("anthropic-version") || path.starts_with(PATH),

    error_code: |kind| match kind {
        ErrorKind::RateLimited => "rate_limit_error",
        ErrorKind::Server | ErrorKind::Stream => "api_error",
        ErrorKind::Overflow | ErrorKind::Invalid | ErrorKind::SessionEnd => "invalid_request_error",
    },
    status_codes: &[
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (529, "overloaded_error"),
    ],
    // Refusals of compactions and threads have a separate code in addition to the type
    // (docs/sources/anthropic-sdk.md §3).
    error_body: |_status, code, message| {
        if DETAILED.iter().any(|d| code.starts_with(d)) {
            let details = json!({"error_code": code});
            let error =
                json!({"type": "invalid_request_error", "message": message, "details": details});
            return json!({"type": "error", "error": error});
        }
        json!({"type": "error", "error": {"type": code, "message": message}})
    },
    add_retry_delay: |_, _| {},
    too_large,
    code_of: |error| error["details"]["error_code"].as_str().or(error["type"].as_str()),
    unknown_model: |name| ("not_found_error", format!("model: {name}")),
    unpaired_message: |call, id| {
        if call {
            return format!(
                "messages: tool_use `{id}` is not followed by its tool_result in the next message"
            );
        }
        format!("messages: tool_result `{id}` has no tool_use before it")
    },

    // The catalogue has no release dates.
    model: |m, window| {
        json!({
            "type": "model", "id": m.name, "display_name": m.name,
            "created_at": "1970-01-01T00:00:00Z",
            "max_input_tokens": window.unwrap_or(m.window), "max_tokens": m.max_output,
        })
    },
    model_list: |all| {
        let id = |v: Option<&Value>| v.map(|v| v["id"].clone());
        let (first, last) = (id(all.first()), id(all.last()));
        json!({"first_id": first, "last_id": last, "has_more": false, "data": all})
    },
};

pub(super) struct AnthropicMessages;

impl WireFormat for AnthropicMessages {
    fn name(&self) -> &'static str {
        "anthropic-messages"
    }
    fn api(&self) -> Api {
        &ANTHROPIC
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

    fn assign(&self, slots: &mut [Slot], request: &Request) {
        layout::assign(slots, request);
    }
    fn body(&self, request: &Request, slots: &[Slot]) -> Vec<u8> {
        request::encode(request, slots, true)
    }
    fn headers(&self, request: &Request, slots: &[Slot]) -> Vec<(&'static str, String)> {
        request::headers(request, slots)
    }
    fn decode(&self, _path: &str, body: &[u8]) -> Result<Prompt, WireError> {
        request::decode(body)
    }
    fn reply_options(&self, _path: &str, body: &[u8]) -> Result<ReplyOptions, String> {
        #[derive(Deserialize)]
        struct RequestParams {
            stream: Option<bool>,
            thinking: Option<Thinking>,
        }
        #[derive(Deserialize)]
        struct Thinking {
            #[serde(rename = "type")]
            kind: String,
        }
        let given: RequestParams = serde_json::from_slice(body).map_err(|e| e.to_string())?;
        let thinking = given.thinking.is_some_and(|t| t.kind != "disabled");
        Ok(ReplyOptions { stream: given.stream == Some(true), thinking, usage: false })
    }
    fn tool(&self, _name: &Value, _description: Value, _schema: &Value) -> Option<Value> {
        None
    }
    fn max_tokens(&self, request: &Request) -> Option<u64> {
        Some(request::max_tokens(request))
    }
    fn edits_among(&self, params: &serde_json::Map<String, Value>) -> Vec<ServerEdit> {
        edits::among(params)
    }
    fn carried_edit(&self, edit: &ServerEdit) -> Option<ServerEdit> {
        Some(edit.clone())
    }
    fn carries_threads(&self) -> bool {
        true
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
    fn has_tool_errors(&self) -> bool {
        true
    }

    fn head_fields(&self) -> &'static [&'static str] {
        &["system", "tools"]
    }
    fn encode_reply(&self, reply: &Reply, model: &Model) -> Vec<u8> {
        reply::encode(reply, &model.name)
    }
    fn decode_reply(&self, body: &[u8]) -> Result<Reply, WireError> {
        reply::decode(body)
    }
    /// The wire does not report reasoning separately.
    #[cfg(test)]
    fn carried_reply(&self, mut reply: Reply) -> Reply {
        (reply.usage.reasoning, reply.billed.reasoning) = (0, 0);
        reply
    }
    fn events(&self, whole: &[u8], _usage: bool) -> serde_json::Result<Vec<StreamEvent>> {
        stream::events(whole)
    }
    fn assemble(&self, events: &[String]) -> Option<Vec<u8>> {
        whole::assemble(events)
    }
    fn reply_id(&self, number: u64) -> String {
        format!("msg_{number:04}")
    }
    fn overflow(&self, prompt: u64, window: u64) -> ModelError {
        ModelError {
            kind: ErrorKind::Overflow,
            status: 400,
            code: Some("invalid_request_error".into()),
            message: format!("prompt is too long: {prompt} tokens > {window} maximum"),
        }
    }

    fn encode_count(&self, request: &Request) -> Option<Encoded> {
        let wire: &dyn WireFormat = self;
        let request = &Request { thread: None, ..request.clone() };
        let slots = plan(wire, request);
        let body = request::encode(request, &slots, false);
        Some(wire.encoded(request, COUNT_TOKENS_PATH.into(), body, &slots))
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
        #[derive(Deserialize)]
        struct CountReply {
            input_tokens: u64,
        }
        Ok(super::json::parse::<CountReply>(body)?.input_tokens)
    }

    fn results_due(&self) -> ResultsDue {
        ResultsDue::NextMessage
    }
    /// Bedrock requires this, Anthropic no longer
    /// (<https://github.com/anthropics/anthropic-sdk-typescript/issues/622>).
    fn begins_with_user(&self) -> bool {
        true
    }
    fn requires_max_tokens(&self) -> bool {
        true
    }
}
