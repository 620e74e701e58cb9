//! Fixed pieces of every request, as fillers of the recorded sizes.

use crate::case::{Case, FixedPiece, FixedText};
use crate::text::filler_with_escapes;
use ctxbench_core::engine::Fixed;
use ctxbench_core::prelude::*;
use ctxbench_core::request::Tools;
use serde_json::{Value, json};

pub(super) fn fixed(case: &Case) -> Fixed {
    let mut out = Fixed::default();
    for f in &case.fixed {
        match f {
            // The program writes this piece for its summary requests.
            FixedPiece::Base(t) if t.purpose == Some(Purpose::Summary) => {
                out.summary_base.push(piece(t, BlockKind::Base));
            }
            FixedPiece::Base(t) => out.base.push(piece(t, BlockKind::Base)),
            FixedPiece::Context(t) => out.context.push(piece(t, BlockKind::Context)),
            FixedPiece::Tools(t) => out.tools = tools(t.count, t.json_utf16.unwrap_or(0)),
        }
    }
    out
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

fn piece(f: &FixedText, kind: BlockKind) -> Arc<Block> {
    let text = f.text.clone().unwrap_or_else(|| build_filler(f, kind));
    let mut draft = Draft::text(kind, f.role, text);
    if let ([sizes @ .., _], None) = (f.bytes.sizes(), &f.text) {
        let ends = sizes.iter().scan(0, |at, size| {
            *at += size;
            Some(*at)
        });
        draft.splits.extend(ends);
    }
    draft.form = BlockForm::Verbatim;
    draft.build(MessageId(u32::MAX), vec![])
}

/// Builds a filler with the recorded number of characters, if there is one, and with as many line
/// breaks as the JSON form has escapes.
fn build_filler(f: &FixedText, kind: BlockKind) -> String {
    let total = f.bytes.sum();
    let Some(ascii) = f.ascii_chars else {
        let role = json!(f.role);
        let envelope = r#"{"type":"message","role":,"content":[{"type":"input_text","text":""}]}"#;
        let envelope = envelope.len() + role.to_string().len();
        let escapes = f.json_bytes.map_or(0, |n| n.saturating_sub(envelope + total));
        let tag = if kind == BlockKind::Base { "base" } else { "context" };
        return filler_with_escapes(tag, total, escapes);
    };
    let others = f.other_chars.unwrap_or(0);
    let escapes = f.json_utf16.unwrap_or(0).saturating_sub(ascii + others + 2);
    let wide = match total.saturating_sub(ascii).checked_div(others) {
        Some(2) => 'é',
        _ => '─',
    };
    let mut text = filler_with_escapes("context", ascii, escapes);
    text.extend(std::iter::repeat_n(wide, others));
    text
}
