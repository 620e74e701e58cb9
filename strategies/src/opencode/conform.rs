//! OpenCode's rules on recorded inputs.

use std::collections::HashMap;

use crate::opencode::rules::{
    self as rules, BUFFER, Limits, OUTPUT_CAP, PruneMessage, PruneResult, Stored, TurnSpan,
};
use crate::opencode::settings::OpenCodeSettings;
use ctxbench_core::block::MessageId;
use ctxbench_core::compaction::PruneRule;
use ctxbench_core::request::Usage;
use ctxbench_core::settings::{Settings, SettingsTable};
use ctxbench_core::tokens::utf16_div4_round;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::conform_texts::{messages_estimate, transcript};
use crate::conform::{Context, Fault, Function, nullable, read};

/// Rules that recorded cases name.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function { name: "estimate", versions: &["1.18"], call: estimate },
    Function { name: "messages_estimate", versions: &["1.18"], call: messages_estimate },
    Function { name: "overflow", versions: &["1.18"], call: overflow },
    Function { name: "tail_budget", versions: &["1.18"], call: tail_budget },
    Function { name: "prune", versions: &["1.18"], call: prune },
    Function { name: "select_tail", versions: &["1.18"], call: select_tail },
    Function { name: "filter_compacted", versions: &["1.18"], call: filter_compacted },
    Function { name: "transcript", versions: &["1.18"], call: transcript },
];

fn estimate(_: &Context, input: Value) -> Result<Value, Fault> {
    Ok(json!(utf16_div4_round(&read::<String>(input)?)))
}

/// Who a message is from.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Speaker {
    User,
    Assistant,
}

impl Speaker {
    pub(super) fn is_user(&self) -> bool {
        matches!(self, Speaker::User)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    context: u64,
    output: u64,
    input: Option<u64>,
}

impl From<Model> for Limits {
    fn from(m: Model) -> Self {
        Limits { context: m.context, output: m.output, input: m.input }
    }
}

/// Settings as the program's configuration spells them; what is left out has its default.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Compaction {
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

impl Compaction {
    fn settings(&self) -> Result<OpenCodeSettings, Fault> {
        let given = serde_json::to_value(self)?;
        let list: Vec<String> =
            given.as_object().into_iter().flatten().map(|(k, v)| format!("{k}={v}")).collect();
        let given = Settings::parse("opencode", OpenCodeSettings::TABLE, &list.join(","));
        Ok(OpenCodeSettings::read(&given.map_err(|e| Fault::Input(e.to_string()))?))
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
    model: Model,
    compaction: Compaction,
    tokens: Tokens,
}

fn overflow(_: &Context, input: Value) -> Result<Value, Fault> {
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
    let limits = Limits::from(i.model);
    let usable = rules::usable(limits, s.reserved, OUTPUT_CAP, BUFFER);
    Ok(
        json!({"usable": usable, "overflow": rules::overflows(s.auto, limits.context, usable, rules::used(&usage))}),
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TailBudget {
    model: Model,
    compaction: Compaction,
}

fn tail_budget(_: &Context, input: Value) -> Result<Value, Fault> {
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
    role: Speaker,
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
    status: Status,
    #[serde(default)]
    cleared: bool,
}

impl PruneTool {
    fn result<'a>(&'a self, output: &'a str) -> PruneResult<'a> {
        PruneResult {
            tool: &self.tool,
            output,
            completed: self.status == Status::Completed,
            cleared: self.cleared,
        }
    }
}

#[derive(Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Status {
    #[default]
    Completed,
    Error,
    Pending,
    Running,
}

fn prune(c: &Context, input: Value) -> Result<Value, Fault> {
    let i: Prune = read(input)?;
    let rule: PruneRule = rules::prune_rule(&OpenCodeSettings::read(&c.settings));
    for (name, ours) in [("protect_tokens", rule.protect), ("minimum_tokens", rule.minimum)] {
        if c.facts.get(name).is_some_and(|given| *given != ours) {
            return Err(Fault::Input(format!("{name} is not {ours}")));
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
    let chosen = rules::prune(&messages, i.prune.then_some(rule));
    Ok(chosen.into_iter().map(|(message, part)| json!(format!("{message}.{part}"))).collect())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SelectTail {
    #[serde(deserialize_with = "nullable")]
    tail_turns: Option<i64>,
    budget: u64,
    messages: usize,
    turns: Vec<Turn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Turn {
    first: usize,
    end: usize,
    suffix_tokens: Vec<u64>,
}

fn select_tail(_: &Context, input: Value) -> Result<Value, Fault> {
    let i: SelectTail = read(input)?;
    let mut next = i.turns.first().map_or(i.messages, |t| t.first);
    for t in &i.turns {
        if t.first != next || t.end < t.first || t.suffix_tokens.len() != t.end - t.first {
            return Err(Fault::Input(format!(
                "turn from {} to {}: expected one suffix per message and no gap between turns",
                t.first, t.end
            )));
        }
        next = t.end;
    }
    if next != i.messages {
        return Err(Fault::Input(format!(
            "messages: expected {next}, the end of the last turn, found {}",
            i.messages
        )));
    }
    let span = |t: Turn| TurnSpan { first: t.first, end: t.end, suffix_tokens: t.suffix_tokens };
    let turns: Vec<TurnSpan> = i.turns.into_iter().map(span).collect();
    Ok(json!(rules::select_tail(&turns, i.tail_turns, i.budget)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredInput {
    id: String,
    role: Speaker,
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

fn filter_compacted(_: &Context, input: Value) -> Result<Value, Fault> {
    let messages: Vec<StoredInput> = read(input)?;
    let mut numbers: HashMap<&str, MessageId> = HashMap::new();
    let mut stored: Vec<Stored> = Vec::new();
    for m in &messages {
        let mut number = |name| {
            let next = MessageId(numbers.len() as u32);
            *numbers.entry(name).or_insert(next)
        };
        stored.push(Stored {
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
