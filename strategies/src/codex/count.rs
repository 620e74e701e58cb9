//! Codex CLI's local token estimates, by version (docs/sources/codex.md §3).

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Role};
use ctxbench_core::tokens::json_escapes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// 0.63: the whole JSON of an item; checks after every response.
    V063,
    /// 0.104: the whole JSON of an item; checks before a turn and between steps.
    V104,
    /// 0.169: only the text of an item.
    V169,
}

/// Bytes that an image counts as (docs/sources/codex.md §3).
const IMAGE_BYTES: u64 = 7_373;

/// Estimates the tokens of an item with a single block.
pub fn estimate_item(release: Release, b: &Block) -> u64 {
    estimate_group(release, std::iter::once(b))
}

/// Estimates the tokens of items, each rounded up separately. Base instructions are not included.
pub fn estimate_items(release: Release, blocks: &[Arc<Block>]) -> u64 {
    let items = item_groups(blocks).filter(|g| g[0].kind != BlockKind::Base);
    items.map(|g| estimate_group(release, g.iter().map(|b| &**b))).sum()
}

/// Groups blocks into items: the texts and images of one user message, or a tool output and its
/// images.
pub(crate) fn item_groups(blocks: &[Arc<Block>]) -> impl Iterator<Item = &[Arc<Block>]> {
    blocks.chunk_by(|a, b| {
        let joins = match a.kind {
            BlockKind::User | BlockKind::Image => {
                matches!(b.kind, BlockKind::User | BlockKind::Image)
            }
            BlockKind::Output => b.kind == BlockKind::Image,
            _ => false,
        };
        joins && a.message == b.message
    })
}

fn estimate_group<'a>(release: Release, mut item: impl Iterator<Item = &'a Block> + Clone) -> u64 {
    if let Some(opaque) = item.clone().find_map(|b| b.opaque.as_ref()) {
        return encrypted_estimate(opaque.len() as u64);
    }
    let Some(first) = item.next() else { return 0 };
    let bytes = match release {
        Release::V169 => visible_bytes(first) + item.map(visible_bytes).sum::<u64>(),
        // Each additional content part adds a comma.
        _ => json_bytes(first) + item.map(|b| 1 + part_bytes(b)).sum::<u64>(),
    };
    bytes_estimate(bytes)
}

/// Converts bytes to tokens. In 0.169 they are the bytes of an item's text, before that those of
/// its JSON form.
pub fn bytes_estimate(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// Estimates the tokens of encrypted reasoning. Its bytes are three quarters of the base64 length
/// minus 650.
pub fn encrypted_estimate(len: u64) -> u64 {
    bytes_estimate((len * 3 / 4).saturating_sub(650))
}

/// Returns the tokens in use: the last total, the blocks added after the model's last item, and
/// encrypted reasoning before the last user message. 0.63 counts only the last total.
pub fn active_tokens(
    release: Release,
    last_total: u64,
    added: impl IntoIterator<Item = u64>,
    reasoning: impl IntoIterator<Item = u64>,
) -> u64 {
    match release {
        Release::V063 => last_total,
        _ => last_total + added.into_iter().sum::<u64>() + reasoning.into_iter().sum::<u64>(),
    }
}

/// Returns true if this number of tokens requires a compaction. Always false without a limit.
pub fn must_compact(active: u64, limit: Option<u64>) -> bool {
    limit.is_some_and(|l| active >= l)
}

/// Returns `min(configured, 90 % of the window)`. 0.63 uses the configured value unchanged and has
/// no default (docs/sources/codex.md §1.2).
pub fn effective_limit(release: Release, window: u64, configured: Option<u64>) -> Option<u64> {
    match release {
        Release::V063 => configured,
        _ => Some(configured.map_or(window * 9 / 10, |c| c.min(window * 9 / 10))),
    }
}

/// Returns the usable window, 95 % of the window, which the program reports and to which it fits
/// remote compactions (docs/sources/codex.md §1.2).
pub(crate) fn usable_window(window: u64) -> u64 {
    window * 95 / 100
}

fn visible_bytes(b: &Block) -> u64 {
    let call = b.call.as_ref();
    match b.kind {
        BlockKind::Reasoning => 0,
        BlockKind::Image => IMAGE_BYTES,
        BlockKind::Call => b.bytes() as u64 + call.map_or(0, |c| c.name.len() as u64),
        BlockKind::Output => b.bytes() as u64 + call.map_or(0, |c| c.id.len() as u64),
        _ => b.bytes() as u64,
    }
}

/// Returns the length of the compact JSON form, without item IDs.
fn json_bytes(b: &Block) -> u64 {
    let escaped = |t: &str| serde_escape(t);
    let call = b.call.as_ref();
    let (id, name) = call.map_or(("", ""), |c| (&*c.id, &*c.name));
    match b.kind {
        BlockKind::Reasoning => 0,
        BlockKind::Call => {
            r#"{"type":"function_call","name":,"arguments":,"call_id":}"#.len() as u64
                + escaped(name)
                + escaped(&b.text)
                + escaped(id)
        }
        BlockKind::Output => {
            r#"{"type":"function_call_output","call_id":,"output":}"#.len() as u64
                + escaped(id)
                + escaped(&b.text)
        }
        _ => {
            let role = match b.role {
                Role::Assistant => "assistant",
                Role::Developer => "developer",
                Role::System => "system",
                _ => "user",
            };
            r#"{"type":"message","role":"","content":[]}"#.len() as u64
                + role.len() as u64
                + part_bytes(b)
        }
    }
}

/// Returns the length of a block's content parts as JSON, including the commas between them.
fn part_bytes(b: &Block) -> u64 {
    if let Some(m) = &b.media {
        return r#"{"type":"input_image","image_url":}"#.len() as u64 + serde_escape(&m.url);
    }
    let part = if b.role == Role::Assistant {
        r#"{"type":"output_text","text":}"#
    } else {
        r#"{"type":"input_text","text":}"#
    };
    let parts: Vec<u64> = b.parts().map(|p| part.len() as u64 + serde_escape(p)).collect();
    parts.iter().sum::<u64>() + parts.len() as u64 - 1
}

/// Returns the length of a text as a JSON string, including quotes.
fn serde_escape(text: &str) -> u64 {
    text.len() as u64 + json_escapes(text) + 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, image_block};

    #[test]
    fn text_and_image_of_one_message_are_one_item() {
        let message = |m: u32| [block(BlockKind::User, m, "abc"), image_block(m)];
        // docs/sources/codex.md §3: an image is 7,373 bytes; with a text of 3 bytes 7,376 = 4 ×
        // 1,844.
        assert_eq!(estimate_items(Release::V169, &message(1)), 1_844);
        assert_eq!(estimate_items(Release::V169, &[message(1), message(2)].concat()), 3_688);
        let json = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"abc"},{"type":"input_image","image_url":"data:x"}]}"#;
        assert_eq!(estimate_items(Release::V104, &message(1)), (json.len() as u64).div_ceil(4));
    }

    #[test]
    fn encrypted_reasoning_is_discounted() {
        let reasoning = block(BlockKind::Reasoning, 0, "")
            .map_draft(|d| d.opaque = Some("A".repeat(4_000).into()));
        assert_eq!(estimate_item(Release::V169, &reasoning), (3_000 - 650u64).div_ceil(4));
    }
}
