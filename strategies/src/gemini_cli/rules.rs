//! Gemini CLI's rules that depend on sizes: the split of the history, the results to cut before it,
//! and the results to mask (docs/sources/gemini-cli.md §2, §5).

use std::collections::HashSet;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockForm, BlockKind};

use super::contents::{ContentMessage, Side};
use super::preview::{CutSizes, MASKED, full_text};
use super::sizes::{Sizes, estimate_text};

/// Tools with results that are never masked (docs/sources/gemini-cli.md §5).
const EXEMPT: [&str; 4] = ["activate_skill", "ask_user", "enter_plan_mode", "exit_plan_mode"];

/// Returns the number of messages before the split. The split lies before the first user message
/// without results at which the share `goes` of the characters is reached. If there is none,
/// everything is before the split when the history ends with an answer; otherwise the split lies
/// before the last user message without results.
pub(super) fn split(messages: &[ContentMessage], goes: f64, sizes: &mut Sizes) -> usize {
    let sizes: Vec<u64> = messages.iter().map(|m| sizes.json_len(m)).collect();
    let target = sizes.iter().sum::<u64>() as f64 * goes;
    let (mut before, mut last) = (0, 0);
    for (i, (m, size)) in messages.iter().zip(sizes).enumerate() {
        if m.side == Side::User && !m.has_results() {
            if before as f64 >= target {
                return i;
            }
            last = i;
        }
        before += size;
    }
    if messages.last().is_some_and(ContentMessage::is_answer) { messages.len() } else { last }
}

/// Limits for cutting results before a compression.
pub(super) struct CutRule<'a> {
    /// Tokens of the newest results that are not cut.
    pub(super) budget: u64,
    /// Number of characters that older results are cut to.
    pub(super) most: usize,
    /// Text of the note before the cut output.
    pub(super) note: &'a str,
}

/// Cuts the results that exceed the budget, counting from the newest. `next` counts the files.
pub(super) fn cut_results(
    blocks: Vec<Arc<Block>>,
    rule: &CutRule<'_>,
    sizes: &mut Sizes,
    next: &mut u64,
) -> Vec<Arc<Block>> {
    let mut used = 0;
    let mut out = blocks;
    for b in out.iter_mut().rev().filter(|b| b.kind == BlockKind::Output) {
        let tokens = sizes.full_size(b);
        if used + tokens <= rule.budget {
            used += tokens;
            continue;
        }
        *next += 1;
        let text = full_text(b);
        let Some(cut) = CutSizes::new(&text, rule.most) else {
            used += tokens;
            continue;
        };
        let tool = b.call.as_ref().map_or("", |c| &*c.name);
        let shown = cut.render(&text, rule.note, &format!("tool-outputs/{tool}_{next}.txt"));
        used += estimate_text(&shown);
        *b = b.with_text(BlockForm::Truncated, shown);
    }
    out
}

/// Limits for masking results.
#[derive(Clone, Copy)]
pub(super) struct MaskRule {
    /// Tokens of the newest results that stay. The result that crosses this limit is masked.
    pub(super) protect: u64,
    /// Minimum tokens of maskable results. Below it nothing is masked.
    pub(super) minimum: u64,
}

/// Returns the call IDs of the results to mask. The last message is skipped.
pub(super) fn to_mask(
    messages: &[ContentMessage],
    rule: MaskRule,
    sizes: &mut Sizes,
) -> HashSet<Arc<str>> {
    let (mut seen, mut gone) = (0, 0);
    let mut out = HashSet::new();
    let older = messages.split_last().map_or(&[][..], |(_, older)| older);
    for b in older.iter().rev().flat_map(|m| m.parts.iter().rev()) {
        let Some(call) = b.call.as_ref().filter(|_| b.kind == BlockKind::Output) else { continue };
        if EXEMPT.contains(&&*call.name) || b.text.contains(MASKED) {
            continue;
        }
        let tokens = sizes.estimate([b]);
        seen += tokens;
        if seen > rule.protect {
            gone += tokens;
            out.insert(call.id.clone());
        }
    }
    if gone < rule.minimum { HashSet::new() } else { out }
}

#[cfg(test)]
mod tests {
    use super::super::contents::messages;
    use super::*;
    use crate::testing::{block, call_block};

    fn user(size: usize) -> Arc<Block> {
        block(BlockKind::User, 0, &"x".repeat(size))
    }

    fn reply(size: usize) -> Arc<Block> {
        block(BlockKind::Assistant, 0, &"x".repeat(size))
    }

    fn call(id: &str) -> Arc<Block> {
        call_block(BlockKind::Call, id, "read_file", "{}")
    }

    fn output_of(tool: &str, id: &str, size: usize) -> Arc<Block> {
        call_block(BlockKind::Output, id, tool, &"x".repeat(size))
    }

    fn output(id: &str, size: usize) -> Arc<Block> {
        output_of("read_file", id, size)
    }

    #[test]
    fn a_history_that_ends_in_a_loop_of_tools_is_split_before_its_last_prompt() {
        let turn = |size| [user(10), reply(size)];
        let calls = [user(10), call("1"), output("1", 900), call("2")];
        let blocks: Vec<Arc<Block>> = [&turn(100)[..], &turn(100), &calls].concat();
        assert_eq!(split(&messages(blocks.iter()), 0.7, &mut Sizes::default()), 4);
        assert_eq!(split(&[], 0.7, &mut Sizes::default()), 0);
    }

    #[test]
    fn the_line_is_reached_with_equal_size() {
        // 30 + 40 characters of JSON each: {"role":"user","parts":[{"text":""}]} is 38, model 39.
        let (a, b) = (user(62), reply(61));
        let blocks = [a.clone(), b.clone(), a, b];
        // 200 of 400 are exactly half.
        assert_eq!(split(&messages(blocks.iter()), 0.5, &mut Sizes::default()), 2);
        assert_eq!(split(&messages(blocks.iter()), 0.501, &mut Sizes::default()), 4);
    }

    #[test]
    fn short_results_stay_beyond_the_budget() {
        let rule = CutRule { budget: 10, most: 40_000, note: "Cut" };
        let cut = cut_results(vec![output("1", 1_000)], &rule, &mut Sizes::default(), &mut 0);
        assert_eq!(cut[0].form, BlockForm::Verbatim);
    }

    #[test]
    fn masking_protects_the_newest_results_and_needs_a_minimum() {
        let rule = MaskRule { protect: 50_000, minimum: 30_000 };
        let of = |sizes: &[usize], tool: &str| {
            let mut blocks = vec![user(1)];
            for (i, size) in sizes.iter().enumerate() {
                let id = i.to_string();
                blocks.push(call(&id));
                blocks.push(output_of(tool, &id, *size));
            }
            blocks.push(reply(1));
            let masked = to_mask(&messages(blocks.iter()), rule, &mut Sizes::default());
            let mut out: Vec<String> = masked.iter().map(|id| id.to_string()).collect();
            out.sort();
            out
        };
        // Each result is (80,000 + 9 + 13) / 4 = 20,005 tokens, so the third from the end crosses
        // 50,000.
        assert_eq!(of(&[80_000; 5], "read_file"), ["0", "1", "2"]);
        assert_eq!(of(&[80_000; 4], "read_file"), ["0", "1"]);
        assert!(of(&[80_000; 3], "read_file").is_empty());
        assert!(of(&[80_000; 5], "ask_user").is_empty());
    }
}
