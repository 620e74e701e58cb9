//! OpenAI Responses: replies.

use std::borrow::Cow;

use ctxbench_core::block::Role;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::model::Model;
use ctxbench_core::request::{Reply, StopReason};
use serde::Deserialize;

use super::request::{InputItem, contents, joined};
use crate::prompt::{Content, Item, Prompt};
use crate::wire::WireError;
use crate::wire::json::{self, field, list, number, opt, or_empty, raw, string};
use crate::wire::openai::{Names, OpenAiUsage, done, reply, reported_usage, usage};

const NAMES: Names = Names {
    prompt: "input_tokens",
    details: "input_tokens_details",
    output: "output_tokens",
    output_details: "output_tokens_details",
};

/// Encodes a reply.
pub(super) fn encode(reply: &Reply, model: &Model) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let o = &mut out;
    let reason = match reply.stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => Some("max_output_tokens"),
        StopReason::Refusal => Some("content_filter"),
        _ => None,
    };
    field(o, "{\"id\":", reply.id.as_deref().unwrap_or("resp_ctxbench"));
    raw(o, ",\"object\":\"response\",\"created_at\":0,\"model\":");
    string(o, &model.name);
    match reason {
        Some(r) => {
            field(o, ",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":", r);
            o.push(b'}');
        }
        None => raw(o, ",\"status\":\"completed\",\"incomplete_details\":null"),
    }
    raw(o, ",\"error\":null,\"output\":[");
    let of = reply.id.as_deref().unwrap_or("resp_ctxbench").trim_start_matches("resp_");
    list(o, reply.parts.iter().enumerate(), |o, (i, p)| {
        // Clients merge items by id, so ids are unique across replies.
        field(o, "{\"id\":", &format!("item_{of}_{i}"));
        o.push(b',');
        match p {
            Part::Reasoning { text, encrypted } => {
                raw(o, "\"type\":\"reasoning\",\"summary\":[");
                if !text.is_empty() {
                    field(o, "{\"type\":\"summary_text\",\"text\":", text);
                    o.push(b'}');
                }
                o.push(b']');
                if let Some(e) = encrypted {
                    field(o, ",\"encrypted_content\":", e);
                }
            }
            Part::Call(ToolCall { id, name, arguments }) => {
                field(o, "\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":", id);
                field(o, ",\"name\":", name);
                field(o, ",\"arguments\":", arguments);
            }
            Part::Compaction(s) => field(
                o,
                "\"type\":\"compaction\",\"encrypted_content\":",
                s.as_deref().unwrap_or(""),
            ),
            _ => {
                raw(
                    o,
                    "\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[",
                );
                field(o, "{\"type\":\"output_text\",\"annotations\":[],\"text\":", p.text());
                raw(o, "}]");
            }
        }
        o.push(b'}');
    });
    o.push(b']');
    usage(o, &reported_usage(reply), &NAMES, model);
    o.push(b'}');
    out
}

/// Encodes the response of `/responses/compact`: the user's messages of the prompt, then the reply's
/// compaction, which covers earlier ones.
pub(super) fn encode_compacted(prompt: &Prompt, reply: &Reply, model: &Model) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let o = &mut out;
    field(o, "{\"id\":", reply.id.as_deref().unwrap_or("resp_ctxbench"));
    raw(o, ",\"object\":\"response.compaction\",\"created_at\":0,\"output\":[");
    let kept: Vec<&Item> = prompt
        .items
        .iter()
        .filter(|i| {
            i.role == Role::User && matches!(*i.content, Content::Text(_) | Content::Image { .. })
        })
        .collect();
    for group in kept.chunk_by(|a, b| a.message == b.message) {
        raw(o, "{\"id\":\"msg_");
        number(o, group[0].message as u64);
        raw(o, "\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"user\",\"content\":[");
        list(o, group, |o, item| match &*item.content {
            Content::Image { url, .. } => {
                field(o, "{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":", url);
                o.push(b'}');
            }
            _ => {
                field(o, "{\"type\":\"input_text\",\"text\":", item.text());
                o.push(b'}');
            }
        });
        raw(o, "]},");
    }
    let summary = reply.compaction().map_or("", |s| s);
    field(o, "{\"id\":\"cmp_0\",\"type\":\"compaction\",\"encrypted_content\":", summary);
    raw(o, "}]");
    usage(o, &reported_usage(reply), &NAMES, model);
    o.push(b'}');
    out
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    output: Vec<InputItem<'a>>,
    #[serde(borrow)]
    incomplete_details: Option<Incomplete<'a>>,
    usage: Option<OpenAiUsage>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
}

/// Decodes a reply.
pub(super) fn decode(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: Response<'_> = json::parse(bytes)?;
    let missing = |field| WireError::Missing { field, in_what: "reply item" };
    let mut parts = Vec::with_capacity(body.output.len());
    for e in body.output {
        parts.push(match &*e.kind {
            "message" => {
                parts.extend(contents(e.content)?.into_iter().filter_map(text_part));
                continue;
            }
            "reasoning" => {
                Part::Reasoning { text: joined(e.summary), encrypted: opt(e.encrypted_content) }
            }
            "function_call" => Part::Call(ToolCall {
                id: e.call_id.ok_or(missing("call_id"))?.0,
                name: e.name.ok_or(missing("name"))?.0,
                arguments: or_empty(e.arguments),
            }),
            "custom_tool_call" => Part::Call(ToolCall {
                id: e.call_id.ok_or(missing("call_id"))?.0,
                name: e.name.ok_or(missing("name"))?.0,
                arguments: or_empty(e.input),
            }),
            "compaction" => Part::Compaction(opt(e.encrypted_content)),
            other => {
                let known = "message, reasoning, function_call, custom_tool_call, compaction";
                return Err(WireError::Unsupported {
                    what: "reply item",
                    value: other.into(),
                    known,
                });
            }
        });
    }
    let reason = body.incomplete_details.and_then(|d| d.reason);
    let only_compaction =
        !parts.is_empty() && parts.iter().all(|p| matches!(p, Part::Compaction(_)));
    let stop = match reason.as_deref() {
        Some("content_filter") => StopReason::Refusal,
        Some(_) => StopReason::MaxTokens,
        None if only_compaction => StopReason::Compaction,
        None => done(&parts),
    };
    Ok(reply(parts, body.usage, stop))
}

fn text_part(c: Content) -> Option<Part> {
    match c {
        Content::Text(t) => Some(Part::Text(t)),
        _ => None,
    }
}
