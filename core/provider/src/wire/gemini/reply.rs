//! Gemini: replies. Thoughts are counted separately from candidates, cached tokens within the prompt.

use std::borrow::Cow;

use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::request::{Reply, StopReason, Usage};
use serde::Deserialize;

use super::calls::OpenCalls;
use super::part::{self, GeminiTurn, PartForm, PartKind, TEXT, THOUGHT};
use crate::prompt::Content;
use crate::wire::WireError;
use crate::wire::json::{self, Text, field, list, number, object, opt, raw, sane, string};
use crate::wire::openai::{done, reported_usage};

/// Finish reasons for a refusal.
const REFUSALS: [&str; 5] = ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"];

/// Encodes a reply.
pub(super) fn encode(reply: &Reply, model: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let o = &mut out;
    raw(o, "{\"candidates\":[{\"content\":{\"parts\":[");
    let parts: Vec<&Part> =
        reply.parts.iter().filter(|p| !matches!(p, Part::Compaction(_))).collect();
    let kinds: Vec<PartKind> = parts.iter().map(|p| kind(p)).collect();
    let forms = part::forms(&kinds).into_iter().enumerate();
    list(o, forms.filter(|(_, f)| *f != PartForm::Left), |o, (i, form)| {
        let signature = match form {
            PartForm::Signed(at) => sealed(parts[at]),
            _ => None,
        };
        open(o, parts[i]);
        part::close(o, signature);
    });
    let finish = match reply.stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => "MAX_TOKENS",
        StopReason::Refusal => "SAFETY",
        _ => "STOP",
    };
    field(o, "],\"role\":\"model\"},\"finishReason\":", finish);
    raw(o, ",\"index\":0}],\"usageMetadata\":");
    usage(o, &reported_usage(reply));
    field(o, ",\"modelVersion\":", model);
    if let Some(id) = &reply.id {
        field(o, ",\"responseId\":", id);
    }
    o.push(b'}');
    out
}

fn kind(p: &Part) -> PartKind {
    match p {
        Part::Reasoning { text, .. } => {
            PartKind::Thought { empty: text.is_empty(), sealed: sealed(p).is_some() }
        }
        _ => PartKind::Carrier,
    }
}

fn sealed(p: &Part) -> Option<&str> {
    match p {
        Part::Reasoning { encrypted, .. } => encrypted.as_deref().filter(|e| !e.is_empty()),
        _ => None,
    }
}

/// A part without its closing brace.
fn open(o: &mut Vec<u8>, p: &Part) {
    match p {
        Part::Call(ToolCall { id, name, arguments }) => {
            part::call(o, id, name, |o| object(o, arguments));
        }
        Part::Reasoning { text, .. } => {
            raw(o, THOUGHT);
            string(o, text);
        }
        _ => {
            raw(o, TEXT);
            string(o, p.text());
        }
    }
}

fn usage(o: &mut Vec<u8>, u: &Usage) {
    let fields = [
        ("{\"promptTokenCount\":", Some(u.prompt())),
        (",\"cachedContentTokenCount\":", Some(u.cache_read).filter(|n| *n > 0)),
        (",\"candidatesTokenCount\":", Some(u.output.saturating_sub(u.reasoning))),
        (",\"thoughtsTokenCount\":", Some(u.reasoning).filter(|n| *n > 0)),
        (",\"totalTokenCount\":", Some(u.total())),
    ];
    for (key, n) in fields {
        if let Some(n) = n {
            raw(o, key);
            number(o, n);
        }
    }
    o.push(b'}');
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiReply<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    #[serde(borrow)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(default)]
    usage_metadata: GeminiUsage,
    response_id: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<GeminiTurn<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

/// The reason why a prompt has no reply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GeminiUsage {
    prompt_token_count: u64,
    cached_content_token_count: u64,
    candidates_token_count: u64,
    thoughts_token_count: u64,
    total_token_count: Option<u64>,
}

impl GeminiUsage {
    fn usage(&self) -> Usage {
        let (prompt, cache_read) =
            (sane(self.prompt_token_count), sane(self.cached_content_token_count));
        let reasoning = sane(self.thoughts_token_count);
        let output = sane(self.candidates_token_count) + reasoning;
        Usage {
            input: prompt.saturating_sub(cache_read),
            output,
            reasoning,
            cache_read,
            reported_total: self.total_token_count.map(sane).filter(|t| *t != prompt + output),
            ..Usage::default()
        }
    }
}

/// Decodes a reply.
pub(super) fn decode(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: GeminiReply<'_> = json::parse(bytes)?;
    let blocked = body.prompt_feedback.and_then(|f| f.block_reason).is_some();
    let candidate = body.candidates.into_iter().next();
    if candidate.is_none() && !blocked {
        return Err(WireError::Missing { field: "candidates[0]", in_what: "reply" });
    }
    let (turn, finish) = candidate.map_or((None, None), |c| (c.content, c.finish_reason));
    let said = turn.map_or(Ok(Vec::new()), |t| t.contents(&mut OpenCalls::default()))?;
    let parts: Vec<Part> = said.into_iter().filter_map(reply_part).collect();
    let stop = match finish.as_deref() {
        Some("MAX_TOKENS") => StopReason::MaxTokens,
        Some(reason) if REFUSALS.contains(&reason) => StopReason::Refusal,
        _ if blocked => StopReason::Refusal,
        _ => done(&parts),
    };
    let usage = body.usage_metadata.usage();
    let id = opt(body.response_id);
    Ok(Reply { id, parts, usage, billed: usage, stop, ..Reply::default() })
}

fn reply_part(c: Content) -> Option<Part> {
    match c {
        Content::Text(t) => Some(Part::Text(t)),
        Content::Reasoning { text, encrypted } => Some(Part::Reasoning { text, encrypted }),
        Content::Call { id, name, arguments } => Some(Part::Call(ToolCall { id, name, arguments })),
        _ => None,
    }
}

/// Returns the part of a reply that the wire carries: one usage without cache writes, and no edits of the
/// provider.
#[cfg(test)]
pub(super) fn carried(mut reply: Reply) -> Reply {
    reply.parts.retain(|p| !matches!(p, Part::Compaction(_)));
    let u = reported_usage(&reply);
    let usage = Usage {
        input: u.input + u.cache_write + u.cache_write_1h,
        cache_write: 0,
        cache_write_1h: 0,
        ..u
    };
    let Reply { id, parts, stop, .. } = reply;
    Reply { id, parts, stop, usage, billed: usage, ..Reply::default() }
}
