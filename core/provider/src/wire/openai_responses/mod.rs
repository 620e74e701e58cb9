//! OpenAI Responses: `POST /v1/responses`.

mod layout;
mod reply;
mod request;
mod stream;
mod whole;

use ctxbench_core::block::Block;
use ctxbench_core::model::Model;
use ctxbench_core::request::{ModelError, Reply, Request, ServerEdit};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::plan::Slot;
use super::{Api, Endpoint, ReplyOptions, StreamEvent, WireError, WireFormat, openai};
use crate::prompt::Prompt;

const PATH: &str = "/v1/responses";
const COMPACT_PATH: &str = "/v1/responses/compact";

pub(super) struct OpenaiResponses;

impl WireFormat for OpenaiResponses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }
    fn api(&self) -> Api {
        &openai::OPENAI
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
    fn tool(&self, name: &Value, description: Value, schema: &Value) -> Option<Value> {
        let function = json!({
            "type": "function", "name": name, "description": description, "parameters": schema,
        });
        Some(function)
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
    fn encode_compacted(&self, prompt: &Prompt, reply: &Reply, model: &Model) -> Vec<u8> {
        reply::encode_compacted(prompt, reply, model)
    }
    fn events(&self, whole: &[u8], _usage: bool) -> serde_json::Result<Vec<StreamEvent>> {
        stream::events(whole)
    }
    fn assemble(&self, events: &[String]) -> Option<Vec<u8>> {
        whole::assemble(events)
    }
    fn reply_id(&self, number: u64) -> String {
        format!("resp_{number:04}")
    }
    fn overflow(&self, _prompt: u64, _window: u64) -> ModelError {
        openai::overflow(
            "Your input exceeds the context window of this model. Please adjust your input and try \
             again."
                .to_string(),
        )
    }

    fn head_fields(&self) -> &'static [&'static str] {
        &["instructions", "tools"]
    }
    fn conversation_field(&self) -> &'static str {
        "input"
    }
}
