//! The numbers and small rules of Claude Code as pure functions (facts/claude-code-and-apis.md §1).

use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Form};
use ctxbench_core::tokens::bytes_div4_up;

use crate::tool_names::folded;

/// The levels of one window, tokens (facts §1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Window less the room for a reply.
    pub effective: u64,
    /// Compaction from here on.
    pub compact: u64,
    /// Old tool results may go from here on.
    pub warning: u64,
}

/// What the levels are made of, tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelRule {
    /// Window to compact within, where it is not the model's.
    pub window: Option<u64>,
    /// Largest room left for a reply.
    pub reserve: u64,
    /// Room below the effective window at which it compacts.
    pub buffer: u64,
    /// Room below that at which it warns.
    pub warning: u64,
    /// Per cent of the effective window that may only lower the threshold; 100 = no effect.
    pub percent: u64,
}

impl LevelRule {
    /// `effective = window − min(largest reply, reserve)`, `compact = effective − buffer`, `warning = compact − distance`.
    pub fn levels(&self, window: u64, max_output: u64) -> Levels {
        let window = self.window.map_or(window, |w| w.min(window));
        let effective = window.saturating_sub(max_output.min(self.reserve));
        let compact = effective.saturating_sub(self.buffer).min(effective * self.percent / 100);
        Levels { effective, compact, warning: compact.saturating_sub(self.warning) }
    }
}

/// Tools whose old results may be cleared: those that can be asked again or whose effect is on disk (facts §1.2, grade C).
pub fn is_compactable(name: &str) -> bool {
    let f = folded(name);
    let named = matches!(
        f.as_str(),
        "read"
            | "readfile"
            | "view"
            | "viewfile"
            | "bash"
            | "shell"
            | "grep"
            | "glob"
            | "edit"
            | "editfile"
            | "multiedit"
            | "write"
            | "writefile"
    );
    named || f.starts_with("web")
}

/// Positions of the results that a clearing would take: all compactable ones but the newest `keep`, and only if `minimum` tokens of four
/// bytes go in all. The saving comes with them.
pub fn clearable(blocks: &[Arc<Block>], keep: usize, minimum: u64, placeholder: &str) -> (Vec<usize>, u64) {
    let may_go = |b: &Block| b.kind == BlockKind::Output && b.call.as_ref().is_some_and(|c| is_compactable(&c.name));
    let mut at: Vec<usize> = (0..blocks.len()).filter(|&i| may_go(&blocks[i])).collect();
    at.truncate(at.len().saturating_sub(keep));
    at.retain(|&i| blocks[i].form != Form::Cleared);
    let left = bytes_div4_up(placeholder);
    let saved = at.iter().map(|&i| bytes_div4_up(&blocks[i].text).saturating_sub(left)).sum();
    if at.is_empty() || saved < minimum { (Vec::new(), 0) } else { (at, saved) }
}

/// Estimate of blocks in tokens of four bytes, names and opaque parts included.
pub fn estimate(blocks: &[Arc<Block>]) -> u64 {
    blocks.iter().map(|b| bytes_div4_up(&b.text) + b.opaque.as_ref().map_or(0, |o| bytes_div4_up(o))).sum()
}

/// The part of an answer that is kept: what stands in `<summary>`, without the `<analysis>` before it. An answer that was cut off may lack
/// the closing tag; one without tags is taken whole. `None` when nothing is left.
pub fn kept_summary(answer: &str) -> Option<String> {
    let without = match (answer.find("<analysis>"), answer.find("</analysis>")) {
        (Some(a), Some(b)) if a < b => format!("{}{}", &answer[..a], &answer[b + "</analysis>".len()..]),
        _ => answer.to_string(),
    };
    let inner = match without.split_once("<summary>") {
        Some((_, rest)) => rest.rsplit_once("</summary>").map_or(rest, |(inner, _)| inner),
        None => &without,
    };
    let inner = inner.trim();
    (!inner.is_empty()).then(|| inner.to_string())
}

/// By how many tokens a refused prompt was too large, where the provider's words say so (facts §2.5): the first number less the second.
pub fn excess(message: &str) -> Option<u64> {
    let mut numbers = message.split(|c: char| !c.is_ascii_digit()).filter(|t| t.len() > 2).filter_map(|t| t.parse::<u64>().ok());
    let (used, limit) = (numbers.next()?, numbers.next()?);
    used.checked_sub(limit).filter(|n| *n > 0)
}

