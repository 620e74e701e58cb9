//! Anthropic Messages: context edits.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wire::format::WireError;
use crate::wire::json::Text;
use ctxbench_core::request::{ClearInputs, ClearTrigger, ServerEdit};

/// `context_management` of a request.
#[derive(Deserialize, Serialize)]
pub(crate) struct ContextManagement<'a> {
    #[serde(default)]
    edits: Vec<GivenEdit<'a>>,
}

#[derive(Default, Deserialize, Serialize)]
struct GivenEdit<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_at_least: Option<Amount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exclude_tools: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clear_tool_inputs: Option<Inputs>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_after_compaction: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Text<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Amount {
    #[serde(rename = "type")]
    kind: String,
    value: u64,
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Inputs {
    All(bool),
    Of(Vec<String>),
}

impl<'a> ContextManagement<'a> {
    /// Creates the edits of a request.
    pub(super) fn new(edits: &'a [ServerEdit]) -> Self {
        ContextManagement { edits: edits.iter().map(GivenEdit::new).collect() }
    }
}

impl<'a> GivenEdit<'a> {
    fn new(edit: &'a ServerEdit) -> Self {
        let of = |kind: &str| GivenEdit { kind: kind.into(), ..GivenEdit::default() };
        match edit {
            ServerEdit::ClearThinking { keep } => {
                let turns = |n| json!({"type": "thinking_turns", "value": n});
                let keep = keep.map_or_else(|| "all".into(), turns);
                GivenEdit { keep: Some(keep), ..of("clear_thinking_20251015") }
            }
            ServerEdit::ClearToolUses { trigger, keep, clear_at_least, exclude, inputs } => {
                let trigger = match trigger {
                    ClearTrigger::InputTokens(n) => Amount::of_tokens(*n),
                    ClearTrigger::ToolUses(n) => Amount { kind: "tool_uses".into(), value: *n },
                };
                GivenEdit {
                    trigger: Some(trigger),
                    keep: Some(json!({"type": "tool_uses", "value": keep})),
                    clear_at_least: (*clear_at_least > 0)
                        .then(|| Amount::of_tokens(*clear_at_least)),
                    exclude_tools: Some(exclude.clone()).filter(|names| !names.is_empty()),
                    clear_tool_inputs: match inputs {
                        ClearInputs::None => None,
                        ClearInputs::All => Some(Inputs::All(true)),
                        ClearInputs::Of(tools) => Some(Inputs::Of(tools.clone())),
                    },
                    ..of("clear_tool_uses_20250919")
                }
            }
            ServerEdit::Compact { trigger, instructions, pause } => GivenEdit {
                trigger: Some(Amount::of_tokens(*trigger)),
                pause_after_compaction: Some(*pause),
                instructions: instructions.as_deref().map(Text::Plain),
                ..of("compact_20260112")
            },
        }
    }
}

impl Amount {
    fn of_tokens(value: u64) -> Amount {
        Amount { kind: "input_tokens".into(), value }
    }

    fn tokens(this: Option<Self>, default: u64) -> Result<u64, WireError> {
        match this {
            None => Ok(default),
            Some(a) if a.kind == "input_tokens" => Ok(a.value),
            Some(a) => Err(WireError::unsupported("trigger", &a.kind, "input_tokens")),
        }
    }

    fn trigger(this: Option<Self>, default: u64) -> Result<ClearTrigger, WireError> {
        match this {
            Some(a) if a.kind == "tool_uses" => Ok(ClearTrigger::ToolUses(a.value)),
            other => Ok(ClearTrigger::InputTokens(Amount::tokens(other, default)?)),
        }
    }
}

impl Inputs {
    fn resolve(this: Option<Self>) -> ClearInputs {
        match this {
            None | Some(Inputs::All(false)) => ClearInputs::None,
            Some(Inputs::All(true)) => ClearInputs::All,
            Some(Inputs::Of(tools)) => ClearInputs::Of(tools),
        }
    }
}

/// Decodes the edits in raw parameters.
pub(super) fn among(params: &serde_json::Map<String, Value>) -> Vec<ServerEdit> {
    let given =
        params.get("context_management").and_then(|g| ContextManagement::deserialize(g).ok());
    given.and_then(|m| m.edits().ok()).unwrap_or_default()
}

impl ContextManagement<'_> {
    /// Documented defaults: clear from 100,000 tokens and keep 3 tool uses, compact from 150,000, keep
    /// thinking.
    pub(crate) fn edits(self) -> Result<Vec<ServerEdit>, WireError> {
        const ACCEPTED: &str =
            "clear_tool_uses_20250919, clear_thinking_20251015, compact_20260112";
        let mut edits = Vec::new();
        for e in self.edits {
            let number = e
                .keep
                .as_ref()
                .and_then(|k| k.get("value"))
                .and_then(Value::as_u64)
                .map(|n| n as usize);
            edits.push(match e.kind.as_str() {
                "clear_tool_uses_20250919" => ServerEdit::ClearToolUses {
                    trigger: Amount::trigger(e.trigger, 100_000)?,
                    keep: number.unwrap_or(3),
                    clear_at_least: Amount::tokens(e.clear_at_least, 0)?,
                    exclude: e.exclude_tools.unwrap_or_default(),
                    inputs: Inputs::resolve(e.clear_tool_inputs),
                },
                "clear_thinking_20251015" => ServerEdit::ClearThinking { keep: number },
                "compact_20260112" => ServerEdit::Compact {
                    trigger: Amount::tokens(e.trigger, 150_000)?,
                    instructions: e.instructions.map(Text::into_shared),
                    pause: e.pause_after_compaction.unwrap_or(false),
                },
                _ => return Err(WireError::unsupported("context edit", &e.kind, ACCEPTED)),
            });
        }
        Ok(edits)
    }
}
