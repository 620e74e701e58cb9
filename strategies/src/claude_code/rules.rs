//! Numbers and small rules of Claude Code as pure functions (docs/sources/claude-code.md §1).

use ctxbench_core::compaction::tools::{folded, is_edit, is_read};
use ctxbench_core::prelude::*;
use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaudeCodeSettings {
    pub(crate) auto: bool,
    pub(crate) auto_compact_window: Option<u64>,
    pub(crate) output_reserve: u64,
    pub(crate) buffer: u64,
    pub(crate) threshold_percent: u64,
    pub(crate) warning_distance: u64,
    pub(crate) blocking_buffer: u64,
    pub(crate) microcompact: Micro,
    pub(crate) micro_keep: u64,
    pub(crate) micro_minimum: u64,
    pub(crate) micro_gap_ms: u64,
    pub(crate) micro_gap_keep: u64,
    pub(crate) micro_active: u64,
    pub(crate) output_chars: u64,
    pub(crate) shell_chars: u64,
    pub(crate) search_chars: u64,
    pub(crate) results_chars: u64,
    pub(crate) summary_max_tokens: u64,
    pub(crate) restore_files: u64,
    pub(crate) restore_file_tokens: u64,
    pub(crate) restore_total_tokens: u64,
    pub(crate) restore_skill_tokens: u64,
    pub(crate) restore_skills_tokens: u64,
    pub(crate) restore_plan: bool,
    pub(crate) scoped_rules: bool,
    pub(crate) keep_messages: u64,
    pub(crate) session_memory: bool,
    pub(crate) memory_start_tokens: u64,
    pub(crate) memory_growth_tokens: u64,
    pub(crate) memory_keep_tokens: u64,
    pub(crate) memory_keep_texts: u64,
    pub(crate) memory_keep_most_tokens: u64,
    pub(crate) max_failures: u64,
    pub(crate) max_refills: u64,
    pub(crate) overflow_retries: u64,
    pub(crate) trim: Trim,
    pub(crate) hook_before: Option<Arc<str>>,
    pub(crate) hook_blocks: HookBlocks,
    pub(crate) hook_after: Option<Arc<str>>,
    pub(crate) precompute: bool,
    pub(crate) idle_compaction: bool,
    pub(crate) idle_min_tokens: u64,
    pub(crate) idle_share: f64,
    pub(crate) resume: Resume,
    pub(crate) resume_idle_ms: u64,
    pub(crate) resume_min_tokens: u64,
    pub(crate) resume_keep_messages: u64,
    pub(crate) trigger: Trigger,
    pub(crate) cache_ttl: CacheTtl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Micro {
    /// Nothing: tokens go by compaction alone.
    Off,
    /// Above the warning level, if it saves enough.
    Count,
    /// After a pause that outlasts the cache.
    Time,
    /// When too many results are active: the provider takes them out and its cached prefix
    /// stays valid.
    CacheEdits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trim {
    /// The oldest groups, which the summary replaces unread.
    Oldest,
    /// The newest groups; the cached prefix stays, and these groups stay in the view after
    /// the summary.
    Tail,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HookBlocks {
    Nothing,
    /// Those that the user asks for.
    #[serde(rename = "manual")]
    ManualCompaction,
    /// Those that come by themselves.
    #[serde(rename = "automatic")]
    Auto,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Resume {
    Full,
    /// A summary of it and the newest exchanges.
    Summary,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trigger {
    Threshold,
    Limit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CacheTtl {
    Auto,
    #[serde(rename = "5m")]
    FiveMinutes,
    #[serde(rename = "1h")]
    OneHour,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaudeCodeWords {
    pub(crate) summary_prompt: Arc<str>,
    pub(crate) lead_in: Arc<str>,
    pub(crate) go_on: Arc<str>,
    pub(crate) newest_follow: Arc<str>,
    pub(crate) cleared: Arc<str>,
    pub(crate) left_out: Arc<str>,
    pub(crate) memory_prompt: Arc<str>,
    pub(crate) memory_so_far: Arc<str>,
    pub(crate) notes_lead_in: Arc<str>,
    pub(crate) wu2_prompt: Arc<str>,
    pub(crate) cut: Arc<str>,
}

/// Behavior of a version, apart from its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conduct {
    /// As documented and reported to 2.1.240.
    Reported,
    /// As driven: 2.1.332 keeps the newest reply (docs/sources/claude-code.md §1.3).
    Driven,
    /// With two tiers before each request (`described.rs`). The account says nothing about a restart
    /// and about summaries of one side of a message.
    ThreeTiers,
}

impl ClaudeCodeSettings {
    /// Returns whether a hook blocks a compaction: a manual one (`by_hand`) or an automatic one.
    pub fn blocks_compaction(&self, by_hand: bool) -> bool {
        match self.hook_blocks {
            HookBlocks::Nothing => false,
            HookBlocks::ManualCompaction => by_hand,
            HookBlocks::Auto => !by_hand,
            HookBlocks::Both => true,
        }
    }

    /// Joins the additions to the summary's instruction: the user's, then the hook's.
    pub fn instructions(&self, user: Option<&str>) -> Option<String> {
        let said: Vec<&str> = user.into_iter().chain(self.hook_before.as_deref()).collect();
        (!said.is_empty()).then(|| said.join("\n\n"))
    }

    /// Returns the hook's text to show after the summary and the restored blocks.
    pub fn hook_block(&self, s: &mut Engine) -> Option<Arc<Block>> {
        let text = self.hook_after.clone()?;
        Some(s.synthetic(BlockKind::Marker, Role::User, text, Vec::new()))
    }
}

/// Levels of a window, tokens (docs/sources/claude-code.md §1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Window without the reserve for a reply.
    pub effective: u64,
    /// Level from which the conversation is compacted.
    pub compact: u64,
    /// Level from which old tool results may be cleared.
    pub warning: u64,
}

/// `effective = window − min(largest reply, reserve)`, `compact = effective − buffer`, `warning =
/// compact − distance`. The percentage can only lower the compaction level.
pub fn levels(s: &ClaudeCodeSettings, window: u64, max_output: u64) -> Levels {
    let window = s.auto_compact_window.map_or(window, |w| w.min(window));
    let effective = window.saturating_sub(max_output.min(s.output_reserve));
    let compact = effective.saturating_sub(s.buffer).min(effective * s.threshold_percent / 100);
    Levels { effective, compact, warning: compact.saturating_sub(s.warning_distance) }
}

/// Returns whether old results of a tool may be cleared. This is allowed for results that can be
/// requested again or have an effect on disk (docs/sources/claude-code.md §1.2, grade C).
pub fn is_compactable(name: &str) -> bool {
    let f = folded(name);
    let is_shell_or_search = matches!(&*f, "bash" | "shell" | "grep" | "glob");
    is_read(name) || is_edit(name) || is_shell_or_search || f.starts_with("web")
}

fn may_be_cleared(b: &Block) -> bool {
    b.kind == BlockKind::Output && b.call.as_ref().is_some_and(|c| is_compactable(&c.name))
}

/// Returns the positions of the results to clear: all compactable results without the newest `keep`,
/// if clearing saves at least `minimum` tokens of four bytes in total.
pub fn clearable(blocks: &[Arc<Block>], keep: u64, minimum: u64, placeholder: &str) -> Vec<usize> {
    let mut at: Vec<usize> = (0..blocks.len()).filter(|&i| may_be_cleared(&blocks[i])).collect();
    at.truncate(at.len().saturating_sub(keep as usize));
    at.retain(|&i| blocks[i].form != BlockForm::Cleared);
    let left = bytes_div4_up(placeholder);
    let saved: u64 = at.iter().map(|&i| bytes_div4_up(&blocks[i].text).saturating_sub(left)).sum();
    if saved < minimum { Vec::new() } else { at }
}

/// Returns whether the output of a tool is saved to a file because of its size in bytes; a limit of 0
/// is none (docs/sources/claude-code.md §1.2). The output of a file read is never saved to another
/// file. This is our choice; the sources speak of tool results in general.
pub fn is_too_long(s: &ClaudeCodeSettings, tool: &str, bytes: u64) -> bool {
    if is_read(tool) {
        return false;
    }
    let own = match folded(tool).as_str() {
        "bash" | "shell" => s.shell_chars,
        "grep" => s.search_chars,
        _ => 0,
    };
    [s.output_chars, own].iter().any(|&most| most > 0 && bytes > most)
}

/// Returns the positions of the results from `from` on that are saved to files because their total
/// size in bytes is larger than `most`; 0 = no limit. The largest are saved first, until the rest
/// fits. Results of file reads neither count nor are saved. Both rules are our choice.
pub fn too_much(blocks: &[Arc<Block>], from: usize, most: u64) -> Vec<usize> {
    let may_go = |b: &Block| {
        b.kind == BlockKind::Output
            && b.form == BlockForm::Verbatim
            && !b.call.as_ref().is_some_and(|c| is_read(&c.name))
    };
    let size = |i: usize| blocks[i].text.len() as u64;
    let mut found: Vec<usize> = (from..blocks.len()).filter(|&i| may_go(&blocks[i])).collect();
    let mut total: u64 = found.iter().map(|&i| size(i)).sum();
    found.sort_by_key(|&i| std::cmp::Reverse(size(i)));
    let mut gone = Vec::new();
    for i in found {
        if most == 0 || total <= most {
            break;
        }
        total -= size(i);
        gone.push(i);
    }
    gone
}

/// Returns the index after the last summary and its restored blocks. Nothing before it stays
/// verbatim.
fn after_summary(history: &[Arc<Block>]) -> usize {
    history
        .iter()
        .rposition(|b| matches!(b.kind, BlockKind::Summary | BlockKind::File | BlockKind::Marker))
        .map_or(0, |i| i + 1)
}

/// Returns the index of the first of the newest `n` messages, with calls and results together, but
/// never before a summary.
pub fn last_messages(history: &[Arc<Block>], n: usize) -> usize {
    let begins = |&i: &usize| i == 0 || history[i - 1].message != history[i].message;
    let Some(last) = n.checked_sub(1) else { return history.len() };
    let first = (0..history.len()).rev().filter(begins).nth(last).unwrap_or(0);
    whole_from(history, first).max(after_summary(history))
}

/// Returns the index of the first block of the newest reply, but never before the end of a summary.
pub fn newest_reply(history: &[Arc<Block>]) -> usize {
    let Some(at) = history.iter().rposition(|b| is_reply(b)) else { return after_summary(history) };
    let is_earlier = |b: &Arc<Block>| b.message != history[at].message;
    let earlier = history[..at].iter().rposition(is_earlier);
    earlier.map_or(0, |i| i + 1).max(after_summary(history))
}

/// Returns the last position up to `at` where a cut does not separate a call from its result.
fn whole_from(history: &[Arc<Block>], at: usize) -> usize {
    group_starts(history).into_iter().rfind(|&i| i <= at).unwrap_or(0)
}

/// Returns the start of the verbatim tail after session notes (docs/sources/claude-code.md §1.5). This
/// is at most `unknown`, where the notes end, and further back until the minimum is reached or the
/// maximum would be exceeded.
pub fn tail_start(history: &[Arc<Block>], unknown: usize, s: &ClaudeCodeSettings) -> usize {
    let texts = |from: usize| {
        let mut messages: Vec<_> =
            history[from..].iter().filter(|b| is_words(b)).map(|b| b.message).collect();
        messages.dedup();
        messages.len() as u64
    };
    let enough = |from: usize| {
        estimate(&history[from..]) >= s.memory_keep_tokens && texts(from) >= s.memory_keep_texts
    };
    let floor = after_summary(history);
    let mut at = if unknown == history.len() { unknown } else { whole_from(history, unknown) };
    for i in group_starts(history).into_iter().rev().filter(|&i| i >= floor) {
        if i >= at {
            continue;
        }
        if enough(at) || estimate(&history[i..]) > s.memory_keep_most_tokens {
            break;
        }
        at = i;
    }
    at.max(floor.min(history.len()))
}

fn is_words(b: &Block) -> bool {
    matches!(b.kind, BlockKind::User | BlockKind::Assistant) && !b.text.is_empty()
}

/// Returns the index of the first block that the last usage does not include.
pub fn new_from(blocks: &[Arc<Block>]) -> usize {
    blocks.iter().rposition(|b| is_reply(b)).map_or(0, |i| i + 1)
}

/// Estimates the tokens of the context: the last usage plus the new blocks at four bytes a token.
/// Without a usage, everything including tools is estimated.
pub fn believed(s: &Engine, reported: Option<u64>) -> u64 {
    let blocks = s.context.blocks();
    let tools = || s.fixed.tools.as_ref().map_or(0, |t| bytes_div4_up(t.json.get()));
    match reported {
        Some(n) => n + estimate(&blocks[new_from(blocks)..]),
        None => estimate(blocks) + tools(),
    }
}

/// Estimates the tokens of blocks at four bytes each, including names and opaque parts.
pub fn estimate(blocks: &[Arc<Block>]) -> u64 {
    blocks
        .iter()
        .map(|b| bytes_div4_up(&b.text) + b.opaque.as_ref().map_or(0, |o| bytes_div4_up(o)))
        .sum()
}

/// Extracts the summary from an answer: the text in `<summary>`, without the `<analysis>` before
/// it. The closing tag may be missing. Without tags the whole text is the summary. `None` if the
/// result is empty.
pub fn kept_summary(answer: &str) -> Option<String> {
    let without = match (answer.find("<analysis>"), answer.find("</analysis>")) {
        (Some(a), Some(b)) if a < b => {
            format!("{}{}", &answer[..a], &answer[b + "</analysis>".len()..])
        }
        _ => answer.to_string(),
    };
    let inner = match without.split_once("<summary>") {
        Some((_, rest)) => rest.rsplit_once("</summary>").map_or(rest, |(inner, _)| inner),
        None => &without,
    };
    let inner = inner.trim();
    (!inner.is_empty()).then(|| inner.to_string())
}

/// Parses the tokens by which a refused prompt was too large from the provider's message
/// (docs/sources/anthropic-api.md §2.5): the first number minus the second.
pub fn excess(message: &str) -> Option<u64> {
    let mut numbers = message
        .split(|c: char| !c.is_ascii_digit())
        .filter(|t| t.len() > 2)
        .filter_map(|t| t.parse::<u64>().ok());
    let (used, limit) = (numbers.next()?, numbers.next()?);
    used.checked_sub(limit).filter(|n| *n > 0)
}

/// Part of a restored file that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restored {
    Whole,
    /// The path only, because the file is too large or its contents are not known.
    PathOnly,
    /// Nothing, because the budget is used up.
    Nothing,
}

/// Returns the part of each file to restore, newest first, by its size in tokens
/// (docs/sources/claude-code.md §1.4).
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
    use proptest::prelude::*;

    use crate::testing::{block, call_block};

    /// Returns the settings of a strategy without a model.
    fn settings(spec: &str) -> ClaudeCodeSettings {
        crate::Spec::parse(spec).unwrap().applied(1.0, 0).read().unwrap()
    }

    #[test]
    fn thresholds_as_reported() {
        // docs/sources/claude-code.md §1.1: 167,000 of 200k, 967,000 of 1M, warning about 147k
        let at = |more: &str, window, max_output| {
            levels(&settings(&format!("claude-code:{more}")), window, max_output)
        };
        assert_eq!(
            at("", 200_000, 64_000),
            Levels { effective: 180_000, compact: 167_000, warning: 147_000 }
        );
        assert_eq!(at("", 1_000_000, 128_000).compact, 967_000);
        assert_eq!(at("", 200_000, 8_000).compact, 179_000);
        let narrow = |window| at("auto_compact_window=200k", window, 64_000).compact;
        assert_eq!((narrow(1_000_000), narrow(100_000)), (167_000, 67_000));
        // 95 % of the effective window is above the default threshold, and the setting never raises
        // the threshold
        assert_eq!(at("threshold_percent=95", 200_000, 64_000).compact, 167_000);
        assert_eq!(at("threshold_percent=50", 200_000, 64_000).compact, 90_000);
    }

    #[test]
    fn tools_are_told_by_their_letters() {
        let told = "Read read_file Bash grep Glob WebFetch web_search edit_file Write";
        for name in told.split(' ') {
            assert!(is_compactable(name), "{name}");
        }
        assert!(!is_compactable("task") && !is_compactable("todo_write"));
    }

    #[test]
    fn only_the_summary_is_kept() {
        for (reply, kept) in [
            ("<analysis>a <summary> b</analysis>\n<summary>\nS\n</summary> x", Some("S")),
            ("<analysis>a</analysis><summary>cut of", Some("cut of")),
            ("plain", Some("plain")),
            ("<analysis>only</analysis>", None),
        ] {
            assert_eq!(kept_summary(reply).as_deref(), kept, "{reply}");
        }
    }

    #[test]
    fn the_excess_is_read_from_the_error() {
        assert_eq!(excess("prompt is too long: 208310 tokens > 200000 maximum"), Some(8_310));
        assert_eq!(excess("too long"), None);
        assert_eq!(excess("5000 tokens < 9000"), None);
    }

    #[test]
    fn large_files_come_back_as_a_path() {
        use Restored::{Nothing, PathOnly, Whole};
        let sizes = [Some(5_000), Some(5_001), None, Some(3_000), Some(2_000)];
        let all = restorable(&sizes, 5_000, 7_500);
        assert_eq!(all, [Whole, PathOnly, PathOnly, Nothing, Whole]);
    }

    fn test_block(kind: BlockKind, message: u32, tokens: usize) -> Arc<Block> {
        block(kind, message, &"x".repeat(4 * tokens))
    }

    #[test]
    fn output_limits_hold_per_tool() {
        let too_long = |tool, bytes| is_too_long(&settings("claude-code"), tool, bytes);
        assert!(too_long("Bash", 30_001) && !too_long("Bash", 30_000));
        assert!(too_long("grep", 20_001) && !too_long("task", 50_000) && too_long("task", 50_001));
        assert!(!too_long("read_file", 90_000));
        let none = settings("claude-code:output_chars=0,shell_chars=0,search_chars=0");
        assert!(!is_too_long(&none, "bash", 90_000));
    }

    #[test]
    fn a_file_that_was_read_does_not_count_in_the_budget_of_a_message() {
        let mixed: Vec<_> = [10_000, 45_000, 46_000, 40_000, 41_000, 42_000]
            .map(|n| output("task", n))
            .into_iter()
            .chain([output("read_file", 90_000)])
            .collect();
        assert_eq!(too_much(&mixed, 0, 200_000), [2], "224,000 less 46,000");
    }

    #[test]
    fn the_last_messages_stay_whole() {
        use BlockKind::{Assistant, Call, File, Marker, Output, Summary, User};
        let h = [
            test_block(Summary, 9, 1),
            test_block(File, 10, 1),
            test_block(Marker, 11, 1),
            test_block(User, 3, 1),
            test_block(Assistant, 4, 1),
            test_block(Call, 4, 1),
            test_block(Output, 5, 1),
        ];
        // The last message is a result and is kept with its call. Nothing before the end of the
        // summary is kept, including a hook's output after it.
        assert_eq!([0, 1, 2, 3, 4, 9].map(|n| last_messages(&h, n)), [7, 4, 4, 3, 3, 3]);
    }

    #[test]
    fn the_tail_behind_notes_is_at_least_so_long_and_at_most() {
        use BlockKind::{Assistant, User};
        // docs/sources/claude-code.md §1.5: at least 10,000 tokens and 5 text messages, at most
        // 40,000.
        let rule = &settings("claude-code");
        let numbers =
            (rule.memory_keep_tokens, rule.memory_keep_texts, rule.memory_keep_most_tokens);
        assert_eq!(numbers, (10_000, 5, 40_000));
        let of = |sizes: &[usize]| -> Vec<_> {
            let kind = |i: usize| if i.is_multiple_of(2) { User } else { Assistant };
            sizes.iter().enumerate().map(|(i, n)| test_block(kind(i), i as u32, *n)).collect()
        };
        // 3,000 each: four make 12,000, and the fifth text is still required.
        assert_eq!(tail_start(&of(&[3_000; 10]), 10, rule), 5);
        // 1,000 each: ten make 10,000.
        assert_eq!(tail_start(&of(&[1_000; 20]), 20, rule), 10);
        // 15,000 each: two make 30,000, and a third would exceed 40,000.
        assert_eq!(tail_start(&of(&[15_000; 6]), 6, rule), 4);
        // Messages that the notes do not cover stay, whatever their size.
        assert_eq!(tail_start(&of(&[15_000; 6]), 1, rule), 1);
    }

    fn output(name: &str, len: usize) -> Arc<Block> {
        call_block(BlockKind::Output, "1", name, &"x".repeat(len))
    }

    proptest! {
        #[test]
        fn clearing_is_worth_it_and_spares_the_newest(sizes in prop::collection::vec(0usize..8_000, 0..20), keep in 0u64..5) {
            let blocks: Vec<_> = sizes.iter().map(|&n| output("bash", n)).collect();
            let at = clearable(&blocks, keep, 2_000, "gone");
            let saved: u64 = at.iter().map(|&i| (sizes[i] as u64).div_ceil(4).saturating_sub(1)).sum();
            prop_assert!(at.is_empty() || saved >= 2_000);
            prop_assert!(at.iter().all(|&i| i + (keep as usize) < blocks.len()));
        }
    }
}
