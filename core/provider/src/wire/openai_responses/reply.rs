//! OpenAI Responses: replies.

use std::borrow::Cow;

use ctxbench_core::{BlockKind, Model, Part, Reply, Role, StopReason, ToolCall};
use serde::{Deserialize, Serialize};

use super::request::{ContentPart, InputItem, contents};
use crate::prompt::{Item, Prompt, reply_part};
use crate::wire::format::WireError;
use crate::wire::json::{self, Text};
use crate::wire::openai::{Names, OpenAiUsage, done, encoded_usage, reply, reported_usage};

const NAMES: Names =
    ["input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details"];

/// The id of replies without one.
const NO_ID: &str = "resp_ctxbench";

#[derive(Default, Deserialize, Serialize)]
struct Response<'a, U> {
    #[serde(skip_deserializing)]
    id: &'a str,
    #[serde(skip_deserializing)]
    object: &'static str,
    #[serde(skip_deserializing)]
    created_at: u64,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    /// A null is encoded, an absent field is not.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    incomplete_details: Option<Option<Incomplete<'a>>>,
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    error: Option<()>,
    #[serde(borrow)]
    output: Vec<InputItem<'a>>,
    usage: Option<U>,
}

#[derive(Deserialize, Serialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<Cow<'a, str>>,
}

pub(super) fn encode(reply: &Reply, model: &Model) -> Vec<u8> {
    let id = reply.id.as_deref().unwrap_or(NO_ID);
    let reason = match reply.stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => Some("max_output_tokens"),
        StopReason::Refusal => Some("content_filter"),
        _ => None,
    };
    let of = id.trim_start_matches("resp_");
    let items = reply.parts.iter().enumerate().map(|(i, p)| item(format!("item_{of}_{i}"), p));
    json::bytes(&Response {
        id,
        object: "response",
        model: Some(&model.name),
        status: Some(if reason.is_some() { "incomplete" } else { "completed" }),
        incomplete_details: Some(reason.map(|r| Incomplete { reason: Some(r.into()) })),
        error: Some(()),
        output: items.collect(),
        usage: Some(encoded_usage(reported_usage(reply), NAMES, model)),
        ..Response::default()
    })
}

/// Returns the item of a part; `id` is unique across replies, since clients merge items by id.
fn item(id: String, p: &Part) -> InputItem<'_> {
    let (id, status) = (Some(id), Some("completed"));
    match p {
        Part::Reasoning { text, encrypted } => {
            InputItem { id, ..InputItem::reasoning(Text::Plain(text), encrypted.as_deref()) }
        }
        Part::Call(ToolCall { id: call, name, arguments }) => {
            InputItem { id, status, ..InputItem::call(call, name, Text::Plain(arguments)) }
        }
        Part::Compaction(s) => {
            InputItem { id, ..InputItem::compaction(s.as_deref().unwrap_or("")) }
        }
        p => {
            let text = ContentPart::text("output_text", p.text().into());
            let parts = vec![ContentPart { annotations: Some([]), ..text }];
            InputItem { id, status, ..InputItem::message(Role::Assistant, parts) }
        }
    }
}

/// Encodes the response of `/responses/compact`: the user's messages of the prompt, then the reply's
/// compaction, which covers earlier ones.
pub(super) fn encode_compacted(prompt: &Prompt, reply: &Reply, model: &Model) -> Vec<u8> {
    let is_kept = |i: &&Item| i.role == Role::User && (i.is_text() || i.kind == BlockKind::Image);
    let kept: Vec<&Item> = prompt.items.iter().filter(is_kept).collect();
    let part = |item: &&'_ Item| match &item.media {
        Some(m) => ContentPart {
            detail: Some("auto"),
            ..ContentPart::image(Text::Shared(m.url.as_str().into()))
        },
        None => ContentPart::text("input_text", Text::Shared(item.text().into())),
    };
    let message = |group: &[&Item]| InputItem {
        id: Some(format!("msg_{}", group[0].message)),
        status: Some("completed"),
        ..InputItem::message(Role::User, group.iter().map(part).collect())
    };
    let summary = InputItem {
        id: Some("cmp_0".into()),
        ..InputItem::compaction(reply.compaction().map_or("", |s| s))
    };
    let messages = kept.chunk_by(|a, b| a.message == b.message).map(message);
    json::bytes(&Response {
        id: reply.id.as_deref().unwrap_or(NO_ID),
        object: "response.compaction",
        output: messages.chain([summary]).collect(),
        usage: Some(encoded_usage(reported_usage(reply), NAMES, model)),
        ..Response::default()
    })
}

pub(super) fn decode(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: Response<'_, OpenAiUsage> = json::parse(bytes)?;
    let mut parts = Vec::with_capacity(body.output.len());
    for item in body.output {
        if item.kind == "message" {
            parts.extend(contents(item.content)?.into_iter().filter_map(reply_part));
            continue;
        }
        parts.extend(reply_part(item.into_content()?));
    }
    let reason = body.incomplete_details.flatten().and_then(|d| d.reason);
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
