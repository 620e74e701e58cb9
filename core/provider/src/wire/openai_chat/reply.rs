//! OpenAI Chat Completions: replies.

use std::borrow::Cow;

use ctxbench_core::block::Role;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::model::Model;
use ctxbench_core::request::{Reply, StopReason};
use serde::Deserialize;

use super::request::ChatMessage;
use crate::prompt::Content;
use crate::wire::WireError;
use crate::wire::json::{self, field, list, raw, string};
use crate::wire::openai::{Names, OpenAiUsage, done, reply, reported_usage, usage};

const NAMES: Names = Names {
    prompt: "prompt_tokens",
    details: "prompt_tokens_details",
    output: "completion_tokens",
    output_details: "completion_tokens_details",
};

/// Encodes a reply: thinking, all texts joined by blank lines, calls.
pub(super) fn encode(reply: &Reply, model: &Model) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let o = &mut out;
    let finish = match reply.stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => "length",
        StopReason::Refusal => "content_filter",
        StopReason::ToolUse => "tool_calls",
        _ if reply.has_calls() => "tool_calls",
        _ => "stop",
    };
    field(o, "{\"id\":", reply.id.as_deref().unwrap_or("chatcmpl_ctxbench"));
    raw(o, ",\"object\":\"chat.completion\",\"created\":0,\"model\":");
    string(o, &model.name);
    field(o, ",\"choices\":[{\"index\":0,\"finish_reason\":", finish);
    raw(o, ",\"message\":{\"role\":\"assistant\",\"content\":");
    match reply.text() {
        Some(t) => string(o, &t),
        None => raw(o, "null"),
    }
    let thinking = reply.parts.iter().find_map(|p| match p {
        Part::Reasoning { text, encrypted } => Some((text, encrypted)),
        _ => None,
    });
    if let Some((text, encrypted)) = thinking {
        field(o, ",\"reasoning_content\":", text);
        if let Some(e) = encrypted {
            field(o, ",\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":", e);
            raw(o, "}]");
        }
    }
    if reply.has_calls() {
        raw(o, ",\"tool_calls\":[");
        list(o, reply.calls(), |o, ToolCall { id, name, arguments }| {
            field(o, "{\"type\":\"function\",\"id\":", id);
            field(o, ",\"function\":{\"name\":", name);
            field(o, ",\"arguments\":", arguments);
            raw(o, "}}");
        });
        o.push(b']');
    }
    raw(o, "}}]");
    usage(o, &reported_usage(reply), &NAMES, model);
    o.push(b'}');
    out
}

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    usage: Option<OpenAiUsage>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: ChatMessage<'a>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

/// Decodes a reply.
pub(super) fn decode(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: Completion<'_> = json::parse(bytes)?;
    let choice = body
        .choices
        .into_iter()
        .next()
        .ok_or(WireError::Missing { field: "choices[0]", in_what: "reply" })?;
    let parts: Vec<Part> =
        choice.message.contents(Role::Assistant)?.into_iter().filter_map(chat_part).collect();
    let stop = match choice.finish_reason.as_deref() {
        Some("length") => StopReason::MaxTokens,
        Some("content_filter") => StopReason::Refusal,
        _ => done(&parts),
    };
    Ok(reply(parts, body.usage, stop))
}

fn chat_part(c: Content) -> Option<Part> {
    match c {
        Content::Text(t) => Some(Part::Text(t)),
        Content::Reasoning { text, encrypted } => Some(Part::Reasoning { text, encrypted }),
        Content::Call { id, name, arguments } => Some(Part::Call(ToolCall { id, name, arguments })),
        _ => None,
    }
}
