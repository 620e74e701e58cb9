//! OpenAI Chat Completions: `POST /v1/chat/completions`.

mod layout;
mod reply;
mod request;
mod stream;
mod whole;

use ctxbench_core::model::Model;
use ctxbench_core::request::{ModelError, Reply, Request};
use serde_json::{Value, json};

use super::plan::Slot;
use super::{Api, Endpoint, ReplyOptions, ResultsDue, StreamEvent, WireError, WireFormat, openai};
use crate::prompt::Prompt;

const PATH: &str = "/v1/chat/completions";

pub(super) struct OpenaiChat;

impl WireFormat for OpenaiChat {
    fn name(&self) -> &'static str {
        "openai-chat"
    }
    fn api(&self) -> Api {
        &openai::OPENAI
    }
    fn path(&self, _model: &str) -> String {
        PATH.into()
    }
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        (path == PATH).then_some(Endpoint::Reply)
    }

    fn assign(&self, slots: &mut [Slot], request: &Request) {
        layout::assign(slots, request);
    }
    fn body(&self, request: &Request, slots: &[Slot]) -> Vec<u8> {
        request::encode(request, slots)
    }
    fn decode(&self, _path: &str, body: &[u8]) -> Result<Prompt, WireError> {
        request::decode(body)
    }
    fn reply_options(&self, _path: &str, body: &[u8]) -> Result<ReplyOptions, String> {
        openai::reply_options(body)
    }
    fn tool(&self, name: &Value, description: Value, schema: &Value) -> Option<Value> {
        let function = json!({"name": name, "description": description, "parameters": schema});
        Some(json!({"type": "function", "function": function}))
    }
    fn tool_name<'t>(&self, tool: &'t Value) -> Option<&'t str> {
        tool["function"]["name"].as_str()
    }

    fn head_fields(&self) -> &'static [&'static str] {
        &["tools"]
    }
    fn encode_reply(&self, reply: &Reply, model: &Model) -> Vec<u8> {
        reply::encode(reply, model)
    }
    fn decode_reply(&self, body: &[u8]) -> Result<Reply, WireError> {
        reply::decode(body)
    }
    #[cfg(test)]
    fn carried_reply(&self, reply: Reply) -> Reply {
        openai::carried_reply(reply)
    }
    fn events(&self, whole: &[u8], usage: bool) -> serde_json::Result<Vec<StreamEvent>> {
        stream::events(whole, usage)
    }
    fn assemble(&self, events: &[String]) -> Option<Vec<u8>> {
        whole::assemble(events)
    }
    fn reply_id(&self, number: u64) -> String {
        format!("chatcmpl_{number:04}")
    }
    fn overflow(&self, prompt: u64, window: u64) -> ModelError {
        openai::overflow(format!(
            "This model's maximum context length is {window} tokens; the messages have {prompt} \
             tokens."
        ))
    }

    fn results_due(&self) -> ResultsDue {
        ResultsDue::BeforeUser
    }
    fn always_thinks(&self) -> bool {
        true
    }
}