/// What a restored file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    /// Its contents.
    Whole,
    /// Its path: it is too large, or its contents are not known.
    PathOnly,
    /// Nothing: the budget is used up.
    Nothing,
}

/// What each file shows, newest first, from its size in tokens (facts §1.4).
pub fn restorable(sizes: &[Option<u64>], each: u64, total: u64) -> Vec<Restored> {
    let mut left = total;
    sizes
        .iter()
        .map(|size| match size {
            Some(n) if *n <= each && *n <= left => {
                left -= n;
                Restored::Whole
            }
            Some(n) if *n <= each => Restored::Nothing,
            _ => Restored::PathOnly,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{CallRef, Draft, MessageId, Role};
    use proptest::prelude::*;

    const RULE: LevelRule = LevelRule { window: None, reserve: 20_000, buffer: 13_000, warning: 20_000, percent: 100 };

    #[test]
    fn thresholds_as_reported() {
        // facts §1.1: 167,000 of 200k, 967,000 of 1M, warning about 147k
        assert_eq!(RULE.levels(200_000, 64_000), Levels { effective: 180_000, compact: 167_000, warning: 147_000 });
        assert_eq!(RULE.levels(1_000_000, 128_000).compact, 967_000);
        assert_eq!(RULE.levels(200_000, 8_000).compact, 179_000);
        let narrow = LevelRule { window: Some(200_000), ..RULE };
        assert_eq!((narrow.levels(1_000_000, 64_000).compact, narrow.levels(100_000, 64_000).compact), (167_000, 67_000));
        // 85 % of the effective window is above 83.5 % of the window only where it is: it never raises the threshold
        assert_eq!(LevelRule { percent: 95, ..RULE }.levels(200_000, 64_000).compact, 167_000);
        assert_eq!(LevelRule { percent: 50, ..RULE }.levels(200_000, 64_000).compact, 90_000);
    }

    #[test]
    fn tools_are_told_by_their_letters() {
        for name in ["Read", "read_file", "Bash", "grep", "Glob", "WebFetch", "web_search", "edit_file", "Write"] {
            assert!(is_compactable(name), "{name}");
        }
        assert!(!is_compactable("task") && !is_compactable("todo_write"));
    }

    #[test]
    fn only_the_summary_is_kept() {
        assert_eq!(kept_summary("<analysis>a <summary> b</analysis>\n<summary>\nS\n</summary> x").as_deref(), Some("S"));
        assert_eq!(kept_summary("<analysis>a</analysis><summary>cut of").as_deref(), Some("cut of"));
        assert_eq!(kept_summary("plain").as_deref(), Some("plain"));
        assert_eq!(kept_summary("<analysis>only</analysis>"), None);
    }

    #[test]
    fn the_excess_is_read_from_the_error() {
        assert_eq!(excess("prompt is too long: 208310 tokens > 200000 maximum"), Some(8_310));
        assert_eq!(excess("too long"), None);
        assert_eq!(excess("5000 tokens < 9000"), None);
    }

    #[test]
    fn large_files_come_back_as_a_path() {
        let all = restorable(&[Some(5_000), Some(5_001), None, Some(3_000), Some(2_000)], 5_000, 7_500);
        assert_eq!(all, [Restored::Whole, Restored::PathOnly, Restored::PathOnly, Restored::Nothing, Restored::Whole]);
    }

    fn output(name: &str, len: usize) -> Arc<Block> {
        let mut d = Draft::text(BlockKind::Output, Role::Tool, "x".repeat(len));
        d.call = Some(Arc::new(CallRef { id: "1".into(), name: name.into() }));
        d.build(MessageId(0), vec![])
    }

    proptest! {
        #[test]
        fn clearing_is_worth_it_and_spares_the_newest(sizes in prop::collection::vec(0usize..8_000, 0..20), keep in 0usize..5) {
            let blocks: Vec<_> = sizes.iter().map(|&n| output("bash", n)).collect();
            let (at, saved) = clearable(&blocks, keep, 2_000, "gone");
            prop_assert!(at.is_empty() || saved >= 2_000);
            prop_assert!(at.iter().all(|&i| i + keep < blocks.len()));
        }
    }
}
