//! OpenAI Chat Completions: replies.

use std::borrow::Cow;

use ctxbench_core::{Model, Part, Reply, Role, StopReason};
use serde::{Deserialize, Serialize};

use super::request::{ChatCall, ChatMessage};
use crate::prompt::reply_part;
use crate::wire::format::WireError;
use crate::wire::json::{self, OneOrMany, Text};
use crate::wire::openai::{Names, OpenAiUsage, done, encoded_usage, reply, reported_usage};

const NAMES: Names =
    ["prompt_tokens", "prompt_tokens_details", "completion_tokens", "completion_tokens_details"];

#[derive(Deserialize, Serialize)]
struct Completion<'a, U> {
    #[serde(skip_deserializing)]
    id: &'a str,
    #[serde(skip_deserializing)]
    object: &'static str,
    #[serde(skip_deserializing)]
    created: u64,
    #[serde(skip_deserializing)]
    model: &'a str,
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<U>,
}

#[derive(Deserialize, Serialize)]
struct Choice<'a> {
    #[serde(skip_deserializing)]
    index: u64,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
    #[serde(borrow)]
    message: ChatMessage<'a>,
}

/// Encodes a reply: thinking, all texts joined by blank lines, calls.
pub(super) fn encode(reply: &Reply, model: &Model) -> Vec<u8> {
    let finish = match reply.stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => "length",
        StopReason::Refusal => "content_filter",
        StopReason::ToolUse => "tool_calls",
        _ if reply.has_calls() => "tool_calls",
        _ => "stop",
    };
    let thinking = reply.parts.iter().find_map(|p| match p {
        Part::Reasoning { text, encrypted } => Some((Text::Plain(text), encrypted.as_deref())),
        _ => None,
    });
    let text = reply.text().map(|t| OneOrMany::One(Text::Shared(t.into())));
    let calls = reply.calls().map(|c| ChatCall::new(&c.id, &c.name, Text::Plain(&c.arguments)));
    json::bytes(&Completion {
        id: reply.id.as_deref().unwrap_or("chatcmpl_ctxbench"),
        object: "chat.completion",
        created: 0,
        model: &model.name,
        choices: vec![Choice {
            index: 0,
            finish_reason: Some(finish.into()),
            message: ChatMessage::of_reply(thinking, text, calls.collect()),
        }],
        usage: Some(encoded_usage(reported_usage(reply), NAMES, model)),
    })
}

pub(super) fn decode(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: Completion<'_, OpenAiUsage> = json::parse(bytes)?;
    let choice = body
        .choices
        .into_iter()
        .next()
        .ok_or(WireError::Missing { field: "choices[0]", in_what: "reply" })?;
    let parts: Vec<Part> =
        choice.message.contents(Role::Assistant)?.into_iter().filter_map(reply_part).collect();
    let stop = match choice.finish_reason.as_deref() {
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        _ => done(&parts),
    };
    Ok(reply(parts, body.usage, stop))
}
