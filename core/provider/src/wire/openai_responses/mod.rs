//! OpenAI Responses: `POST /v1/responses`.

mod reply;
mod request;
mod stream;

use ctxbench_core::request::ServerEdit;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::format::{CountFormat, Endpoint, ReplyOptions, Rules, WireFormat, overflow};
use super::openai;

const PATH: &str = "/v1/responses";
const COMPACT_PATH: &str = "/v1/responses/compact";
const COUNT_PATH: &str = "/v1/responses/input_tokens";

pub(super) static WIRE: WireFormat = WireFormat {
    name: "openai-responses",
    api: &openai::OPENAI,
    path: |_| PATH.into(),
    endpoint: |path| match path {
        PATH => Some(Endpoint::Reply),
        COMPACT_PATH => Some(Endpoint::Compact),
        COUNT_PATH => Some(Endpoint::Count),
        _ => None,
    },
    assign: request::assign,
    body: request::encode,
    decode: |_, body| request::decode(body),
    reply_options: |_, body| reply_options(body),
    tool: |name, description, schema| {
        let function = json!({
            "type": "function", "name": name, "description": description, "parameters": schema,
        });
        Some(function)
    },
    encode_reply: reply::encode,
    decode_reply: reply::decode,
    events: |whole, _| stream::events(whole),
    assemble: stream::assemble,
    reply_id: "resp_",
    overflow: |_, _| {
        let message = "Your input exceeds the context window of this model. Please adjust your \
                       input and try again.";
        overflow("context_length_exceeded", message.into())
    },
    rules: Rules {
        carried_edit: |edit| match edit {
            ServerEdit::Compact { trigger, .. } => Some(ServerEdit::compact(*trigger)),
            _ => None,
        },
        shows_compaction: |block| block.opaque.is_some(),
        shows_trigger: |block, _| block.text.is_empty(),
        encode_compacted: Some(reply::encode_compacted),
        conversation_field: "input",
        ..Rules::DEFAULT
    },
    // https://developers.openai.com/api/docs/guides/token-counting
    count: Some(CountFormat {
        path: |_| COUNT_PATH.into(),
        body: request::encode,
        reply: |tokens, _| json!({"object": "response.input_tokens", "input_tokens": tokens}),
        field: "input_tokens",
    }),
};

fn reply_options(body: &[u8]) -> Result<ReplyOptions, String> {
    #[derive(Deserialize)]
    struct Params {
        reasoning: Option<IgnoredAny>,
        previous_response_id: Option<IgnoredAny>,
        conversation: Option<IgnoredAny>,
    }
    let given: Params = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    if given.previous_response_id.is_some() || given.conversation.is_some() {
        return Err("this server keeps no responses: send the whole `input` instead of \
                    `previous_response_id` or `conversation`"
            .to_string());
    }
    Ok(ReplyOptions { thinking: given.reasoning.is_some(), ..openai::reply_options(body)? })
}
