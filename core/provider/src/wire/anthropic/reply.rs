//! Anthropic Messages: replies.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::request::{ContentBlock, output_of};
use crate::prompt;
use crate::wire::format::WireError;
use crate::wire::json::{self, Text, object, opt, sane};
use ctxbench_core::request::Applied;
use ctxbench_core::{Part, Reply, StopReason, ToolCall, Usage};

const STOPS: [(StopReason, &str); 8] = [
    (StopReason::EndTurn, "end_turn"),
    (StopReason::ToolUse, "tool_use"),
    (StopReason::MaxTokens, "max_tokens"),
    (StopReason::StopSequence, "stop_sequence"),
    (StopReason::Compaction, "compaction"),
    (StopReason::PauseTurn, "pause_turn"),
    (StopReason::Refusal, "refusal"),
    (StopReason::WindowExceeded, "model_context_window_exceeded"),
];

/// The id of replies without one, since the wire requires it.
const NO_ID: &str = "msg_ctxbench";

#[derive(Deserialize, Serialize)]
struct AnthropicReply<'a> {
    id: Option<Text<'a>>,
    #[serde(skip_deserializing, rename = "type")]
    kind: &'static str,
    #[serde(skip_deserializing)]
    role: &'static str,
    #[serde(skip_deserializing)]
    model: &'a str,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(skip_deserializing)]
    stop_sequence: (),
    #[serde(borrow)]
    content: Vec<ContentBlock<'a>>,
    usage: AnthropicUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_management: Option<Management>,
}

#[derive(Deserialize, Serialize, Default)]
struct Management {
    #[serde(default)]
    applied_edits: Vec<AppliedEdit>,
}

#[derive(Default, Deserialize, Serialize)]
struct AppliedEdit {
    #[serde(skip_deserializing, rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_tool_uses: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_thinking_turns: Option<usize>,
    #[serde(default)]
    cleared_input_tokens: u64,
}

/// Usage of a reply or of an iteration, which has a type. The input kinds are disjoint.
#[derive(Deserialize, Serialize)]
struct AnthropicUsage {
    #[serde(skip_deserializing, rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<Creation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations: Option<Vec<AnthropicUsage>>,
}

#[derive(Deserialize, Serialize)]
struct Creation {
    #[serde(default)]
    ephemeral_5m_input_tokens: u64,
    #[serde(default)]
    ephemeral_1h_input_tokens: u64,
}

/// Encodes a reply. Billed usage beyond that of the answer becomes a compaction iteration.
pub(crate) fn encode(reply: &Reply, model: &str) -> Vec<u8> {
    let stop = STOPS.iter().find(|(s, _)| *s == reply.stop).map_or("end_turn", |(_, w)| *w);
    let content = reply.parts.iter().map(|p| match p {
        Part::Reasoning { text, encrypted } => {
            ContentBlock::thinking(Text::Plain(text), encrypted.as_deref())
        }
        Part::Call(ToolCall { id, name, arguments }) => {
            ContentBlock::call(id, name, object(arguments))
        }
        Part::Compaction(text) => ContentBlock {
            encrypted_content: Some(None),
            ..ContentBlock::compaction(text.as_deref().map(Text::Plain))
        },
        _ => ContentBlock::text(p.text().into()),
    });
    let of =
        |kind, usage: &Usage| AnthropicUsage { kind: Some(kind), ..AnthropicUsage::new(usage) };
    let iterations = (reply.billed != reply.usage).then(|| {
        let answer =
            (reply.usage.prompt() + reply.usage.output > 0).then(|| of("message", &reply.usage));
        let compaction = of("compaction", &reply.billed.minus(&reply.usage));
        [compaction].into_iter().chain(answer).collect()
    });
    let a = reply.applied;
    let tools = AppliedEdit {
        kind: "clear_tool_uses_20250919",
        cleared_tool_uses: Some(a.cleared_tool_uses),
        cleared_input_tokens: a.cleared_tokens,
        ..AppliedEdit::default()
    };
    let thinking = AppliedEdit {
        kind: "clear_thinking_20251015",
        cleared_thinking_turns: Some(a.cleared_thinking_turns),
        cleared_input_tokens: a.thinking_tokens,
        ..AppliedEdit::default()
    };
    let did = |e: &AppliedEdit| {
        let cleared = e.cleared_tool_uses.or(e.cleared_thinking_turns);
        cleared > Some(0) || e.cleared_input_tokens > 0
    };
    let applied_edits = [tools, thinking].into_iter().filter(did).collect();
    json::bytes(&AnthropicReply {
        id: Some(reply.id.as_deref().unwrap_or(NO_ID).into()),
        kind: "message",
        role: "assistant",
        model,
        stop_reason: Some(stop.into()),
        stop_sequence: (),
        content: content.collect(),
        usage: AnthropicUsage { iterations, ..AnthropicUsage::new(&reply.usage) },
        context_management: (a != Applied::default()).then_some(Management { applied_edits }),
    })
}

