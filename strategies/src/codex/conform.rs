//! Codex CLI's rules on recorded inputs.

use std::sync::Arc;

use crate::codex::count::{
    Era, active_tokens, bytes_estimate, encrypted_estimate, estimate_item, history_estimate,
    must_compact,
};
use crate::codex::{
    OutputPolicy, cut_message, cut_output, cut_record, effective_limit, retained_user_messages,
};
use ctxbench_core::block::{BlockKind, CallRef, Draft, MessageId, Role};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::conform::{Context, Fault, Function, nullable, read};

/// Rules that recorded cases name.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function { name: "output_truncation", versions: &[], call: output_truncation },
    Function { name: "record_truncation", versions: &[], call: record_truncation },
    Function { name: "middle_cut", versions: &[], call: middle_cut },
    Function { name: "retained_user_messages", versions: &[], call: retained },
    Function { name: "history_estimate", versions: &[], call: estimate },
    Function { name: "effective_limit", versions: &[], call: limit },
    Function { name: "trigger", versions: &[], call: trigger },
];

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Bytes(u64),
    Tokens(u64),
}

impl From<Policy> for OutputPolicy {
    fn from(p: Policy) -> Self {
        match p {
            Policy::Bytes(n) => OutputPolicy::Bytes(n),
            Policy::Tokens(n) => OutputPolicy::Tokens(n),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cut {
    text: String,
    policy: Policy,
}

fn output_truncation(c: &Context, input: Value) -> Result<Value, Fault> {
    let i: Cut = read(input)?;
    Ok(json!(cut_output(Era::of(c.version), &i.text, i.policy.into())))
}

fn record_truncation(_: &Context, input: Value) -> Result<Value, Fault> {
    let i: Cut = read(input)?;
    Ok(json!(cut_record(&i.text, i.policy.into())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MiddleCut {
    text: String,
    remaining_tokens: u64,
}

fn middle_cut(c: &Context, input: Value) -> Result<Value, Fault> {
    let i: MiddleCut = read(input)?;
    Ok(json!(cut_message(Era::of(c.version), &i.text, i.remaining_tokens)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retained {
    messages: Vec<String>,
    cap_tokens: u64,
}

fn retained(c: &Context, input: Value) -> Result<Value, Fault> {
    let i: Retained = read(input)?;
    let texts: Vec<&str> = i.messages.iter().map(String::as_str).collect();
    let kept = retained_user_messages(Era::of(c.version), &texts, i.cap_tokens);
    Ok(kept.into_iter().map(|(_, parts)| json!(parts)).collect())
}

/// An item of the history by its size: its text in the newest version, its JSON form before.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    kind: BlockKind,
    bytes: Option<u64>,
    id_bytes: Option<u64>,
    json_bytes: Option<u64>,
    tokens: Option<u64>,
}

impl Item {
    fn tokens(&self, era: Era) -> Result<u64, Fault> {
        match (era, self.bytes, self.json_bytes, self.tokens) {
            (Era::V169, Some(bytes), None, None)
                if self.id_bytes.is_some() == (self.kind == BlockKind::Output) =>
            {
                let filler = |n: u64| "x".repeat(n as usize);
                let mut item = Draft::text(self.kind, Role::User, filler(bytes));
                item.call =
                    self.id_bytes.map(|n| Arc::new(CallRef { id: filler(n), name: String::new() }));
                Ok(estimate_item(era, &item.build(MessageId(0), vec![])))
            }
            (Era::V063 | Era::V104, None, Some(bytes), None) if self.id_bytes.is_none() => {
                Ok(bytes_estimate(bytes))
            }
            (Era::V063 | Era::V104, None, None, Some(tokens)) if self.id_bytes.is_none() => {
                Ok(tokens)
            }
            _ => Err(Fault::Input(format!(
                "the size of a {:?} item is not given as this version counts it",
                self.kind
            ))),
        }
    }
}

fn tokens(era: Era, items: &[Item]) -> Result<Vec<u64>, Fault> {
    items.iter().map(|i| i.tokens(era)).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Estimate {
    base_bytes: u64,
    items: Vec<Item>,
}

fn estimate(c: &Context, input: Value) -> Result<Value, Fault> {
    let i: Estimate = read(input)?;
    Ok(json!(history_estimate(i.base_bytes, tokens(Era::of(c.version), &i.items)?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    context_window: u64,
    #[serde(deserialize_with = "nullable")]
    configured_limit: Option<u64>,
}

fn limit(c: &Context, input: Value) -> Result<Value, Fault> {
    let i: Limit = read(input)?;
    Ok(json!(effective_limit(Era::of(c.version), i.context_window, i.configured_limit)))
}

/// Where a check is made; the rule is the same everywhere.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Point {
    PreTurn,
    MidTurn,
    AfterResponse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trigger {
    #[serde(rename = "point")]
    _point: Point,
    last_total: u64,
    items_after_last_model_item: Vec<Item>,
    encrypted_reasoning_bytes_before_last_user: Vec<u64>,
    context_window: u64,
    #[serde(deserialize_with = "nullable")]
    configured_limit: Option<u64>,
}

fn trigger(c: &Context, input: Value) -> Result<Value, Fault> {
    let i: Trigger = read(input)?;
    let era = Era::of(c.version);
    let reasoning =
        i.encrypted_reasoning_bytes_before_last_user.iter().map(|&n| encrypted_estimate(n));
    let active =
        active_tokens(era, i.last_total, tokens(era, &i.items_after_last_model_item)?, reasoning);
    let limit = effective_limit(era, i.context_window, i.configured_limit);
    Ok(json!({"active": active, "limit": limit, "compact": must_compact(active, limit)}))
}
