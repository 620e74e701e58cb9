//! Recorded cases of OpenCode: its rules on recorded inputs, and the settings, constants and
//! requests of recorded sessions.

use std::collections::HashMap;

use ctxbench_core::block::MessageId;
use ctxbench_core::compaction::PruneRule;
use ctxbench_core::model::{Model, Provider};
use ctxbench_core::request::Usage;
use ctxbench_core::settings::{Settings, SettingsTable};
use ctxbench_core::tokens::utf16_div4_round;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::OpenCode;
use super::conform_texts::{CaseSpeaker, messages_estimate, transcript};
use super::rules::{
    self as rules, BUFFER, MessageView, ModelLimits, OUTPUT_CAP, PruneMessage, PruneResult,
    TurnSpan,
};
use super::settings::OpenCodeSettings;
use super::words::OpenCodeWords;
use crate::conform::shape::MemberKind::{Bytes, Count, Filler, Flag, One, OneOf, Word};
use crate::conform::shape::{Shape, may, must, null};
use crate::conform::text::filler;
use crate::conform::{
    CaseSettings, Conformance, Context, Function, MemberError, PromptForm, PromptPiece,
    RecordedProgram, Replay, RequestView, SetUp, build, followed, nullable, read,
};
use crate::descriptor::PromptTexts;

