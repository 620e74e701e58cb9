//! Anthropic Messages: `POST /v1/messages`.

mod reply;
mod request;
mod stream;

use ctxbench_core::request::ErrorKind;
use serde::Deserialize;
use serde_json::{Value, json};

use super::format::{
    ApiFormat, CountFormat, Endpoint, ReplyOptions, ResultsDue, Rules, WireFormat, overflow,
    too_large,
};

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

pub(super) static WIRE: WireFormat = WireFormat {
    name: "anthropic-messages",
    api: &ANTHROPIC,
    path: |_| PATH.into(),
    endpoint: |path| match path {
        PATH => Some(Endpoint::Reply),
        COUNT_TOKENS_PATH => Some(Endpoint::Count),
        _ => None,
    },
    assign: request::assign,
    body: |request, slots| request::encode(request, slots, true),
    decode: |_, body| request::decode(body),
    reply_options: |_, body| reply_options(body),
    tool: |_, _, _| None,
    encode_reply: |reply, model| reply::encode(reply, &model.name),
    decode_reply: reply::decode,
    events: |whole, _| stream::events(whole),
    assemble: stream::assemble,
    reply_id: "msg_",
    overflow: |prompt, window| {
        let message = format!("prompt is too long: {prompt} tokens > {window} maximum");
        overflow("invalid_request_error", message)
    },
    rules: Rules {
        headers: request::headers,
        max_tokens: |request| Some(request::max_tokens(request)),
        edits_among: request::edits_among,
        carried_edit: |edit| Some(edit.clone()),
        carries_threads: true,
        shows_compaction: |_| true,
        shows_trigger: |_, last| last,
        shows_summaries: true,
        has_tool_errors: true,
        results_due: ResultsDue::NextMessage,
        // Bedrock requires this, Anthropic no longer
        // (<https://github.com/anthropics/anthropic-sdk-typescript/issues/622>).
        begins_with_user: true,
        requires_max_tokens: true,
        ..Rules::DEFAULT
    },
    count: Some(CountFormat {
        path: |_| COUNT_TOKENS_PATH.into(),
        body: |request, slots| request::encode(request, slots, false),
        reply: |tokens, original| match original {
            Some(original) => {
                let edits = json!({"original_input_tokens": original});
                json!({"input_tokens": tokens, "context_management": edits})
            }
            None => json!({"input_tokens": tokens}),
        },
        field: "input_tokens",
    }),
};

fn reply_options(body: &[u8]) -> Result<ReplyOptions, String> {
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
