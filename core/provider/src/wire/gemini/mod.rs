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
mod stream;
#[cfg(test)]
mod tests;

use ctxbench_core::block::Media;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;

use super::format::{
    CountFormat, Endpoint, ReplyOptions, ResultsDue, Rules, WireError, WireFormat, overflow,
};
use super::plan;
use super::slot::{PDF, data_url};
use crate::prompt::Prompt;
use path::Method;

pub(super) use api::GOOGLE;

pub(super) static WIRE: WireFormat = WireFormat {
    name: "gemini",
    api: &GOOGLE,
    path: |model| path::method_path(model, Method::Generate),
    endpoint: |path| match path::read(path)?.1 {
        Method::Generate | Method::Stream => Some(Endpoint::Reply),
        Method::Count => Some(Endpoint::Count),
    },
    assign: plan::turns,
    body: request::encode,
    decode,
    reply_options,
    // `parametersJsonSchema` allows any JSON Schema, the older `parameters` a subset of OpenAPI's.
    tool: |name, description, schema| {
        let declared =
            json!({"name": name, "description": description, "parametersJsonSchema": schema});
        Some(declared)
    },
    encode_reply: |reply, model| reply::encode(reply, &model.name),
    decode_reply: reply::decode,
    events: |whole, _| stream::events(whole),
    assemble: stream::assemble,
    reply_id: "response-",
    overflow: |prompt, window| {
        let message = format!(
            "The input token count ({prompt}) exceeds the maximum number of tokens allowed ({window})."
        );
        overflow("INVALID_ARGUMENT", message)
    },
    rules: Rules {
        has_tool_errors: true,
        // Inline files have a media type.
        carried_media: |media| {
            let media_type = match data_url(&media.url) {
                Some((t, _)) => t,
                None if media.media_type == PDF => PDF,
                None => "",
            };
            Media { media_type: media_type.into(), url: media.url.clone(), name: None }
        },
        refuses: calls::out_of_turn,
        results_due: ResultsDue::NextMessage,
        // Reported in <https://github.com/NousResearch/hermes-agent/issues/55427>.
        begins_with_user: true,
        conversation_field: "contents",
        ..Rules::DEFAULT
    },
    count: Some(CountFormat {
        path: |model| path::method_path(model, Method::Count),
        body: request::encode_count,
        reply: |tokens, _| json!({"totalTokens": tokens}),
        field: "totalTokens",
    }),
};

fn decode(path: &str, body: &[u8]) -> Result<Prompt, WireError> {
    let known = path::read(path);
    let model = known.as_ref().map_or("", |(model, _)| model);
    match known {
        Some((_, Method::Count)) => request::decode_count(model, body),
        _ => request::decode(model, body),
    }
}

fn reply_options(path: &str, body: &[u8]) -> Result<ReplyOptions, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct GenerateParams {
        #[serde(alias = "generation_config")]
        generation_config: Option<Config>,
        #[serde(alias = "cached_content")]
        cached_content: Option<IgnoredAny>,
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
    if given.cached_content.is_some() {
        return Err("this server stores no contents: send them instead of `cachedContent`".into());
    }
    let config = given.generation_config.unwrap_or_default();
    if config.candidate_count.is_some_and(|n| n != 1) {
        return Err("this server answers with one candidate: leave `candidateCount` out".into());
    }
    let stream = matches!(path::read(path), Some((_, Method::Stream)));
    let thinking = config.thinking_config.and_then(|t| t.include_thoughts) == Some(true);
    Ok(ReplyOptions { stream, thinking, usage: true })
}
