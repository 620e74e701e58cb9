//! Anthropic Messages: replies.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;

use super::request::{ContentBlock, output_of};
use crate::wire::WireError;
use crate::wire::json::{
    self, Text, field, list, number, object, opt, or_empty, raw, sane, string, unwrapped,
};
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::request::{Applied, Reply, StopReason, Usage};

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

/// Encodes a reply. Billed usage beyond that of the answer becomes a compaction iteration.
pub(crate) fn encode(reply: &Reply, model: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    let o = &mut out;
    let stop = STOPS.iter().find(|(s, _)| *s == reply.stop).map_or("end_turn", |(_, w)| *w);
    field(o, "{\"id\":", reply.id.as_deref().unwrap_or(NO_ID));
    raw(o, ",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    string(o, model);
    field(o, ",\"stop_reason\":", stop);
    raw(o, ",\"stop_sequence\":null,\"content\":[");
    list(o, &reply.parts, part);
    raw(o, "],\"usage\":{");
    usage(o, &reply.usage);
    if reply.billed != reply.usage {
        raw(o, ",\"iterations\":[{\"type\":\"compaction\",");
        usage(o, &minus(&reply.billed, &reply.usage));
        if reply.usage.prompt() + reply.usage.output > 0 {
            raw(o, "},{\"type\":\"message\",");
            usage(o, &reply.usage);
        }
        raw(o, "}]");
    }
    o.push(b'}');
    if reply.applied != Applied::default() {
        let a = reply.applied;
        let tools = ["clear_tool_uses_20250919", "cleared_tool_uses"];
        let thinking = ["clear_thinking_20251015", "cleared_thinking_turns"];
        let edits = [
            (tools, a.cleared_tool_uses, a.cleared_tokens),
            (thinking, a.cleared_thinking_turns, a.thinking_tokens),
        ];
        let edits: Vec<_> =
            edits.into_iter().filter(|(_, n, tokens)| *n > 0 || *tokens > 0).collect();
        raw(o, ",\"context_management\":{\"applied_edits\":[");
        list(o, &edits, |o, ([kind, what], n, tokens)| {
            field(o, "{\"type\":", kind);
            raw(o, ",\"");
            raw(o, what);
            raw(o, "\":");
            number(o, *n as u64);
            raw(o, ",\"cleared_input_tokens\":");
            number(o, *tokens);
            o.push(b'}');
        });
        raw(o, "]}");
    }
    o.push(b'}');
    out
}

fn part(o: &mut Vec<u8>, p: &Part) {
    match p {
        Part::Reasoning { text, encrypted } => {
            field(o, "{\"type\":\"thinking\",\"thinking\":", text);
            field(o, ",\"signature\":", encrypted.as_deref().unwrap_or(""));
        }
        Part::Call(ToolCall { id, name, arguments: text }) => {
            field(o, "{\"type\":\"tool_use\",\"id\":", id);
            field(o, ",\"name\":", name);
            raw(o, ",\"input\":");
            object(o, text);
        }
        Part::Compaction(Some(s)) => {
            field(o, "{\"type\":\"compaction\",\"content\":", s);
            raw(o, ",\"encrypted_content\":null");
        }
        Part::Compaction(None) => {
            raw(o, "{\"type\":\"compaction\",\"content\":null,\"encrypted_content\":null")
        }
        _ => field(o, "{\"type\":\"text\",\"text\":", p.text()),
    }
    o.push(b'}');
}

/// Writes the fields of a usage object without braces. The input kinds are disjoint.
fn usage(o: &mut Vec<u8>, u: &Usage) {
    let fields = [
        ("\"input_tokens\":", u.input),
        (",\"output_tokens\":", u.output),
        (",\"cache_creation_input_tokens\":", u.cache_write + u.cache_write_1h),
        (",\"cache_read_input_tokens\":", u.cache_read),
        (",\"cache_creation\":{\"ephemeral_5m_input_tokens\":", u.cache_write),
        (",\"ephemeral_1h_input_tokens\":", u.cache_write_1h),
    ];
    for (key, n) in fields {
        raw(o, key);
        number(o, n);
    }
    o.push(b'}');
}

fn minus(a: &Usage, b: &Usage) -> Usage {
    Usage {
        input: a.input.saturating_sub(b.input),
        output: a.output.saturating_sub(b.output),
        reasoning: 0,
        cache_read: a.cache_read.saturating_sub(b.cache_read),
        cache_write: a.cache_write.saturating_sub(b.cache_write),
        cache_write_1h: a.cache_write_1h.saturating_sub(b.cache_write_1h),
        reported_total: None,
    }
}

#[derive(Deserialize)]
struct AnthropicReply<'a> {
    id: Option<Text>,
    #[serde(borrow)]
    content: Vec<ContentBlock<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    usage: AnthropicUsage,
    context_management: Option<Management>,
}

#[derive(Deserialize, Default)]
struct Management {
    #[serde(default)]
    applied_edits: Vec<AppliedEdit>,
}

#[derive(Deserialize)]
struct AppliedEdit {
    #[serde(default)]
    cleared_tool_uses: usize,
    #[serde(default)]
    cleared_thinking_turns: usize,
    #[serde(default)]
    cleared_input_tokens: u64,
}

#[derive(Deserialize)]
struct AnthropicUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<Creation>,
    iterations: Option<Vec<AnthropicUsage>>,
}

#[derive(Deserialize)]
struct Creation {
    #[serde(default)]
    ephemeral_1h_input_tokens: u64,
}

impl AnthropicUsage {
    fn usage(&self) -> Usage {
        let one_hour =
            sane(self.cache_creation.as_ref().map_or(0, |c| c.ephemeral_1h_input_tokens));
        Usage {
            input: sane(self.input_tokens),
            output: sane(self.output_tokens),
            cache_read: sane(self.cache_read_input_tokens.unwrap_or(0)),
            cache_write: sane(self.cache_creation_input_tokens.unwrap_or(0))
                .saturating_sub(one_hour),
            cache_write_1h: one_hour,
            ..Usage::default()
        }
    }
}

/// Decodes a reply.
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
        applied.cleared_tool_uses = applied.cleared_tool_uses.saturating_add(e.cleared_tool_uses);
        applied.cleared_thinking_turns =
            applied.cleared_thinking_turns.saturating_add(e.cleared_thinking_turns);
        let tokens = if e.cleared_thinking_turns > 0 {
            &mut applied.thinking_tokens
        } else {
            &mut applied.cleared_tokens
        };
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
    let missing = |field| WireError::Missing { field, in_what: "reply part" };
    Ok(match &*p.kind {
        "text" => Part::Text(p.text.ok_or(missing("text"))?.0),
        "thinking" => Part::Reasoning { text: or_empty(p.thinking), encrypted: opt(p.signature) },
        "redacted_thinking" => Part::Reasoning { text: "".into(), encrypted: opt(p.data) },
        "tool_use" => Part::Call(ToolCall {
            id: p.id.ok_or(missing("id"))?.0,
            name: p.name.ok_or(missing("name"))?.0,
            arguments: unwrapped(p.input),
        }),
        "compaction" => {
            let given = p.content.is_some();
            let text: Arc<str> = output_of(p.content)?.0;
            Part::Compaction(
                Some(text).filter(|_| given).or(opt(p.encrypted_content.or(p.signature))),
            )
        }
        other => {
            return Err(WireError::Unsupported {
                what: "reply part",
                value: other.into(),
                known: "text, thinking, tool_use, compaction",
            });
        }
    })
}
