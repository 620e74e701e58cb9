//! Gemini: replies. Thoughts are counted separately from candidates, cached tokens within the prompt.

use std::borrow::Cow;

use ctxbench_core::{Part, Reply, StopReason, ToolCall, Usage};
use serde::{Deserialize, Serialize};

use super::calls::OpenCalls;
use super::part::{GeminiPart, Parts};
use crate::prompt::reply_part;
use crate::wire::format::WireError;
use crate::wire::json::{self, Text, object, opt, sane};
use crate::wire::openai::{done, reported_usage};

/// Finish reasons for a refusal.
const REFUSALS: [&str; 5] = ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII"];

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiReply<'a> {
    #[serde(borrow, default)]
    candidates: Vec<Candidate<'a>>,
    #[serde(borrow, skip_serializing)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(default)]
    usage_metadata: GeminiUsage,
    #[serde(skip_deserializing)]
    model_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_id: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(borrow)]
    pub(super) content: Option<CandidateContent<'a>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub(super) finish_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) index: u64,
}

impl<'a> Candidate<'a> {
    pub(super) fn new(parts: Parts<'a>, finish_reason: Option<Cow<'a, str>>) -> Self {
        let content = Some(CandidateContent { parts, role: "model" });
        Candidate { content, finish_reason, index: 0 }
    }
}

#[derive(Deserialize, Serialize)]
pub(super) struct CandidateContent<'a> {
    #[serde(borrow, default)]
    pub(super) parts: Parts<'a>,
    #[serde(skip_deserializing)]
    role: &'static str,
}

/// The reason why a prompt has no reply.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Serialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct GeminiUsage {
    prompt_token_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cached_content_token_count: u64,
    candidates_token_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    thoughts_token_count: u64,
    total_token_count: Option<u64>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl From<Usage> for GeminiUsage {
    fn from(u: Usage) -> Self {
        GeminiUsage {
            prompt_token_count: u.prompt(),
            cached_content_token_count: u.cache_read,
            candidates_token_count: u.output.saturating_sub(u.reasoning),
            thoughts_token_count: u.reasoning,
            total_token_count: Some(u.total()),
        }
    }
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

pub(super) fn encode(reply: &Reply, model: &str) -> Vec<u8> {
    let parts = reply.parts.iter().filter_map(|p| match p {
        Part::Call(ToolCall { id, name, arguments }) => {
            Some(GeminiPart::call(id, name, object(arguments)))
        }
        Part::Reasoning { text, encrypted } => {
            Some(GeminiPart::thought(Text::Plain(text), encrypted.as_ref()))
        }
        Part::Compaction(_) => None,
        _ => Some(GeminiPart::text(Text::Plain(p.text()))),
    });
    let finish = match reply.stop {
        StopReason::MaxTokens | StopReason::WindowExceeded => "MAX_TOKENS",
        StopReason::Refusal => "SAFETY",
        _ => "STOP",
    };
    json::bytes(&GeminiReply {
        candidates: vec![Candidate::new(Parts::signed(parts), Some(finish.into()))],
        prompt_feedback: None,
        usage_metadata: reported_usage(reply).into(),
        model_version: model,
        response_id: reply.id.as_deref().map(Text::Plain),
    })
}

pub(super) fn decode(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: GeminiReply<'_> = json::parse(bytes)?;
    let blocked = body.prompt_feedback.and_then(|f| f.block_reason).is_some();
    let candidate = body.candidates.into_iter().next();
    if candidate.is_none() && !blocked {
        return Err(WireError::Missing { field: "candidates[0]", in_what: "reply" });
    }
    let (turn, finish) = candidate.map_or((None, None), |c| (c.content, c.finish_reason));
    let said = turn.map_or(Ok(Vec::new()), |t| t.parts.contents(&mut OpenCalls::default()))?;
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
