//! Anthropic Messages: context edits.

use serde::Deserialize;

use crate::wire::WireError;
use crate::wire::json::{Text, field, list, number, raw, string};
use ctxbench_core::request::{ClearInputs, ClearTrigger, ServerEdit};

fn amount(o: &mut Vec<u8>, key: &str, kind: &str, n: u64) {
    raw(o, ",\"");
    raw(o, key);
    raw(o, "\":{\"type\":\"");
    raw(o, kind);
    raw(o, "\",\"value\":");
    number(o, n);
    o.push(b'}');
}

fn names(o: &mut Vec<u8>, key: &str, names: &[String]) {
    raw(o, key);
    list(o, names, |o, x| string(o, x));
    o.push(b']');
}

/// Encodes one edit.
pub(crate) fn write(o: &mut Vec<u8>, e: &ServerEdit) {
    match e {
        ServerEdit::ClearThinking { keep } => {
            raw(o, "{\"type\":\"clear_thinking_20251015\"");
            match keep {
                Some(n) => amount(o, "keep", "thinking_turns", *n as u64),
                None => raw(o, ",\"keep\":\"all\""),
            }
        }
        ServerEdit::ClearToolUses { trigger, keep, clear_at_least, exclude, inputs } => {
            raw(o, "{\"type\":\"clear_tool_uses_20250919\"");
            match trigger {
                ClearTrigger::InputTokens(n) => amount(o, "trigger", "input_tokens", *n),
                ClearTrigger::ToolUses(n) => amount(o, "trigger", "tool_uses", *n),
            }
            amount(o, "keep", "tool_uses", *keep as u64);
            if *clear_at_least > 0 {
                amount(o, "clear_at_least", "input_tokens", *clear_at_least);
            }
            if !exclude.is_empty() {
                names(o, ",\"exclude_tools\":[", exclude);
            }
            match inputs {
                ClearInputs::None => {}
                ClearInputs::All => raw(o, ",\"clear_tool_inputs\":true"),
                ClearInputs::Of(tools) => names(o, ",\"clear_tool_inputs\":[", tools),
            }
        }
        ServerEdit::Compact { trigger: t, instructions, pause } => {
            raw(o, "{\"type\":\"compact_20260112\"");
            amount(o, "trigger", "input_tokens", *t);
            raw(
                o,
                if *pause {
                    ",\"pause_after_compaction\":true"
                } else {
                    ",\"pause_after_compaction\":false"
                },
            );
            if let Some(i) = instructions {
                field(o, ",\"instructions\":", i);
            }
        }
        ServerEdit::CacheEdits { results } => {
            raw(o, "{\"type\":\"cache_edits\",\"delete\":[");
            list(o, results, |o, x| string(o, x));
            o.push(b']');
        }
    }
    o.push(b'}');
}

/// `context_management` of a request.
#[derive(Deserialize)]
pub(crate) struct ContextManagement {
    #[serde(default)]
    edits: Vec<GivenEdit>,
}

#[derive(Deserialize)]
struct GivenEdit {
    #[serde(rename = "type")]
    kind: String,
    trigger: Option<Amount>,
    keep: Option<serde_json::Value>,
    clear_at_least: Option<Amount>,
    exclude_tools: Option<Vec<String>>,
    clear_tool_inputs: Option<Inputs>,
    pause_after_compaction: Option<bool>,
    instructions: Option<Text>,
    delete: Option<Vec<Text>>,
}

#[derive(Deserialize)]
struct Amount {
    #[serde(rename = "type")]
    kind: String,
    value: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Inputs {
    All(bool),
    Of(Vec<String>),
}

impl Amount {
    fn tokens(this: Option<Self>, default: u64) -> Result<u64, WireError> {
        match this {
            None => Ok(default),
            Some(a) if a.kind == "input_tokens" => Ok(a.value),
            Some(a) => Err(WireError::Unsupported {
                what: "trigger",
                value: a.kind,
                known: "input_tokens",
            }),
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
pub(super) fn among(params: &serde_json::Map<String, serde_json::Value>) -> Vec<ServerEdit> {
    let given =
        params.get("context_management").and_then(|g| ContextManagement::deserialize(g).ok());
    given.and_then(|m| m.edits().ok()).unwrap_or_default()
}

impl ContextManagement {
    /// Documented defaults: clear from 100,000 tokens and keep 3 tool uses, compact from 150,000, keep
    /// thinking.
    pub(crate) fn edits(self) -> Result<Vec<ServerEdit>, WireError> {
        const ACCEPTED: &str =
            "clear_tool_uses_20250919, clear_thinking_20251015, compact_20260112, cache_edits";
        let mut edits = Vec::new();
        for e in self.edits {
            let number = e
                .keep
                .as_ref()
                .and_then(|k| k.get("value"))
                .and_then(serde_json::Value::as_u64)
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
                    instructions: e.instructions.map(|t| t.0),
                    pause: e.pause_after_compaction.unwrap_or(false),
                },
                "cache_edits" => ServerEdit::CacheEdits {
                    results: e.delete.unwrap_or_default().into_iter().map(|t| t.0).collect(),
                },
                _ => {
                    return Err(WireError::Unsupported {
                        what: "context edit",
                        value: e.kind,
                        known: ACCEPTED,
                    });
                }
            });
        }
        Ok(edits)
    }
}
