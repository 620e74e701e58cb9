//! Events of a drive in a case.

use std::collections::HashMap;

use ctxbench_conform::case::{
    CaseCall, CaseEvent, CaseReasoning, CaseReply, CaseUsage, RefusedRequest, ReplyBlock, UserPart,
};
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::request::{self, ErrorKind, ModelError, Reply};

use super::mask::Mask;
use crate::drive::plan::Delivery;
use crate::drive::{Driven, Exchange, Purpose, words};

/// Texts that entered the history, as the agent sent them.
pub(super) struct SentTexts<'a> {
    pub(super) mask: Mask,
    /// Messages of the user by move and part.
    pub(super) said: HashMap<usize, Vec<&'a str>>,
    /// Output of each call, by its id.
    pub(super) outputs: HashMap<&'a str, &'a str>,
    /// True if usage counts cached input separately.
    pub(super) cache_beside_input: bool,
}

/// Returns all events of a session. With `restarts` every turn is a separate process.
pub(super) fn build(
    driven: &Driven,
    requests: &[&Exchange],
    shown: &SentTexts<'_>,
    resumes: bool,
) -> Vec<CaseEvent> {
    let mut out = Vec::new();
    let mut begun = 0;
    for e in requests {
        while begun <= e.step {
            begin(driven, begun, shown, resumes && !out.is_empty(), &mut out);
            begun += 1;
        }
        out.push(answer(driven, e, shown));
    }
    out
}

fn begin(
    driven: &Driven,
    step: usize,
    shown: &SentTexts<'_>,
    restarts: bool,
    out: &mut Vec<CaseEvent>,
) {
    let event = match &driven.plan.moves[step].what {
        Delivery::Wait => return,
        Delivery::Compact(_) => CaseEvent::Compact { instructions: None },
        Delivery::Say(words) => {
            let masked = |t: &&str| shown.mask.text(t);
            let text = |text: String| CaseEvent::User { text: Some(text), parts: vec![] };
            match shown.said.get(&step).map(Vec::as_slice) {
                None => text(words.to_string()),
                Some([one]) => text(masked(one)),
                Some(parts) => {
                    let part = |t| UserPart {
                        text: Some(masked(t)),
                        url: None,
                        media_type: None,
                        name: None,
                    };
                    CaseEvent::User { text: None, parts: parts.iter().map(part).collect() }
                }
            }
        }
    };
    if restarts {
        out.push(CaseEvent::Restart {});
    }
    out.push(event);
}

fn answer(driven: &Driven, e: &Exchange, shown: &SentTexts<'_>) -> CaseEvent {
    match &e.outcome {
        Err(error) => CaseEvent::Error(refusal(error, e.purpose_in_cases())),
        Ok(reply) if e.purpose == Purpose::Summary => {
            CaseEvent::SummaryReply(summary_reply(reply, shown))
        }
        Ok(reply) => CaseEvent::Reply(sample_reply(driven, reply, shown)),
    }
}

fn refusal(error: &ModelError, on: request::Purpose) -> RefusedRequest {
    let status = Some(error.status).filter(|status| (100..600).contains(status));
    let code = match error.kind {
        ErrorKind::Overflow => Some("context_length_exceeded"),
        ErrorKind::Stream => Some("stream_ended_early"),
        _ => error.code.as_deref().or(status.is_none().then_some("connection_error")),
    };
    RefusedRequest {
        on,
        status,
        code: code.map(str::to_string),
        message: Some(error.message.clone()).filter(|m| !m.is_empty()),
    }
}

fn summary_reply(reply: &Reply, shown: &SentTexts<'_>) -> CaseReply {
    let opaque = reply.compaction().map(|_| words(reply).to_string());
    let text = reply.text().filter(|_| opaque.is_none()).map(|t| shown.mask.text(&t));
    CaseReply { text, opaque, usage: Some(usage(reply, shown)), ..CaseReply::default() }
}

fn sample_reply(driven: &Driven, reply: &Reply, shown: &SentTexts<'_>) -> CaseReply {
    let reasoning = |p: &Part| match p {
        Part::Reasoning { text, encrypted } => Some(CaseReasoning {
            text: text.to_string(),
            encrypted: encrypted.as_ref().map(|e| e.to_string()),
            encrypted_bytes: encrypted.as_ref().map(|e| e.len()),
        }),
        _ => None,
    };
    let texts: Vec<&str> = reply.parts.iter().filter_map(Part::as_text).collect();
    let (text, blocks) = match texts.as_slice() {
        [] => (None, vec![]),
        [one] => (Some(one.to_string()), vec![]),
        several => {
            let block = |t: &&str| ReplyBlock::Text { text: t.to_string() };
            (None, several.iter().map(block).collect())
        }
    };
    CaseReply {
        reasoning: reply.parts.iter().rev().find_map(reasoning),
        text,
        blocks,
        calls: reply.calls().map(|c| call(driven, c, shown)).collect(),
        usage: Some(usage(reply, shown)),
        ..CaseReply::default()
    }
}

fn call(driven: &Driven, c: &ToolCall, shown: &SentTexts<'_>) -> CaseCall {
    let output = match shown.outputs.get(&*c.id) {
        Some(text) => shown.mask.text(text),
        None => driven.plan.printed(&c.id).unwrap_or_default().to_string(),
    };
    CaseCall {
        id: c.id.to_string(),
        name: c.name.to_string(),
        arguments: c.arguments.to_string(),
        output_bytes: Some(output.len()),
        output: Some(output),
        is_error: false,
    }
}

/// Returns the usage as the provider reported it.
fn usage(reply: &Reply, shown: &SentTexts<'_>) -> CaseUsage {
    let u = &reply.usage;
    let output_tokens = Some(u.output);
    let apart = shown.cache_beside_input;
    CaseUsage {
        input_tokens: Some(if apart { u.input } else { u.prompt() }),
        output_tokens,
        cache_read_input_tokens: apart.then_some(u.cache_read),
        cache_creation_input_tokens: apart.then_some(u.cache_write + u.cache_write_1h),
        total_tokens: (!apart).then(|| u.total()),
        ..CaseUsage::default()
    }
}
