//! OpenAI Responses: `POST /v1/responses`.

mod layout;
mod reply;
mod request;
mod stream;

use ctxbench_core::block::Block;
use ctxbench_core::model::Model;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request, ServerEdit};
use serde_json::{Value, json};

use super::plan::Slot;
use super::{Endpoint, Event, Family, ServerParams, WireError, WireFormat, errors, openai};
use crate::prompt::Prompt;

const PATH: &str = "/v1/responses";
const COMPACT_PATH: &str = "/v1/responses/compact";

pub(super) struct OpenaiResponses;

impl WireFormat for OpenaiResponses {
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
        format!("resp_{number:04}")
    }

    fn path(&self, _model: &str) -> String {
        PATH.into()
    }
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path {
            PATH => Some(Endpoint::Reply),
            COMPACT_PATH => Some(Endpoint::Compact),
            _ => None,
        }
    }
    fn tool(&self, name: &Value, description: Value, schema: &Value) -> Option<Value> {
        Some(
            json!({"type": "function", "name": name, "description": description, "parameters": schema}),
        )
    }
    fn carried_edit(&self, edit: &ServerEdit) -> Option<ServerEdit> {
        match edit {
            ServerEdit::Compact { trigger, .. } => {
                Some(ServerEdit::Compact { trigger: *trigger, instructions: None, pause: false })
            }
            _ => None,
        }
    }
    fn shows_compaction(&self, block: &Block) -> bool {
        block.opaque.is_some()
    }
    fn shows_trigger(&self, block: &Block, _last: bool) -> bool {
        block.text.is_empty()
    }
    fn encode_compacted(&self, prompt: &Prompt, reply: &Reply, model: &str) -> Vec<u8> {
        reply::encode_compacted(prompt, reply, model)
    }
    fn events(&self, whole: &[u8], _usage: bool) -> serde_json::Result<Vec<Event>> {
        stream::events(whole)
    }
    fn overflow(&self, _prompt: u64, _window: u64) -> ModelError {
        openai::overflow(
            "Your input exceeds the context window of this model. Please adjust your input and try \
             again."
                .to_string(),
        )
    }
    fn conversation_field(&self) -> &'static str {
        "input"
    }
    fn thinks(&self, given: &ServerParams) -> bool {
        given.reasoning.is_some()
    }
    fn not_kept(&self, given: &ServerParams) -> Option<&'static str> {
        (given.previous_response_id.is_some() || given.conversation.is_some()).then_some(
            "this server keeps no responses: send the whole `input` instead of \
             `previous_response_id` or `conversation`",
        )
    }
}
