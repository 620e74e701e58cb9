//! The parts of Aider's prompt, their order and cache breakpoints, the files that the model created,
//! and the cut of the repository map (docs/sources/aider.md §1.3, §1.4).
//!
//! Aider ranks the definitions of a code base and shows as many of the first as fit. A session
//! contains a finished map instead. Its lines are treated as the ranked definitions in order, so a
//! candidate is the first n lines of the map.

use std::collections::BTreeMap;

use ctxbench_core::compaction::tools::is_edit;
use ctxbench_core::prelude::*;

use super::markdown::lines;

/// Parts of a prompt, in their order.
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    /// System prompt with examples.
    pub system: Vec<Arc<Block>>,
    /// Files that may only be read.
    pub readonly_files: Vec<Arc<Block>>,
    /// Overview of the code base.
    pub repo: Vec<Arc<Block>>,
    /// Finished history: the only part that is ever summarised.
    pub done: Vec<Arc<Block>>,
    /// Files that may be edited.
    pub chat_files: Vec<Arc<Block>>,
    /// Turns since the last edit, and rules repeated at the end.
    pub cur: Vec<Arc<Block>>,
}

impl Chunks {
    fn before_cur(&self) -> [&Vec<Arc<Block>>; 5] {
        [&self.system, &self.readonly_files, &self.repo, &self.done, &self.chat_files]
    }

    /// Returns all blocks in the order of the prompt.
    pub fn all(&self) -> Vec<Arc<Block>> {
        self.before_cur().into_iter().chain([&self.cur]).flatten().cloned().collect()
    }

    /// Returns the number of blocks before the current turns.
    pub fn len_before_cur(&self) -> usize {
        self.before_cur().iter().map(|p| p.len()).sum()
    }

    /// Returns the positions of the blocks that are followed by a cache breakpoint: the end of the
    /// system prompt, of the repository map (or of the read-only files without a map), and of the
    /// editable files. The history lies between the second and the third breakpoint.
    pub fn breakpoints(&self) -> Vec<usize> {
        let [system, readonly, repo, done, files] = self.before_cur().map(Vec::len);
        let readonly = readonly + repo;
        let parts = [(system, system), (readonly, readonly), (done + files, files)];
        let mut end = 0;
        let ends = parts.into_iter().map(|(len, marked)| {
            end += len;
            (marked > 0).then(|| end - 1)
        });
        ends.flatten().collect()
    }
}

/// Returns the path and the new content of a file if a call writes the whole file.
pub(super) fn written(tool: &str, arguments: &str) -> Option<(String, String)> {
    let path = is_edit(tool).then(|| file_path(tool, arguments)).flatten()?;
    let text = text_argument(arguments, &["content", "contents", "file_text", "text"])?;
    Some((path, text))
}

/// Formats a written file as the edit block of a reply.
pub(super) fn block((path, text): &(String, String)) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("\n{path}\n```\n<<<<<<< SEARCH\n=======\n{text}{end}>>>>>>> REPLACE\n```\n")
}

/// An edit block of a reply: the path on a line of its own, and below it in a fence the lines to
/// search for and those in their place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditBlock<'t> {
    path: &'t str,
    old: &'t str,
    new: &'t str,
}

/// Returns the edit blocks of a reply (docs/sources/aider.md §1.2).
pub(super) fn edits(text: &str) -> impl Iterator<Item = EditBlock<'_>> {
    text.match_indices("<<<<<<< SEARCH\n").filter_map(move |(at, mark)| {
        let is_path = |l: &&str| !l.is_empty() && !l.starts_with("```");
        let path = text[..at].lines().rev().map(str::trim).find(is_path)?;
        // A block without lines to search for begins with the divider.
        let (body, _) = text[at + mark.len() - 1..].split_once("\n>>>>>>> REPLACE")?;
        let (old, new) = body.split_once("\n=======")?;
        let [old, new] = [old, new].map(|part| part.strip_prefix('\n').unwrap_or(part));
        Some(EditBlock { path, old, new })
    })
}

/// Contents of the created files in the chat, by path.
#[derive(Default)]
pub(super) struct Created(BTreeMap<String, String>);

