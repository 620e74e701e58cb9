//! Recorded cases of Codex CLI: its rules on recorded inputs, and the settings, constants and
//! requests of recorded sessions.

use std::sync::Arc;

use ctxbench_core::block::{BlockKind, CallRef, Draft, MessageId, Role};
use ctxbench_core::model::Model;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::count::{
    Release, active_tokens, bytes_estimate, effective_limit, encrypted_estimate, estimate_item,
    history_estimate, must_compact,
};
use super::cut::{OutputPolicy, cut_message, cut_output, cut_record, retained_user_messages};
use super::words::CodexWords;
use super::{Codex, CodexVersion};
use crate::conform::shape::MemberKind::{Count, Either, Filler, Flag, Text, Word};
use crate::conform::shape::{Shape, may, must, null};
use crate::conform::text::{expand, filler};
use crate::conform::{
    CaseSettings, Conformance, Context, Function, MemberError, RecordedProgram, Replay,
    RequestView, SetUp, SummaryForm, build, followed, nullable, read,
};
use crate::descriptor::Product;

pub(crate) const CONFORMANCE: Conformance = Conformance {
    functions: &[
        Function { name: "output_truncation", versions: &[], call: output_truncation },
        Function { name: "record_truncation", versions: &[], call: record_truncation },
        Function { name: "middle_cut", versions: &[], call: middle_cut },
        Function { name: "retained_user_messages", versions: &[], call: retained },
        Function { name: "history_estimate", versions: &[], call: estimate },
        Function { name: "effective_limit", versions: &[], call: limit },
        Function { name: "trigger", versions: &[], call: trigger },
    ],
    labels: &[],
    replay: Some(Replay {
        settings: SETTINGS,
        parameters: false,
        constants: CONSTANTS,
        ends: &[],
        set_up,
        error_classes: |_| &[],
        record: Some(super::record::RECORDING),
    }),
};

const SETTINGS: Shape = &[
    must("context_window", Count),
    null("auto_compact_token_limit", Count),
    may("stream_max_retries", Count),
    may("request_max_retries", Count),
    may("tool_output_policy", Either(&[may("tokens", Count), may("bytes", Count)])),
    null("compact_prompt", Text),
    null("post_turn_threshold_percent", Count),
    may("limit_scope", Word),
    may("model", Word),
    may("remote", Flag),
    may("provider_name", Word),
];

const CONSTANTS: Shape =
    &[may("summary_prompt_bytes", Filler), may("summary_prefix_bytes", Filler)];

fn set_up(case: &RecordedProgram<'_>, model: Model) -> Result<SetUp, MemberError> {
    let summary_prompt = match case.setting("compact_prompt") {
        Some(prompt) => expand(prompt)?,
        None => filler("prompt", case.constant("summary_prompt_bytes")),
    };
    let prefix = filler("prefix", case.constant("summary_prefix_bytes"));
    let words = CodexWords {
        summary_prompt: summary_prompt.into(),
        summary_prefix: prefix.as_str().into(),
    };
    let mut given = CaseSettings::default();
    // The outputs of a case are already cut by the program.
    given.set("tool_output_tokens", 0);
    for (ours, theirs) in [
        ("remote", "remote"),
        ("auto_compact_limit", "auto_compact_token_limit"),
        ("stream_retries", "stream_max_retries"),
        ("post_turn_percent", "post_turn_threshold_percent"),
        ("limit_scope", "limit_scope"),
    ] {
        given.take(ours, case.setting(theirs));
    }
    let base = case.fixed.iter().find(|f| f["kind"] == "base");
    given.take("base_estimate_bytes", base.and_then(|b| b.get("estimate_bytes")));
    let version = followed::<Codex>(case.version)?;
    let window = case.setting("context_window").and_then(Value::as_u64).unwrap_or(0);
    Ok(SetUp {
        strategy: build::<Codex>("codex", version, &given, words)?,
        model: Model { name: "recorded".into(), window, ..model },
        params: Map::new(),
        cache_beside_input: false,
        caller_acts: false,
        view: RequestView {
            roleless_compaction: true,
            summary: SummaryForm { head: format!("{prefix}\n"), ..SummaryForm::default() },
            ..RequestView::default()
        },
    })
}

