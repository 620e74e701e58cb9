//! OpenAI Chat Completions: `POST /v1/chat/completions`.

mod reply;
mod request;
mod stream;

use serde_json::json;

use super::format::{Endpoint, ResultsDue, Rules, WireFormat, overflow};
use super::openai;

const PATH: &str = "/v1/chat/completions";

pub(super) static WIRE: WireFormat = WireFormat {
    name: "openai-chat",
    api: &openai::OPENAI,
    path: |_| PATH.into(),
    endpoint: |path| (path == PATH).then_some(Endpoint::Reply),
    assign: request::assign,
    body: request::encode,
    decode: |_, body| request::decode(body),
    reply_options: |_, body| openai::reply_options(body),
    tool: |name, description, schema| {
        let function = json!({"name": name, "description": description, "parameters": schema});
        Some(json!({"type": "function", "function": function}))
    },
    encode_reply: reply::encode,
    decode_reply: reply::decode,
    events: stream::events,
    assemble: stream::assemble,
    reply_id: "chatcmpl_",
    overflow: |prompt, window| {
        let message = format!(
            "This model's maximum context length is {window} tokens; the messages have {prompt} \
             tokens."
        );
        overflow("context_length_exceeded", message)
    },
    rules: Rules {
        tool_name: |tool| tool["function"]["name"].as_str(),
        results_due: ResultsDue::BeforeUser,
        always_thinks: true,
        ..Rules::DEFAULT
    },
    count: None,
};
