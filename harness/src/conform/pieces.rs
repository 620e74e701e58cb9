//! Fixed pieces of every request, as fillers of the recorded sizes.

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::engine::Fixed;
use ctxbench_core::request::Tools;
use ctxbench_strategies::conform::text::{expand, filler_with_escapes};
use serde_json::{Value, json};

use super::case::{Case, CaseError};

pub(super) fn fixed(case: &Case) -> Result<Fixed, CaseError> {
    let mut out = Fixed::default();
    for f in &case.fixed {
        let kind = f["kind"].as_str().unwrap_or("");
        match kind {
            // The program writes this piece for its summary requests.
            "base" if f["for"] == "summary" => out.summary_base.push(piece(f, BlockKind::Base)?),
            "base" => out.base.push(piece(f, BlockKind::Base)?),
            "context" => out.context.push(piece(f, BlockKind::Context)?),
            "tools" => {
                let count = f["count"].as_u64().unwrap_or(0) as usize;
                let size = f["json_utf16"].as_u64().unwrap_or(0) as usize;
                out.tools = tools(count, size);
            }
            other => {
                return Err(CaseError::Unknown { what: "fixed piece", name: other.to_string() });
            }
        }
    }
    Ok(out)
}

/// Builds a filler of `total` characters: ASCII with as many line breaks as the JSON form has
/// escapes, and other characters of the recorded width.
fn build_filler(f: &Value, total: usize, ascii: usize) -> String {
    let of = |name: &str| f.get(name).and_then(Value::as_u64).unwrap_or(0) as usize;
    let others = of("other_chars");
    let escapes = of("json_utf16").saturating_sub(ascii + others + 2);
    let wide = match total.saturating_sub(ascii).checked_div(others) {
        Some(2) => 'é',
        _ => '─',
    };
    let mut text = filler_with_escapes("context", ascii, escapes);
    text.extend(std::iter::repeat_n(wide, others));
    text
}

/// Builds definitions of `count` tools, as JSON of at least `size` characters.
fn tools(count: usize, size: usize) -> Option<Arc<Tools>> {
    let tool = |description: &str| json!({"name": "tool", "description": description, "input_schema": {"type": "object"}});
    let mut all = vec![tool(""); count];
    let missing = size.saturating_sub(Value::from(all.clone()).to_string().len());
    if let Some(first) = all.first_mut() {
        *first = tool(&"x".repeat(missing));
    }
    Tools::new(&all)
}

fn piece(f: &Value, kind: BlockKind) -> Result<Arc<Block>, CaseError> {
    let role = role_of(f["role"].as_str().unwrap_or(""))?;
    let tag = f["kind"].as_str().unwrap_or("");
    let mut draft = match f.get("text") {
        Some(t) => Draft::text(kind, role, expand(t)?),
        None => {
            let sizes: Vec<usize> = match &f["bytes"] {
                Value::Array(list) => {
                    list.iter().filter_map(Value::as_u64).map(|n| n as usize).collect()
                }
                v => vec![v.as_u64().unwrap_or(0) as usize],
            };
            let total: usize = sizes.iter().sum();
            // The JSON form of a recorded piece is longer than its text because of escapes. A
            // filler with the same number of line breaks has the same length.
            let envelope =
                r#"{"type":"message","role":"","content":[{"type":"input_text","text":""}]}"#.len()
                    + f["role"].as_str().unwrap_or("").len();
            let escapes = f
                .get("json_bytes")
                .and_then(Value::as_u64)
                .map_or(0, |j| (j as usize).saturating_sub(envelope + total));
            let text = match f.get("ascii_chars").and_then(Value::as_u64) {
                Some(ascii) => build_filler(f, total, ascii as usize),
                None => filler_with_escapes(tag, total, escapes),
            };
            let mut d = Draft::text(kind, role, text);
            let mut at = 0;
            for s in &sizes[..sizes.len() - 1] {
                at += s;
                d.splits.push(at);
            }
            d
        }
    };
    draft.form = ctxbench_core::block::BlockForm::Verbatim;
    Ok(draft.build(MessageId(u32::MAX), vec![]))
}

fn role_of(name: &str) -> Result<Role, CaseError> {
    Ok(match name {
        "instructions" => Role::Instructions,
        "system" => Role::System,
        "developer" => Role::Developer,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        other => return Err(CaseError::Unknown { what: "role", name: other.to_string() }),
    })
}
