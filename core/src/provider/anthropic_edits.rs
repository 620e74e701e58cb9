//! Anthropic Messages: the context edits that a request asks of the provider.

use serde::Deserialize;

use super::json::{Text, field, list, number, raw, string};
use super::wire::WireError;
use crate::request::ServerEdit;

/// Writes one edit.
pub(crate) fn write(o: &mut Vec<u8>, e: &ServerEdit) {
    let trigger = |o: &mut Vec<u8>, n: u64| {
        raw(o, ",\"trigger\":{\"type\":\"input_tokens\",\"value\":");
        number(o, n);
        o.push(b'}');
    };
    match e {
        ServerEdit::ClearToolUses { trigger: t, keep, clear_at_least, exclude } => {
            raw(o, "{\"type\":\"clear_tool_uses_20250919\"");
            trigger(o, *t);
            raw(o, ",\"keep\":{\"type\":\"tool_uses\",\"value\":");
            number(o, *keep as u64);
            o.push(b'}');
            if *clear_at_least > 0 {
                raw(o, ",\"clear_at_least\":{\"type\":\"input_tokens\",\"value\":");
                number(o, *clear_at_least);
                o.push(b'}');
            }
            if !exclude.is_empty() {
                raw(o, ",\"exclude_tools\":[");
                list(o, exclude, |o, x| string(o, x));
                o.push(b']');
            }
        }
        ServerEdit::Compact { trigger: t, instructions, pause } => {
            raw(o, "{\"type\":\"compact_20260112\"");
            trigger(o, *t);
            raw(o, if *pause { ",\"pause_after_compaction\":true" } else { ",\"pause_after_compaction\":false" });
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
pub(crate) struct Management {
    #[serde(default)]
    edits: Vec<Edit>,
}

#[derive(Deserialize)]
struct Edit {
    #[serde(rename = "type")]
    kind: String,
    trigger: Option<Amount>,
    keep: Option<serde_json::Value>,
    clear_at_least: Option<Amount>,
    exclude_tools: Option<Vec<String>>,
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

impl Amount {
    fn tokens(this: Option<Self>, default: u64) -> Result<u64, WireError> {
        match this {
            None => Ok(default),
            Some(a) if a.kind == "input_tokens" => Ok(a.value),
            Some(a) => Err(WireError::Unsupported { what: "trigger", value: a.kind, known: "input_tokens" }),
        }
    }
}

impl Management {
    /// Defaults as documented: clear from 100,000 tokens keeping 3 tool uses, compact from 150,000.
    pub(crate) fn edits(self) -> Result<Vec<ServerEdit>, WireError> {
        const KNOWN: &str = "clear_tool_uses_20250919, compact_20260112, cache_edits, clear_thinking_20251015 that keeps all";
        let mut edits = Vec::new();
        for e in self.edits {
            let keep = e.keep.as_ref().map(|k| k.get("value").or_else(|| k.get("type")).unwrap_or(k));
            edits.push(match e.kind.as_str() {
                "clear_tool_uses_20250919" => ServerEdit::ClearToolUses {
                    trigger: Amount::tokens(e.trigger, 100_000)?,
                    keep: keep.and_then(serde_json::Value::as_u64).map_or(3, |n| n as usize),
                    clear_at_least: Amount::tokens(e.clear_at_least, 0)?,
                    exclude: e.exclude_tools.unwrap_or_default(),
                },
                "compact_20260112" => ServerEdit::Compact {
                    trigger: Amount::tokens(e.trigger, 150_000)?,
                    instructions: e.instructions.map(|t| t.0),
                    pause: e.pause_after_compaction.unwrap_or(false),
                },
                "cache_edits" => ServerEdit::CacheEdits { results: e.delete.unwrap_or_default().into_iter().map(|t| t.0).collect() },
                "clear_thinking_20251015" if keep.is_some_and(|k| k == "all") => continue,
                _ => return Err(WireError::Unsupported { what: "context edit", value: e.kind, known: KNOWN }),
            });
        }
        Ok(edits)
    }
}
