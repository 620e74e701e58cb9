//! Events of a drive in a case.

use std::collections::HashMap;

use ctxbench_conform::case::{CaseEvent, CaseReply, CaseUsage, RefusedRequest};
use ctxbench_core::content::Part;
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
            let text = |t: &&str| Part::Text(shown.mask.text(t).into());
            let sent = shown.said.get(&step).map(|texts| texts.iter().map(text).collect());
            CaseEvent::User { parts: sent.unwrap_or_else(|| vec![text(&words.as_str())]) }
        }
    };
    if restarts {
        out.push(CaseEvent::Restart {});
    }
    out.push(event);
}

fn answer(driven: &Driven, e: &Exchange, shown: &SentTexts<'_>) -> CaseEvent {
    let summary = e.purpose == Purpose::Summary;
    match &e.outcome {
        Err(error) => CaseEvent::Error(refusal(error, summary)),
        Ok(reply) if summary => CaseEvent::SummaryReply(summary_reply(reply, shown)),
        Ok(reply) => CaseEvent::Reply(sample_reply(driven, reply, shown)),
    }
}

fn refusal(error: &ModelError, summary: bool) -> RefusedRequest {
    let status = Some(error.status).filter(|status| (100..600).contains(status));
    let code = match error.kind {
        ErrorKind::Overflow => Some("context_length_exceeded"),
        ErrorKind::Stream => Some("stream_ended_early"),
        _ => error.code.as_deref().or(status.is_none().then_some("connection_error")),
    };
    RefusedRequest {
        on: if summary { request::Purpose::Summary } else { request::Purpose::Sample },
        status,
        code: code.map(str::to_string),
        message: Some(error.message.clone()).filter(|m| !m.is_empty()),
    }
}

fn summary_reply(reply: &Reply, shown: &SentTexts<'_>) -> CaseReply {
    let compaction = reply.compaction().map(|_| words(reply).to_string());
    let text = reply.text().filter(|_| compaction.is_none());
    let parts = text.map(|t| Part::Text(shown.mask.text(&t).into())).into_iter().collect();
    CaseReply { parts, compaction, usage: Some(usage(reply, shown)), ..CaseReply::default() }
}

fn sample_reply(driven: &Driven, reply: &Reply, shown: &SentTexts<'_>) -> CaseReply {
    let output = |id: &str| match shown.outputs.get(id) {
        Some(text) => shown.mask.text(text),
        None => driven.plan.printed(id).unwrap_or_default().to_string(),
    };
    CaseReply {
        parts: reply.parts.clone(),
        outputs: reply.calls().map(|c| (c.id.to_string(), output(&c.id))).collect(),
        usage: Some(usage(reply, shown)),
        ..CaseReply::default()
    }
}

/// Returns the usage as the provider reported it.
fn usage(reply: &Reply, shown: &SentTexts<'_>) -> CaseUsage {
    let u = &reply.usage;
    let output_tokens = Some(u.output);
    if shown.cache_beside_input {
        return CaseUsage {
            input_tokens: Some(u.input),
            output_tokens,
            cache_read_input_tokens: Some(u.cache_read),
            cache_creation_input_tokens: Some(u.cache_write + u.cache_write_1h),
            ..CaseUsage::default()
        };
    }
    CaseUsage {
        input_tokens: Some(u.prompt()),
        output_tokens,
        total_tokens: Some(u.total()),
        ..CaseUsage::default()
    }
}
