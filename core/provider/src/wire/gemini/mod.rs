//! Gemini: `POST /v1beta/models/{model}:generateContent` and its siblings, on the Gemini API and
//! under the longer paths of Vertex.
//!
//! Facts: docs/sources/providers.md, section 5.

mod api;
mod calls;
mod part;
mod path;
mod reply;
mod request;
mod stored;
mod stream;
#[cfg(test)]
mod tests;

use ctxbench_core::block::Media;
use ctxbench_core::model::Model;
use ctxbench_core::request::{ErrorKind, ModelError, Reply, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use super::plan::{self, PDF, Slot, data_url, plan};
use super::{
    Api, Encoded, Endpoint, ReplyOptions, ResultsDue, StoreRequest, StoredContents, StreamEvent,
    WireError, WireFormat,
};
use crate::prompt::{Item, Prompt};
use calls::OpenCalls;
use path::Method;

pub(super) use api::GOOGLE;

pub(super) struct Gemini;

impl WireFormat for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }
    fn api(&self) -> Api {
        &GOOGLE
    }
    fn path(&self, model: &str) -> String {
        path::method_path(model, Method::Generate)
    }
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        if stored::is(path) {
            return Some(Endpoint::Store);
        }
        match path::read(path)?.1 {
            Method::Generate | Method::Stream => Some(Endpoint::Reply),
            Method::Count => Some(Endpoint::Count),
        }
    }

    fn assign(&self, slots: &mut [Slot], request: &Request) {
        plan::turns(slots, request);
    }
    fn body(&self, request: &Request, slots: &[Slot]) -> Vec<u8> {
        request::encode(request, slots)
    }
    fn decode(&self, path: &str, body: &[u8]) -> Result<Prompt, WireError> {
        self.decode_rest(path, body, &[])
    }
    /// A result without id belongs to the first open call with its name.
    fn has_independent_messages(&self) -> bool {
        false
    }
    fn decode_rest(
        &self,
        path: &str,
        body: &[u8],
        first: &[Vec<Item>],
    ) -> Result<Prompt, WireError> {
        let known = path::read(path);
        let model = known.as_ref().map_or("", |(model, _)| model);
        match known {
            Some((_, Method::Count)) => request::decode_count(model, body),
            _ => request::decode(model, body, OpenCalls::collect(first)),
        }
    }
    fn reply_options(&self, path: &str, body: &[u8]) -> Result<ReplyOptions, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct GenerateParams {
            #[serde(alias = "generation_config")]
            generation_config: Option<Config>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Config {
            #[serde(alias = "candidate_count")]
            candidate_count: Option<u64>,
            #[serde(alias = "thinking_config")]
            thinking_config: Option<Thinking>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Thinking {
            #[serde(alias = "include_thoughts")]
            include_thoughts: Option<bool>,
        }
        let given: GenerateParams = serde_json::from_slice(body).map_err(|e| e.to_string())?;
        let config = given.generation_config.unwrap_or_default();
        if config.candidate_count.is_some_and(|n| n != 1) {
            return Err("this server answers with one candidate: leave `candidateCount` out".into());
        }
        let stream = matches!(path::read(path), Some((_, Method::Stream)));
        let thinking = config.thinking_config.and_then(|t| t.include_thoughts) == Some(true);
        Ok(ReplyOptions { stream, thinking, usage: true })
    }
    /// `parametersJsonSchema` allows any JSON Schema, the older `parameters` a subset of OpenAPI's.
    fn tool(&self, name: &Value, description: Value, schema: &Value) -> Option<Value> {
        let declared =
            json!({"name": name, "description": description, "parametersJsonSchema": schema});
        Some(declared)
    }
    fn has_tool_errors(&self) -> bool {
        true
    }
    /// Inline files have a media type.
    fn carried_media(&self, media: &Media) -> Media {
        let media_type = match data_url(&media.url) {
            Some((t, _)) => t,
            None if media.media_type == PDF => PDF,
            None => "",
        };
        Media { media_type: media_type.into(), url: media.url.clone(), name: None }
    }

    fn encode_reply(&self, reply: &Reply, model: &Model) -> Vec<u8> {
        reply::encode(reply, &model.name)
    }
    fn decode_reply(&self, body: &[u8]) -> Result<Reply, WireError> {
        reply::decode(body)
    }
    #[cfg(test)]
    fn carried_reply(&self, reply: Reply) -> Reply {
        reply::carried(reply)
    }
    fn events(&self, whole: &[u8], _usage: bool) -> serde_json::Result<Vec<StreamEvent>> {
        stream::events(whole)
    }
    fn assemble(&self, events: &[String]) -> Option<Vec<u8>> {
        stream::assemble(events)
    }
    fn reply_id(&self, number: u64) -> String {
        format!("response-{number:04}")
    }
    fn overflow(&self, prompt: u64, window: u64) -> ModelError {
        let message = format!(
            "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window})."
        );
        let code = Some("INVALID_ARGUMENT".into());
        ModelError { kind: ErrorKind::Overflow, status: 400, code, message }
    }

    fn encode_count(&self, request: &Request) -> Option<Encoded> {
        let wire: &dyn WireFormat = self;
        let request = &Request { thread: None, ..request.clone() };
        let slots = plan(wire, request);
        let body = request::encode_count(request, &slots);
        let path = path::method_path(&request.model.name, Method::Count);
        Some(wire.encoded(request, path, body, &slots))
    }
    fn encode_count_reply(&self, tokens: u64, _original: Option<u64>) -> Vec<u8> {
        format!(r#"{{"totalTokens":{tokens}}}"#).into_bytes()
    }
    fn decode_count_reply(&self, body: &[u8]) -> Result<u64, WireError> {
        #[derive(Deserialize)]
        struct CountReply {
            #[serde(rename = "totalTokens")]
            total_tokens: u64,
        }
        Ok(super::json::parse::<CountReply>(body)?.total_tokens)
    }

    fn stored_name<'p>(&self, path: &'p str) -> Option<&'p str> {
        stored::name(path)
    }
    fn decode_store_request(&self, body: &[u8]) -> Result<StoreRequest, WireError> {
        stored::decode(body)
    }
    fn stored(&self, stored: &StoredContents) -> Value {
        stored::encode(stored)
    }
    fn stored_list(&self, all: Vec<Value>) -> Value {
        json!({"cachedContents": all})
    }

    fn results_due(&self) -> ResultsDue {
        ResultsDue::NextMessage
    }
    /// Reported in <https://github.com/NousResearch/hermes-agent/issues/55427>.
    fn begins_with_user(&self) -> bool {
        true
    }
    fn head_fields(&self) -> &'static [&'static str] {
        &["systemInstruction", "system_instruction", "tools"]
    }
    fn conversation_field(&self) -> &'static str {
        "contents"
    }
    fn refuses(&self, prompt: &Prompt) -> Option<String> {
        calls::out_of_turn(prompt)
    }
}
