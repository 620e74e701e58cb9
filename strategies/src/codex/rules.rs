//! Codex CLI's rules as pure functions, by release: local token estimates, limits, and the cuts of
//! tool outputs and user messages (docs/sources/codex.md §1.2, §1.4, §3).

use ctxbench_core::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodexSettings {
    pub(crate) auto_compact_limit: Option<u64>,
    pub(crate) limit_scope: LimitScope,
    pub(crate) compact_prompt: Option<Arc<str>>,
    pub(crate) user_message_tokens: u64,
    pub(crate) tool_output_tokens: Option<u64>,
    pub(crate) tool_output_policy: ToolOutputPolicy,
    pub(crate) post_turn_percent: u64,
    pub(crate) stream_retries: u64,
    pub(crate) remote: bool,
    pub(crate) remote_user_tokens: u64,
    pub(crate) base_estimate_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LimitScope {
    Total,
    #[serde(rename = "body_after_prefix")]
    AfterPrefix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ToolOutputPolicy {
    Tokens,
    Bytes,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodexWords {
    pub(crate) summary_prompt: Arc<str>,
    pub(crate) summary_prefix: Arc<str>,
}

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

/// Estimates the tokens of items, each rounded up separately. Base instructions are not included.
pub fn estimate_items(release: Release, blocks: &[Arc<Block>]) -> u64 {
    let items = item_groups(blocks).filter(|g| g[0].kind != BlockKind::Base);
    items.map(|item| estimate_item(release, item)).sum()
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

pub fn estimate_item(release: Release, item: &[Arc<Block>]) -> u64 {
    if let Some(opaque) = item.iter().find_map(|b| b.opaque.as_ref()) {
        return encrypted_estimate(opaque.len() as u64);
    }
    bytes_estimate(match release {
        Release::V169 => item.iter().map(|b| visible_bytes(b)).sum(),
        _ => json_bytes(item),
    })
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
pub fn active_tokens(release: Release, last_total: u64, added: u64, reasoning: u64) -> u64 {
    if release == Release::V063 { last_total } else { last_total + added + reasoning }
}

/// Returns the tokens in use after a history: the last total, estimates of the items after the
/// model's last item, and encrypted reasoning before the last user message.
pub fn tokens_in_use(release: Release, last_total: u64, blocks: &[Arc<Block>]) -> u64 {
    use BlockKind::{Assistant, Call, Compaction, Reasoning, User};
    let of_model = |b: &Arc<Block>| matches!(b.kind, Assistant | Reasoning | Call | Compaction);
    let after = blocks.iter().rposition(of_model).map_or(blocks.len(), |i| i + 1);
    let last_user = blocks.iter().rposition(|b| b.kind == User).unwrap_or(0);
    let hidden = |b: &&Arc<Block>| b.kind == Reasoning && b.opaque.is_some();
    let reasoning = blocks[..last_user].iter().filter(hidden);
    let reasoning = reasoning.map(|b| estimate_item(release, std::slice::from_ref(b))).sum();
    active_tokens(release, last_total, estimate_items(release, &blocks[after..]), reasoning)
}

/// Returns the limit, in tokens in use, that is reached when it counts the tokens after the prefix
/// only. The limit is not capped here; the usable window is a separate stop (docs/sources/codex.md
/// §1.2).
pub fn reached_after_prefix(
    active: u64,
    prefix: u64,
    limit: Option<u64>,
    window: u64,
) -> Option<u64> {
    let full = Some(usable_window(window)).filter(|w| active >= *w);
    let beyond = limit.filter(|l| active - prefix >= *l).map(|l| prefix + l);
    full.or(beyond)
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

/// Returns the length of the compact JSON form of an item, without item IDs.
fn json_bytes(item: &[Arc<Block>]) -> u64 {
    let [first, rest @ ..] = item else { return 0 };
    let (id, name) = first.call.as_ref().map_or(("", ""), |c| (&*c.id, &*c.name));
    let text = &*first.text;
    let form = match first.kind {
        BlockKind::Reasoning => return 0,
        BlockKind::Call => {
            json!({"type": "function_call", "name": name, "arguments": text, "call_id": id})
        }
        BlockKind::Output => json!({"type": "function_call_output", "call_id": id, "output": text}),
        _ => {
            let role = match first.role {
                Role::Assistant => "assistant",
                Role::Developer => "developer",
                Role::System => "system",
                _ => "user",
            };
            json!({"type": "message", "role": role, "content": content_parts(first)})
        }
    };
    // Each additional content part adds a comma.
    let more = rest.iter().flat_map(|b| content_parts(b)).map(|p| 1 + p.to_string().len() as u64);
    form.to_string().len() as u64 + more.sum::<u64>()
}

/// Returns a block's content parts as JSON.
fn content_parts(b: &Block) -> Vec<Value> {
    if let Some(m) = &b.media {
        return vec![json!({"type": "input_image", "image_url": m.url})];
    }
    let kind = if b.role == Role::Assistant { "output_text" } else { "input_text" };
    b.parts().map(|text| json!({"type": kind, "text": text})).collect()
}

/// Limit on tool output, in the unit of the model's policy (docs/sources/codex.md §3).
const OUTPUT_LIMIT: u64 = 10_000;

/// Limit on tool output with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPolicy {
    Bytes(u64),
    /// Tokens, counted as four bytes each.
    Tokens(u64),
}

impl OutputPolicy {
    /// Returns the limit at recording, which is 20 % higher (docs/sources/codex.md §3).
    pub fn at_recording(self) -> Self {
        let more = |n: u64| (n * 6).div_ceil(5);
        match self {
            OutputPolicy::Bytes(n) => OutputPolicy::Bytes(more(n)),
            OutputPolicy::Tokens(n) => OutputPolicy::Tokens(more(n)),
        }
    }
}

/// Returns the limit on tool output from the settings; `None` = outputs are not cut. A configured
/// limit is in tokens and counts as four bytes per token if the policy is in bytes
/// (docs/sources/codex.md §3).
pub fn output_policy(s: &CodexSettings, scale: f64) -> Option<OutputPolicy> {
    let given = s.tool_output_tokens;
    if given == Some(0) {
        return None;
    }
    let default = scale_tokens(OUTPUT_LIMIT, scale);
    Some(match s.tool_output_policy {
        ToolOutputPolicy::Bytes => OutputPolicy::Bytes(given.map_or(default, |n| 4 * n)),
        ToolOutputPolicy::Tokens => OutputPolicy::Tokens(given.unwrap_or(default)),
    })
}

/// Cuts a tool output according to this version.
pub fn cut_draft(release: Release, policy: Option<OutputPolicy>, mut raw: Draft) -> Draft {
    if let (BlockKind::Output, Some(policy)) = (raw.kind, policy) {
        let cut = cut_on_arrival(release, &raw.text, policy);
        if cut != *raw.text {
            raw.form = BlockForm::Truncated;
            raw.text = cut.into();
        }
    }
    raw
}

/// Cuts a message to a token budget: head, marker and tail. These are separate parts in 0.169 and a
/// single part in earlier releases.
pub fn cut_message(release: Release, text: &str, tokens: u64) -> Vec<String> {
    let budget = 4 * tokens as usize;
    let Some(cut) = middle_cut(text, budget) else { return vec![text.to_string()] };
    let marker = format!("…{} tokens truncated…", (text.len() - budget).div_ceil(4));
    let parts = vec![cut.head.to_string(), marker, cut.tail.to_string()];
    if release == Release::V169 { parts } else { vec![parts.concat()] }
}

/// Cuts a tool output that enters the history in the middle, and adds a header that says so. Only
/// 0.169 adds the line with the token count (fn_output_truncation of 0.63 and 0.169; the output of
/// a_midturn in 0.104).
pub fn cut_output(release: Release, text: &str, policy: OutputPolicy) -> String {
    let Some(short) = shortened(text, policy) else { return text.to_string() };
    let lines = text.lines().count();
    let header = match release {
        Release::V063 | Release::V104 => format!("Total output lines: {lines}\n\n"),
        Release::V169 => format!(
            "Warning: truncated output (original token count: {})\nTotal output lines: {lines}\n\n",
            bytes_div4_up(text)
        ),
    };
    format!("{header}{short}")
}

/// Applies the second cut, made when an output is recorded: without a header (docs/sources/codex.md
/// §3).
pub fn cut_record(text: &str, policy: OutputPolicy) -> String {
    shortened(text, policy).unwrap_or_else(|| text.to_string())
}

/// Applies both cuts of one output under the model's policy. The command tool of 0.104 always cuts
/// to 10,000 tokens. Only the record follows the policy (a_midturn: 40,000 bytes are cut to
/// 12,000).
pub fn cut_on_arrival(release: Release, text: &str, policy: OutputPolicy) -> String {
    let first = match (release, policy) {
        (Release::V104, OutputPolicy::Bytes(n)) => OutputPolicy::Tokens(n),
        _ => policy,
    };
    cut_record(&cut_output(release, text, first), policy.at_recording())
}

/// Joins head, marker and tail; `None` if the text fits.
fn shortened(text: &str, policy: OutputPolicy) -> Option<String> {
    let budget = match policy {
        OutputPolicy::Bytes(n) => n,
        OutputPolicy::Tokens(n) => 4 * n,
    } as usize;
    let cut = middle_cut(text, budget)?;
    let marker = match policy {
        OutputPolicy::Bytes(_) => format!("…{} chars truncated…", cut.removed_chars),
        OutputPolicy::Tokens(_) => {
            format!("…{} tokens truncated…", (text.len() - budget).div_ceil(4))
        }
    };
    Some(format!("{}{marker}{}", cut.head, cut.tail))
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
        assert_eq!(estimate_item(Release::V169, &[reasoning]), (3_000 - 650u64).div_ceil(4));
    }

    #[test]
    fn the_command_tool_of_0_104_cuts_to_tokens_and_its_record_to_bytes() {
        // a_midturn of 0.104: 12,000 bytes stay of the 40,000, with the header of the first cut.
        // The tool adds 106 bytes in front, which are cut with the rest: 28,155 characters are
        // removed.
        let text: String = (1..=4_000).map(|n| format!("line number {n}\n")).collect();
        let (head, tail) = (&text[..20_000], &text[46_893..]);
        let first = format!("Total output lines: 4000\n\n{head}…6724 tokens truncated…{tail}");
        let cut = cut_on_arrival(Release::V104, &text, OutputPolicy::Bytes(10_000));
        let removed = first.chars().count() - 12_000;
        let (head, tail) = (&first[..6_000], &first[first.len() - 6_000..]);
        assert_eq!(cut, format!("{head}…{removed} chars truncated…{tail}"));
        assert_eq!(removed + 106, 28_155);
    }
}