/// Returns the release with the rules for a case.
fn release(c: &Context) -> Result<Release, MemberError> {
    match Codex::version(c.version) {
        CodexVersion::Program(release) => Ok(release),
        _ => Err(MemberError::Input("the version is a description, which nobody recorded".into())),
    }
}

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
struct CutCase {
    text: String,
    policy: Policy,
}

fn output_truncation(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: CutCase = read(input)?;
    Ok(json!(cut_output(release(c)?, &i.text, i.policy.into())))
}

fn record_truncation(_: &Context, input: Value) -> Result<Value, MemberError> {
    let i: CutCase = read(input)?;
    Ok(json!(cut_record(&i.text, i.policy.into())))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MiddleCut {
    text: String,
    remaining_tokens: u64,
}

fn middle_cut(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: MiddleCut = read(input)?;
    Ok(json!(cut_message(release(c)?, &i.text, i.remaining_tokens)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retained {
    messages: Vec<String>,
    cap_tokens: u64,
}

fn retained(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: Retained = read(input)?;
    let texts: Vec<&str> = i.messages.iter().map(String::as_str).collect();
    let kept = retained_user_messages(release(c)?, &texts, i.cap_tokens);
    Ok(kept.into_iter().map(|(_, parts)| json!(parts)).collect())
}

/// Size of a history item: of its text in the newest version, and of its JSON form in older
/// versions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ItemSize {
    kind: BlockKind,
    bytes: Option<u64>,
    id_bytes: Option<u64>,
    json_bytes: Option<u64>,
    tokens: Option<u64>,
}

impl ItemSize {
    fn tokens(&self, release: Release) -> Result<u64, MemberError> {
        match (release, self.bytes, self.json_bytes, self.tokens) {
            (Release::V169, Some(bytes), None, None)
                if self.id_bytes.is_some() == (self.kind == BlockKind::Output) =>
            {
                let filler = |n: u64| "x".repeat(n as usize);
                let mut item = Draft::text(self.kind, Role::User, filler(bytes));
                item.call = self
                    .id_bytes
                    .map(|n| Arc::new(CallRef { id: filler(n).into(), name: "".into() }));
                Ok(estimate_item(release, &item.build(MessageId(0), vec![])))
            }
            (Release::V063 | Release::V104, None, Some(bytes), None) if self.id_bytes.is_none() => {
                Ok(bytes_estimate(bytes))
            }
            (Release::V063 | Release::V104, None, None, Some(tokens))
                if self.id_bytes.is_none() =>
            {
                Ok(tokens)
            }
            _ => Err(MemberError::Input(format!(
                "the size of a {:?} item is not given as this version counts it",
                self.kind
            ))),
        }
    }
}

fn tokens(release: Release, items: &[ItemSize]) -> Result<Vec<u64>, MemberError> {
    items.iter().map(|i| i.tokens(release)).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Estimate {
    base_bytes: u64,
    items: Vec<ItemSize>,
}

fn estimate(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: Estimate = read(input)?;
    Ok(json!(history_estimate(i.base_bytes, tokens(release(c)?, &i.items)?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    context_window: u64,
    #[serde(deserialize_with = "nullable")]
    configured_limit: Option<u64>,
}

fn limit(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: Limit = read(input)?;
    Ok(json!(effective_limit(release(c)?, i.context_window, i.configured_limit)))
}

/// Position of a check. The rule is the same at all positions.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum CheckPoint {
    PreTurn,
    MidTurn,
    AfterResponse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TriggerCase {
    #[serde(rename = "point")]
    _point: CheckPoint,
    last_total: u64,
    items_after_last_model_item: Vec<ItemSize>,
    encrypted_reasoning_bytes_before_last_user: Vec<u64>,
    context_window: u64,
    #[serde(deserialize_with = "nullable")]
    configured_limit: Option<u64>,
}

fn trigger(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: TriggerCase = read(input)?;
    let release = release(c)?;
    let reasoning =
        i.encrypted_reasoning_bytes_before_last_user.iter().map(|&n| encrypted_estimate(n));
    let active = active_tokens(
        release,
        i.last_total,
        tokens(release, &i.items_after_last_model_item)?,
        reasoning,
    );
    let limit = effective_limit(release, i.context_window, i.configured_limit);
    Ok(json!({"active": active, "limit": limit, "compact": must_compact(active, limit)}))
}
