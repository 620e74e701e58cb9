//! Codex CLI's local token estimates, by version (facts/codex.md §3).

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_core::tokens::json_escapes;

/// Which rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 0.63: whole JSON of an item; checks after every response.
    V063,
    /// 0.104: whole JSON of an item; checks before a turn and between steps.
    V104,
    /// 0.169: text of an item only.
    V169,
}

impl Era {
    /// The rules of a version; unknown ones are the newest.
    pub fn of(version: &str) -> Era {
        match version {
            "0.63" => Era::V063,
            "0.104" => Era::V104,
            _ => Era::V169,
        }
    }
}

/// Bytes that stand for an image (facts/codex.md §3).
const IMAGE_BYTES: u64 = 7_373;

/// Tokens of one item.
pub fn estimate_item(era: Era, b: &Block) -> u64 {
    if let Some(opaque) = &b.opaque {
        return encrypted_estimate(opaque.len() as u64);
    }
    if b.kind == BlockKind::Image {
        return bytes_estimate(IMAGE_BYTES);
    }
    match era {
        Era::V169 => bytes_estimate(text_bytes(b)),
        _ => bytes_estimate(json_bytes(b)),
    }
}

/// Bytes of an item as tokens: of its text in 0.169, of its JSON form before.
pub fn bytes_estimate(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// Encrypted reasoning: three quarters of the base64 length less a constant 650.
pub fn encrypted_estimate(len: u64) -> u64 {
    bytes_estimate((len * 3 / 4).saturating_sub(650))
}

/// The estimate of base instructions and items together, as the program reports it after a compaction.
pub fn history_estimate(base_bytes: u64, items: impl IntoIterator<Item = u64>) -> u64 {
    bytes_estimate(base_bytes) + items.into_iter().sum::<u64>()
}

/// Tokens in use: the last total, what was added after the last item that the model made, and encrypted reasoning before the last
/// user message. 0.63 knows only the last total.
pub fn active_tokens(era: Era, last_total: u64, added: impl IntoIterator<Item = u64>, reasoning: impl IntoIterator<Item = u64>) -> u64 {
    match era {
        Era::V063 => last_total,
        _ => last_total + added.into_iter().sum::<u64>() + reasoning.into_iter().sum::<u64>(),
    }
}

/// Whether so many tokens in use call for a compaction; never without a limit.
pub fn must_compact(active: u64, limit: Option<u64>) -> bool {
    limit.is_some_and(|l| active >= l)
}

fn text_bytes(b: &Block) -> u64 {
    let call = b.call.as_ref();
    match b.kind {
        BlockKind::Reasoning => 0,
        BlockKind::Call => b.bytes() as u64 + call.map_or(0, |c| c.name.len() as u64),
        BlockKind::Output => b.bytes() as u64 + call.map_or(0, |c| c.id.len() as u64),
        _ => b.bytes() as u64,
    }
}

/// Length of the compact JSON form, without ids of items.
fn json_bytes(b: &Block) -> u64 {
    let escaped = |t: &str| serde_escape(t);
    let call = b.call.as_ref();
    let (id, name) = call.map_or(("", ""), |c| (c.id.as_str(), c.name.as_str()));
    match b.kind {
        BlockKind::Reasoning => 0,
        BlockKind::Call => {
            r#"{"type":"function_call","name":,"arguments":,"call_id":}"#.len() as u64 + escaped(name) + escaped(&b.text) + escaped(id)
        }
        BlockKind::Output => r#"{"type":"function_call_output","call_id":,"output":}"#.len() as u64 + escaped(id) + escaped(&b.text),
        _ => {
            let part = if b.role == Role::Assistant { r#"{"type":"output_text","text":}"# } else { r#"{"type":"input_text","text":}"# };
            let role = match b.role {
                Role::Assistant => "assistant",
                Role::Developer => "developer",
                Role::System => "system",
                _ => "user",
            };
            let parts: Vec<u64> = b.parts().map(|p| part.len() as u64 + escaped(p)).collect();
            let commas = parts.len() as u64 - 1;
            r#"{"type":"message","role":"","content":[]}"#.len() as u64 + role.len() as u64 + parts.iter().sum::<u64>() + commas
        }
    }
}

/// Length of a text as a JSON string, quotes included.
fn serde_escape(text: &str) -> u64 {
    text.len() as u64 + json_escapes(text) + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{CallRef, Draft, MessageId};
    use std::sync::Arc;

    fn output(bytes: usize, id: &str) -> Arc<Block> {
        let mut d = Draft::text(BlockKind::Output, Role::Tool, "x".repeat(bytes));
        d.call = Some(Arc::new(CallRef { id: id.into(), name: "exec_command".into() }));
        d.build(MessageId(0), vec![])
    }

    #[test]
    fn the_call_id_counts() {
        // facts/codex.md §3: m_tight_3890, 3,994 bytes of output and a six-byte id are 1,000 tokens.
        assert_eq!(estimate_item(Era::V169, &output(3_994, "call_1")), 1_000);
    }

    #[test]
    fn json_form_of_a_message() {
        let b = Draft::text(BlockKind::User, Role::User, "U1 read small").build(MessageId(0), vec![]);
        let json = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"U1 read small"}]}"#;
        assert_eq!(estimate_item(Era::V104, &b), (json.len() as u64).div_ceil(4));
    }

    #[test]
    fn encrypted_reasoning_is_discounted() {
        let mut d = Draft::text(BlockKind::Reasoning, Role::Assistant, "");
        d.opaque = Some("A".repeat(4_000).into());
        assert_eq!(estimate_item(Era::V169, &d.build(MessageId(0), vec![])), (3_000 - 650u64).div_ceil(4));
    }
}