pub(crate) const CONFORMANCE: Conformance = Conformance {
    functions: &[
        Function { name: "estimate", versions: &["1.18"], call: estimate },
        Function { name: "messages_estimate", versions: &["1.18"], call: messages_estimate },
        Function { name: "overflow", versions: &["1.18"], call: overflow },
        Function { name: "tail_budget", versions: &["1.18"], call: tail_budget },
        Function { name: "prune", versions: &["1.18"], call: prune },
        Function { name: "select_tail", versions: &["1.18"], call: select_tail },
        Function { name: "filter_compacted", versions: &["1.18"], call: filter_compacted },
        Function { name: "transcript", versions: &["1.18"], call: transcript },
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

const MODEL: Shape =
    &[may("name", Word), must("context", Count), must("output", Count), null("input", Count)];

const SETTINGS: Shape = &[
    must("model", One(MODEL)),
    may("compaction", One(COMPACTION)),
    may("compaction_model", One(MODEL)),
    must("wire", OneOf(&["openai-chat", "anthropic"])),
];

/// Named as in the strategy's settings.
const COMPACTION: Shape = &[
    null("auto", Flag),
    null("prune", Flag),
    null("tail_turns", Count),
    null("preserve_recent_tokens", Count),
    null("reserved", Count),
];

const CONSTANTS: Shape = &[
    may("marker", One(CONSTANT)),
    may("continue", One(CONSTANT)),
    may("continue_after_overflow", One(CONSTANT)),
    may("summary_prompt_first", One(CONSTANT)),
    may("summary_prompt_with_prior", One(CONSTANT)),
];

const CONSTANT: Shape = &[
    must("bytes", Filler),
    may("utf16", Bytes),
    may("json_utf16", Bytes),
    may("placeholder", Word),
];

/// Size in bytes of the constant text around a message that 1.3 repeats. The cases state it only in
/// prose.
const WRAPPER_BYTES: usize = 133;

fn set_up(case: &RecordedProgram<'_>, model: Model) -> Result<SetUp, MemberError> {
    let anthropic = case.settings.get("wire").is_some_and(|w| w == "anthropic");
    let m = case.settings.get("model").cloned().unwrap_or_default();
    let model = Model {
        name: "mock-model".into(),
        window: m["context"].as_u64().unwrap_or(0),
        max_output: m["output"].as_u64().unwrap_or(0),
        input_limit: m["input"].as_u64(),
        provider: if anthropic { Provider::Anthropic } else { Provider::Openai },
        ..model
    };
    let first = filler("first", case.constant("summary_prompt_first").saturating_sub(40));
    let prior_close =
        filler("prior_close", case.constant("summary_prompt_with_prior").saturating_sub(60));
    let [intro, prior_open, template] = ["intro", "prior_open", "template"].map(|t| filler(t, 20));
    let constant = |name: &str| {
        let given = case.constants.get(name).and_then(|c| c.get("placeholder")?.as_str());
        given.map_or_else(|| filler(name, case.constant(name)), str::to_string).into()
    };
    let words = OpenCodeWords {
        intro: intro.as_str().into(),
        first: first.as_str().into(),
        prior_open: prior_open.as_str().into(),
        prior_close: prior_close.as_str().into(),
        template: template.as_str().into(),
        marker: constant("marker"),
        go_on: constant("continue"),
        go_on_overflow: constant("continue_after_overflow"),
        // 1.3: the recorded wrapper around a replayed message, and the prompt after the
        // conversation.
        wrapper_open: filler("wrapper", WRAPPER_BYTES).into(),
        old_prompt: filler("prompt", 1).into(),
        ..OpenCodeWords::blank()
    };
    let mut given = CaseSettings::default();
    if let Some(m) = case.settings.get("compaction_model") {
        for (ours, theirs) in [
            ("model", "name"),
            ("model_context", "context"),
            ("model_output", "output"),
            ("model_input", "input"),
        ] {
            given.take(ours, m.get(theirs));
        }
    }
    for (name, value) in case.setting("compaction").and_then(Value::as_object).into_iter().flatten()
    {
        given.take(name, Some(value));
    }
    let version = followed::<OpenCode>(case.version)?;
    Ok(SetUp {
        strategy: build::<OpenCode>("opencode", version, &given, words)?,
        model,
        params: Map::new(),
        cache_beside_input: anthropic,
        caller_acts: false,
        view: RequestView {
            numbered: Some(if anthropic { "anthropic-messages" } else { "openai-chat" }),
            // On this wire the system prompt is a message too.
            unnumbered: usize::from(!anthropic),
            prompts: prompts([intro, first, prior_open, prior_close, template]),
            ..RequestView::default()
        },
    })
}

/// Builds the prompts without and with a previous summary.
fn prompts([intro, first, prior_open, prior_close, template]: [String; 5]) -> Vec<PromptForm> {
    use PromptPiece::{Constant, Prior, Transcript};
    let form = |pieces| PromptForm { variant: None, pieces };
    let (intro, template) = (Constant(intro), Constant(template));
    vec![
        form(vec![intro.clone(), Transcript, Constant(first), template.clone()]),
        form(vec![intro, Transcript, Constant(prior_open), Prior, Constant(prior_close), template]),
    ]
}

fn estimate(_: &Context, input: Value) -> Result<Value, MemberError> {
    Ok(json!(utf16_div4_round(&read::<String>(input)?)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelInput {
    context: u64,
    output: u64,
    input: Option<u64>,
}

impl From<ModelInput> for ModelLimits {
    fn from(m: ModelInput) -> Self {
        ModelLimits { context: m.context, output: m.output, input: m.input }
    }
}

/// Settings in the notation of the program's configuration, with the program's defaults.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct CompactionConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    auto: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prune: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tail_turns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preserve_recent_tokens: Option<u64>,
}

impl CompactionConfig {
    fn settings(&self) -> Result<OpenCodeSettings, MemberError> {
        let given = serde_json::to_value(self)?;
        let list: Vec<String> =
            given.as_object().into_iter().flatten().map(|(k, v)| format!("{k}={v}")).collect();
        let given = Settings::parse("opencode", OpenCodeSettings::TABLE, &list.join(","));
        Ok(OpenCodeSettings::read(&given.map_err(|e| MemberError::Input(e.to_string()))?))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokens {
    total: Option<u64>,
    #[serde(default)]
    input: u64,
    #[serde(default)]
    output: u64,
    #[serde(default)]
    reasoning: u64,
    #[serde(default)]
    cache_read: u64,
    #[serde(default)]
    cache_write: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Overflow {
    model: ModelInput,
    compaction: CompactionConfig,
    tokens: Tokens,
}

fn overflow(_: &Context, input: Value) -> Result<Value, MemberError> {
    let i: Overflow = read(input)?;
    let s = i.compaction.settings()?;
    let t = i.tokens;
    let usage = Usage {
        input: t.input,
        output: t.output,
        reasoning: t.reasoning,
        cache_read: t.cache_read,
        cache_write: t.cache_write,
        reported_total: t.total,
        ..Usage::default()
    };
    let limits = ModelLimits::from(i.model);
    let usable = rules::usable(limits, s.reserved, OUTPUT_CAP, BUFFER);
    Ok(
        json!({"usable": usable, "overflow": rules::overflows(s.auto, limits.context, usable, rules::used(&usage))}),
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TailBudget {
    model: ModelInput,
    compaction: CompactionConfig,
}

fn tail_budget(_: &Context, input: Value) -> Result<Value, MemberError> {
    let i: TailBudget = read(input)?;
    let s = i.compaction.settings()?;
    let usable = rules::usable(i.model.into(), s.reserved, OUTPUT_CAP, BUFFER);
    Ok(json!(rules::tail_budget(usable, s.preserve_recent_tokens, s.tail_least, s.tail_most)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Prune {
    prune: bool,
    messages: Vec<PruneInput>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PruneInput {
    role: CaseSpeaker,
    #[serde(default)]
    summary: bool,
    #[serde(default)]
    tools: Vec<PruneTool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PruneTool {
    #[serde(default)]
    tool: String,
    chars: usize,
    #[serde(default)]
    status: MessageStatus,
    #[serde(default)]
    cleared: bool,
}

impl PruneTool {
    fn result<'a>(&'a self, output: &'a str) -> PruneResult<'a> {
        PruneResult {
            tool: &self.tool,
            output,
            completed: self.status == MessageStatus::Completed,
            cleared: self.cleared,
        }
    }
}

#[derive(Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum MessageStatus {
    #[default]
    Completed,
    Error,
    Pending,
    Running,
}

fn prune(c: &Context, input: Value) -> Result<Value, MemberError> {
    let i: Prune = read(input)?;
    let rule: PruneRule = rules::prune_rule(&OpenCodeSettings::read(&c.settings));
    for (name, ours) in [("protect_tokens", rule.protect), ("minimum_tokens", rule.minimum)] {
        if c.facts.get(name).is_some_and(|given| *given != ours) {
            return Err(MemberError::Input(format!("{name} is not {ours}")));
        }
    }
    let outputs: Vec<Vec<String>> =
        i.messages.iter().map(|m| m.tools.iter().map(|t| "x".repeat(t.chars)).collect()).collect();
    let messages: Vec<PruneMessage<'_>> = i
        .messages
        .iter()
        .zip(&outputs)
        .map(|(m, outputs)| PruneMessage {
            user: m.role.is_user(),
            summary: m.summary,
            results: m.tools.iter().zip(outputs).map(|(t, output)| t.result(output)).collect(),
        })
        .collect();
    let chosen = rules::prune(&messages, i.prune.then_some(rule), utf16_div4_round);
    Ok(chosen.into_iter().map(|(message, part)| json!(format!("{message}.{part}"))).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectTail {
    #[serde(deserialize_with = "nullable")]
    tail_turns: Option<i64>,
    budget: u64,
    messages: usize,
    turns: Vec<TurnSize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnSize {
    first: usize,
    end: usize,
    suffix_tokens: Vec<u64>,
}

fn select_tail(_: &Context, input: Value) -> Result<Value, MemberError> {
    let i: SelectTail = read(input)?;
    let mut next = i.turns.first().map_or(i.messages, |t| t.first);
    for t in &i.turns {
        if t.first != next || t.end < t.first || t.suffix_tokens.len() != t.end - t.first {
            return Err(MemberError::Input(format!(
                "turn from {} to {}: expected one suffix per message and no gap between turns",
                t.first, t.end
            )));
        }
        next = t.end;
    }
    if next != i.messages {
        return Err(MemberError::Input(format!(
            "messages: expected {next}, the end of the last turn, found {}",
            i.messages
        )));
    }
    let span =
        |t: TurnSize| TurnSpan { first: t.first, end: t.end, suffix_tokens: t.suffix_tokens };
    let turns: Vec<TurnSpan> = i.turns.into_iter().map(span).collect();
    Ok(json!(rules::select_tail(&turns, i.tail_turns, i.budget)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredInput {
    id: String,
    role: CaseSpeaker,
    parent: Option<String>,
    #[serde(default)]
    summary: bool,
    #[serde(default)]
    finished: bool,
    #[serde(default)]
    error: bool,
    compaction: Option<Marker>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Marker {
    tail_start_id: Option<String>,
}

fn filter_compacted(_: &Context, input: Value) -> Result<Value, MemberError> {
    let messages: Vec<StoredInput> = read(input)?;
    let mut numbers: HashMap<&str, MessageId> = HashMap::new();
    let mut stored: Vec<MessageView> = Vec::new();
    for m in &messages {
        let mut number = |name| {
            let next = MessageId(numbers.len() as u32);
            *numbers.entry(name).or_insert(next)
        };
        stored.push(MessageView {
            id: number(m.id.as_str()),
            user: m.role.is_user(),
            marker: m.compaction.as_ref().map(|c| c.tail_start_id.as_deref().map(&mut number)),
            parent: m.parent.as_deref().map(&mut number),
            summary: m.summary,
            finished: m.finished,
            error: m.error,
        });
    }
    Ok(rules::filter_compacted(&stored).into_iter().map(|k| json!(messages[k].id)).collect())
}