impl AnthropicUsage {
    fn new(u: &Usage) -> Self {
        AnthropicUsage {
            kind: None,
            input_tokens: u.input,
            output_tokens: u.output,
            cache_creation_input_tokens: Some(u.cache_write + u.cache_write_1h),
            cache_read_input_tokens: Some(u.cache_read),
            cache_creation: Some(Creation {
                ephemeral_5m_input_tokens: u.cache_write,
                ephemeral_1h_input_tokens: u.cache_write_1h,
            }),
            iterations: None,
        }
    }

    fn usage(&self) -> Usage {
        let lifetimes = self.cache_creation.as_ref();
        let lifetimes =
            lifetimes.map(|c| [c.ephemeral_5m_input_tokens, c.ephemeral_1h_input_tokens]);
        let [five_minutes, one_hour] = lifetimes.unwrap_or_default().map(sane);
        Usage {
            input: sane(self.input_tokens),
            output: sane(self.output_tokens),
            cache_read: sane(self.cache_read_input_tokens.unwrap_or(0)),
            // Some gateways tell the lifetimes without their sum.
            cache_write: match self.cache_creation_input_tokens {
                None | Some(0) => five_minutes,
                Some(sum) => sane(sum).saturating_sub(one_hour),
            },
            cache_write_1h: one_hour,
            ..Usage::default()
        }
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Reply, WireError> {
    let body: AnthropicReply<'_> = json::parse(bytes)?;
    let usage = body.usage.usage();
    let mut billed = usage;
    if let Some(iterations) = body.usage.iterations.filter(|i| !i.is_empty()) {
        billed = Usage::default();
        iterations.iter().for_each(|i| billed.add(&i.usage()));
    }
    let mut applied = Applied::default();
    for e in body.context_management.unwrap_or_default().applied_edits {
        let (uses, turns) = (e.cleared_tool_uses, e.cleared_thinking_turns.unwrap_or(0));
        applied.cleared_tool_uses = applied.cleared_tool_uses.saturating_add(uses.unwrap_or(0));
        applied.cleared_thinking_turns = applied.cleared_thinking_turns.saturating_add(turns);
        let tokens =
            if turns > 0 { &mut applied.thinking_tokens } else { &mut applied.cleared_tokens };
        *tokens = tokens.saturating_add(e.cleared_input_tokens);
    }
    let parts = body.content.into_iter().map(reply_part).collect::<Result<_, _>>()?;
    // Unknown stop reasons end the turn.
    let word = body.stop_reason.as_deref().unwrap_or("end_turn");
    let stop = STOPS.iter().find(|(_, w)| *w == word).map_or(StopReason::EndTurn, |(s, _)| *s);
    let id = opt(body.id).filter(|id| **id != *NO_ID);
    Ok(Reply { id, parts, usage, billed, stop, applied, latency_ms: 0, expired: 0 })
}

fn reply_part(p: ContentBlock<'_>) -> Result<Part, WireError> {
    if p.kind == "compaction" {
        let payload = opt(p.encrypted_content.flatten().or(p.signature));
        return Ok(Part::Compaction(match p.content.flatten() {
            Some(content) => Some(output_of(Some(content))?.0),
            None => payload,
        }));
    }
    let other = WireError::unsupported("reply part", &p.kind);
    prompt::reply_part(p.into_content()?).ok_or(other)
}
