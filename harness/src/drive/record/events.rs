//! Events of a drive in a case.

use std::collections::HashMap;

use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::request::{ErrorKind, ModelError, Reply};
use serde_json::{Map, Value, json};

use super::mask::Masked;
use crate::drive::plan::Delivery;
use crate::drive::{Driven, Exchange, Purpose, words};

/// Texts that entered the history, as the agent sent them.
pub(super) struct SentTexts<'a> {
    pub(super) masked: Masked<'a>,
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
) -> Vec<Value> {
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
    out: &mut Vec<Value>,
) {
    let event = match &driven.plan.moves[step].what {
        Delivery::Wait => return,
        Delivery::Compact(_) => json!({"type": "compact"}),
        Delivery::Say(words) => {
            let masked = |t: &&str| shown.masked.get(t).unwrap_or(t).to_string();
            match shown.said.get(&step).map(Vec::as_slice) {
                None => json!({"type": "user", "text": words}),
                Some([one]) => json!({"type": "user", "text": masked(one)}),
                Some(parts) => {
                    let part = |t: &&str| json!({"text": masked(t)});
                    json!({"type": "user", "parts": parts.iter().map(part).collect::<Vec<_>>()})
                }
            }
        }
    };
    if restarts {
        out.push(json!({"type": "restart"}));
    }
    out.push(event);
}

fn answer(driven: &Driven, e: &Exchange, shown: &SentTexts<'_>) -> Value {
    let summary = e.purpose == Purpose::Summary;
    match &e.outcome {
        Err(error) => refusal(error, if summary { "summary" } else { "sample" }),
        Ok(reply) if summary => summary_reply(reply, shown),
        Ok(reply) => sample_reply(driven, reply, shown),
    }
}

fn refusal(error: &ModelError, on: &str) -> Value {
    let mut out = json!({"type": "error", "on": on});
    if (100..600).contains(&error.status) {
        out["status"] = error.status.into();
    }
    let code = match error.kind {
        ErrorKind::Overflow => Some("context_length_exceeded"),
        ErrorKind::Stream => Some("stream_ended_early"),
        _ => error.code.as_deref(),
    };
    match code {
        Some(code) => out["code"] = code.into(),
        None if out.get("status").is_none() => out["code"] = "connection_error".into(),
        None => {}
    }
    if !error.message.is_empty() {
        out["message"] = error.message.as_str().into();
    }
    out
}

fn summary_reply(reply: &Reply, shown: &SentTexts<'_>) -> Value {
    let text = reply.text().map(|t| shown.masked.hidden(&t));
    let mut out = json!({"type": "summary_reply", "text": text, "usage": usage(reply, shown)});
    if reply.compaction().is_some() {
        out["text"] = Value::Null;
        out["opaque"] = words(reply).into();
    }
    out
}

fn sample_reply(driven: &Driven, reply: &Reply, shown: &SentTexts<'_>) -> Value {
    let mut out = Map::new();
    out.insert("type".into(), "reply".into());
    for p in &reply.parts {
        if let Part::Reasoning { text, encrypted } = p {
            let mut thought = json!({"text": text});
            if let Some(e) = encrypted {
                thought["encrypted"] = json!(e);
                thought["encrypted_bytes"] = e.len().into();
            }
            out.insert("reasoning".into(), thought);
        }
    }
    let texts: Vec<&str> = reply.parts.iter().filter_map(Part::as_text).collect();
    match texts.as_slice() {
        [] => {}
        [one] => drop(out.insert("text".into(), json!(one))),
        several => {
            let block = |t: &&str| json!({"type": "text", "text": t});
            out.insert("blocks".into(), several.iter().map(block).collect());
        }
    }
    let calls: Vec<Value> = reply.calls().map(|c| call(driven, c, shown)).collect();
    if !calls.is_empty() {
        out.insert("calls".into(), calls.into());
    }
    out.insert("usage".into(), usage(reply, shown));
    Value::Object(out)
}

fn call(driven: &Driven, c: &ToolCall, shown: &SentTexts<'_>) -> Value {
    let output = match shown.outputs.get(&*c.id) {
        Some(text) => shown.masked.get(text).unwrap_or(text).to_string(),
        None => driven.plan.printed(&c.id).unwrap_or_default().to_string(),
    };
    json!({
        "id": c.id, "name": c.name, "arguments": c.arguments,
        "output_bytes": output.len(), "output": output,
    })
}

/// Returns the usage as the provider reported it.
fn usage(reply: &Reply, shown: &SentTexts<'_>) -> Value {
    let u = &reply.usage;
    if shown.cache_beside_input {
        return json!({
            "input_tokens": u.input, "output_tokens": u.output,
            "cache_read_input_tokens": u.cache_read,
            "cache_creation_input_tokens": u.cache_write + u.cache_write_1h,
        });
    }
    json!({"input_tokens": u.prompt(), "output_tokens": u.output, "total_tokens": u.total()})
}