impl Created {
    /// Applies a call to the files. Returns whether a file changed.
    pub(super) fn take(&mut self, tool: &str, arguments: &str) -> bool {
        if let Some((path, text)) = written(tool, arguments) {
            return self.0.insert(path, text.clone()) != Some(text);
        }
        let argument = |names: &[&str]| text_argument(arguments, names);
        let path = is_edit(tool).then(|| file_path(tool, arguments)).flatten();
        let (Some(path), Some(old), Some(new)) = (
            path,
            argument(&["old_string", "oldString", "old_str", "old"]),
            argument(&["new_string", "newString", "new_str", "new"]),
        ) else {
            return false;
        };
        self.apply(&EditBlock { path: &path, old: &old, new: &new })
    }

    /// Replaces lines of a file. Without lines to search for, appends to the file or begins it. Returns
    /// whether it changed.
    pub(super) fn apply(&mut self, EditBlock { path, old, new }: &EditBlock<'_>) -> bool {
        if old.is_empty() {
            self.0.entry(path.to_string()).or_default().push_str(new);
            return !new.is_empty();
        }
        let Some(held) = self.0.get_mut(*path) else { return false };
        let changed = held.replacen(old, new, 1);
        let differs = changed != *held;
        *held = changed;
        differs
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats all files for the prompt.
    pub(super) fn listing(&self) -> String {
        let one = |(path, text): (&String, &String)| {
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            format!("\n{path}\n```\n{text}{end}```\n")
        };
        self.0.iter().map(one).collect()
    }
}

/// Minimum map budget, also used if the window is unknown, tokens (docs/sources/aider.md §1.3).
const LEAST: u64 = 1_024;
/// Maximum map budget, tokens (docs/sources/aider.md §1.3).
const MOST: u64 = 4_096;
/// Tokens of the window that the larger map of a chat without files leaves free
/// (docs/sources/aider.md §1.3).
const PADDING: u64 = 4_096;
/// Assumed tokens per line at the start of the search (docs/sources/aider.md §1.3).
const PER_LINE: f64 = 25.0;
/// Maximum relative deviation from the budget, above or below, at which a candidate is accepted
/// (docs/sources/aider.md §1.3).
const NEAR: f64 = 0.15;
/// Minimum length of a text that is counted by a sample of its lines, characters
/// (docs/sources/aider.md §1.3).
const SAMPLED_FROM: usize = 200;
/// Approximate number of lines in this sample (docs/sources/aider.md §1.3).
const SAMPLE_LINES: usize = 100;

/// Returns an eighth of the window within bounds, tokens. The bounds are scaled. A window of 0 is
/// unknown.
pub fn map_tokens(max_input: u64, scale: f64) -> f64 {
    (max_input as f64 / 8.0)
        .min(scale_tokens(MOST, scale) as f64)
        .max(scale_tokens(LEAST, scale) as f64)
}

/// Returns the budget of a map of `tokens`, multiplied by `multiplier` if no file is in the chat
/// and the window has room for it.
pub fn map_budget(
    tokens: f64,
    files_in_chat: bool,
    multiplier: u64,
    max_input: u64,
    scale: f64,
) -> f64 {
    let larger = (tokens * multiplier as f64)
        .floor()
        .min(max_input as f64 - scale_tokens(PADDING, scale) as f64);
    if !files_in_chat && max_input > 0 && larger > 0.0 { larger } else { tokens }
}

/// Estimates the tokens of a text. Short texts are counted. For longer ones, every n-th line is
/// counted, so that the sample has about a hundred lines.
pub fn estimate(text: &str, count: impl Fn(&str) -> u64) -> f64 {
    let chars = text.chars().count();
    if chars < SAMPLED_FROM {
        return count(text) as f64;
    }
    let step = (lines(text).count() / SAMPLE_LINES).max(1);
    let sample: String = lines(text).step_by(step).collect();
    count(&sample) as f64 / sample.chars().count() as f64 * chars as f64
}

/// Returns the first lines of a map, as many as the program's search selects for the budget.
/// Returns `None` if not even one line fits.
pub fn cut_map(text: &str, budget: f64, count: impl Fn(&str) -> u64) -> Option<&str> {
    let ends: Vec<usize> = lines(text)
        .scan(0, |end, line| {
            *end += line.len();
            Some(*end)
        })
        .collect();
    let first = |n: usize| &text[..n.checked_sub(1).map_or(0, |i| ends[i])];
    let (mut low, mut high) = (0_i64, ends.len() as i64);
    let mut middle = ((budget / PER_LINE).floor() as i64).clamp(0, high);
    let mut best: Option<(&str, f64)> = None;
    while low <= high {
        let candidate = first(middle as usize);
        let tokens = estimate(candidate, &count);
        let near = (tokens - budget).abs() / budget < NEAR;
        if near || (tokens <= budget && tokens > best.map_or(0.0, |(_, t)| t)) {
            best = Some((candidate, tokens));
        }
        if near {
            break;
        }
        if tokens < budget {
            low = middle + 1;
        } else {
            high = middle - 1;
        }
        middle = (low + high).div_euclid(2);
    }
    best.map(|(t, _)| t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block;
    use ctxbench_core::block::BlockKind;

    #[test]
    fn every_combination_of_empty_parts_follows_the_three_rules() {
        // docs/sources/aider.md §1.4: after the system prompt; after the map or else the read-only
        // files; after the editable files. Never after history or current turns.
        let names = ["SYS", "ro", "repo", "done", "files", "cur"];
        for mask in 0..1_u32 << names.len() {
            let there =
                |name: &str| mask >> names.iter().position(|n| *n == name).unwrap() & 1 == 1;
            let part = |name: &str| match there(name) {
                true => vec![block(BlockKind::User, 0, "first"), block(BlockKind::User, 0, name)],
                false => vec![],
            };
            let [system, readonly_files, repo, done, chat_files, cur] = names.map(part);
            let c = Chunks { system, readonly_files, repo, done, chat_files, cur };
            let map = if there("repo") { "repo" } else { "ro" };
            let expected = ["SYS", map, "files"].into_iter().filter(|name| there(name));
            let all = c.all();
            let marked = c.breakpoints().into_iter().map(|i| all[i].text.to_string());
            assert!(marked.eq(expected), "{mask:06b}");
        }
    }

    #[test]
    fn what_is_written_stands_in_the_chat_and_follows_edits() {
        let mut files = Created::default();
        assert!(files.take("write_file", r#"{"path":"b.rs","content":"fn b() {}"}"#));
        assert!(files.take("Write", r#"{"file_path":"a.rs","content":"one\ntwo\n"}"#));
        let edit = r#"{"file_path":"a.rs","old_string":"two","new_string":"three"}"#;
        assert!(files.take("Edit", edit));
        assert!(!files.take("Edit", edit), "it is not there any more");
        let unknown = r#"{"file_path":"c.rs","old_string":"x","new_string":"y"}"#;
        assert!(!files.take("Edit", unknown), "nobody knows what the rest of it is");
        assert!(!files.take("read_file", r#"{"path":"b.rs"}"#));
        let want = "\na.rs\n```\none\nthree\n```\n\nb.rs\n```\nfn b() {}\n```\n";
        assert_eq!(files.listing(), want);
    }

    #[test]
    fn edit_blocks_stand_in_the_text_of_a_reply() {
        let text = "Both.\n\n b.rs \n```rust\n<<<<<<< SEARCH\n=======\nfn b() {}\n>>>>>>> REPLACE\n```\n\
            a.rs\n```\n<<<<<<< SEARCH\none\n=======\n>>>>>>> REPLACE\n```\n<<<<<<< SEARCH\nno end";
        let edit = |path, old, new| EditBlock { path, old, new };
        let want = [edit("b.rs", "", "fn b() {}"), edit("a.rs", "one", "")];
        assert_eq!(edits(text).collect::<Vec<_>>(), want);
        assert_eq!(edits("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE").count(), 0, "no path");
        let mut files = Created::default();
        assert_eq!(want.map(|e| files.apply(&e)), [true, false], "a.rs is not in the chat");
        assert_eq!(files.listing(), "\nb.rs\n```\nfn b() {}\n```\n");
        assert!(files.apply(&edit("b.rs", "", "\nfn c() {}")), "it appends");
        assert_eq!(files.listing(), "\nb.rs\n```\nfn b() {}\nfn c() {}\n```\n");
    }

    /// Counts one token per character so that the sizes in the tests can be added by hand.
    fn chars(text: &str) -> u64 {
        text.chars().count() as u64
    }

    /// Returns `n` lines of ten characters, including the line break.
    fn map(n: usize) -> String {
        (0..n).map(|i| format!("line {i:04}\n")).collect()
    }

    #[test]
    fn an_eighth_of_the_window_within_bounds() {
        // docs/sources/aider.md §1.3, docs/sources/token-budgeting.md §2: 128k and 200k reach the
        // maximum, 16k gives an eighth, and 4k and an unknown window the minimum.
        let tokens = [128_000, 200_000, 16_000, 4_000, 0].map(|w| map_tokens(w, 1.0));
        assert_eq!(tokens, [4_096.0, 4_096.0, 2_000.0, 1_024.0, 1_024.0]);
        assert_eq!(map_tokens(20_000, 0.1), 410.0);
    }

    #[test]
    fn without_files_the_budget_is_doubled_where_there_is_room() {
        assert_eq!(map_budget(4_096.0, true, 2, 200_000, 1.0), 4_096.0);
        assert_eq!(map_budget(4_096.0, false, 2, 200_000, 1.0), 8_192.0);
        assert_eq!(map_budget(4_096.0, false, 8, 200_000, 1.0), 32_768.0);
        // The window without the padding is smaller: 5,120 - 4,096.
        assert_eq!(map_budget(1_000.0, false, 2, 5_120, 1.0), 1_024.0);
        // Without room, or with an unknown window, the plain budget applies.
        assert_eq!(map_budget(1_024.0, false, 2, 4_096, 1.0), 1_024.0);
        assert_eq!(map_budget(1_024.0, false, 2, 0, 1.0), 1_024.0);
    }

    #[test]
    fn the_search_takes_what_is_near_and_else_the_largest_below() {
        // A budget of 500 starts at 500 / 25 = 20 lines = 200 tokens, too few. Then 21..=100 -> 60
        // lines = 600, 20 % over; 21..=59 -> 40 lines = 400, 20 % under but the best so far;
        // 41..=59 -> 50 lines = 500, exact.
        assert_eq!(cut_map(&map(100), 500.0, chars), Some(&*map(50)));
        // 30 lines = 300 are fewer than the 100 lines that 2,500 / 25 starts with, so the whole map
        // is used, twelve per cent of the budget.
        assert_eq!(cut_map(&map(30), 2_500.0, chars), Some(&*map(30)));
        // 43 lines are 7.5 % over 400, and the search accepts them before it tries 40: start 16 =
        // 160, then 17..=70 -> 43.
        assert_eq!(cut_map(&map(70), 400.0, chars), Some(&*map(43)));
        // One line of ten tokens does not fit into five and is not close enough.
        assert_eq!(cut_map(&map(8), 5.0, chars), None);
        assert_eq!(cut_map("", 5.0, chars), None);
    }

    #[test]
    fn long_texts_are_counted_by_a_sample_of_their_lines() {
        // 199 characters are counted, and 200 are sampled: 250 lines of four characters, of which
        // every second one is used (250 / 100 = 2).
        let counted = std::cell::RefCell::new(Vec::new());
        let count = |t: &str| {
            counted.borrow_mut().push(t.to_string());
            t.matches('a').count() as u64
        };
        assert_eq!(estimate(&"a".repeat(199), count), 199.0);
        let text = "aaa\nb  \n".repeat(125);
        // The sample is the 125 lines of `aaa`: 375 tokens in 500 characters, of 1,000.
        assert_eq!(estimate(&text, count), 750.0);
        assert_eq!(counted.borrow()[1], "aaa\n".repeat(125));
        // Up to 199 lines, every line is used.
        assert_eq!(estimate(&"aaa\nb  \n".repeat(99), count), 297.0);
    }
}
