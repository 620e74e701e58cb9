//! OpenAI Chat Completions: `POST /v1/chat/completions`.

mod layout;
mod reply;
mod request;
mod stream;

use ctxbench_core::model::Model;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request};
use serde_json::{Value, json};

use super::plan::Slot;
use super::{Endpoint, Event, Family, ResultsDue, WireError, WireFormat, errors, openai};
use crate::prompt::Prompt;

const PATH: &str = "/v1/chat/completions";

pub(super) struct OpenaiChat;

impl WireFormat for OpenaiChat {
    fn family(&self) -> Family {
        Family::Openai
    }
    fn lay_out(&self, slots: &mut [Slot], request: &Request) {
        layout::lay_out(slots, request);
    }
    fn encode(&self, request: &Request, slots: &[Slot]) -> Vec<u8> {
        request::encode(request, slots)
    }
    fn decode(&self, _path: &str, body: &[u8]) -> Result<Prompt, WireError> {
        request::decode(body)
    }
    fn encode_reply(&self, reply: &Reply, model: &str) -> Vec<u8> {
        reply::encode(reply, model)
    }
    fn decode_reply(&self, body: &[u8]) -> Result<Reply, WireError> {
        reply::decode(body)
    }
    fn error_code(&self, kind: ErrorKind) -> &'static str {
        openai::error_code(kind)
    }
    fn error_body(&self, status: u16, code: &str, message: &str) -> Value {
        openai::error_body(status, code, message)
    }
    fn code_of(&self, detail: errors::Detail) -> Option<String> {
        openai::code_of(detail)
    }
    fn unknown_model(&self, name: &str) -> (&'static str, String) {
        openai::unknown_model(name)
    }
    fn unpaired(&self, call: bool, id: &str) -> String {
        openai::unpaired(call, id)
    }
    fn model(&self, model: &Model, _window: Option<u64>) -> Value {
        openai::model(model)
    }
    fn model_list(&self, all: Vec<Value>) -> Value {
        openai::model_list(all)
    }
    fn reply_id(&self, number: u64) -> String {
        format!("chatcmpl_{number:04}")
    }

    fn path(&self, _model: &str) -> String {
        PATH.into()
    }
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        (path == PATH).then_some(Endpoint::Reply)
    }
    fn tool(&self, name: &Value, description: Value, schema: &Value) -> Option<Value> {
        Some(
            json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}}),
        )
    }
    fn events(&self, whole: &[u8], usage: bool) -> serde_json::Result<Vec<Event>> {
        stream::events(whole, usage)
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
