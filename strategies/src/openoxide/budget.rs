//! The budget of a prompt (docs/sources/openoxide.md §2.1 to §2.3): its parts, their share of the
//! window, and the check before sending.

use std::ops::{Index, IndexMut};

use ctxbench_core::block::total_tokens;
use ctxbench_core::model::Counting;
use ctxbench_core::prelude::*;
use serde::Deserialize;

use PromptPart::{ChatFiles, ChatHistory, Current, ReadOnlyFiles, Reminder, RepoMap, System};

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenOxideSettings {
    pub(crate) phases: Phases,
    pub(crate) prune_protect: u64,
    pub(crate) prune_minimum: u64,
    pub(crate) keep_turns: u64,
    pub(crate) prune_order: PruneOrder,
    pub(crate) output_reserve: u64,
    pub(crate) safety_margin: f64,
    pub(crate) repo_map_fraction: f64,
    pub(crate) repo_map_min: u64,
    pub(crate) repo_map_max: u64,
    pub(crate) chat_history_fraction: f64,
    pub(crate) chat_history_max: u64,
    pub(crate) compaction_buffer: u64,
    pub(crate) weak_model: Option<Arc<str>>,
    pub(crate) transcript_output: u64,
    pub(crate) clear_trigger: u64,
    pub(crate) clear_keep: u64,
    pub(crate) clear_at_least: Option<u64>,
    pub(crate) compact_trigger: u64,
    pub(crate) awareness: bool,
    pub(crate) migration: bool,
    pub(crate) cross_session: bool,
    pub(crate) memory_index_lines: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phases {
    Three,
    Two,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PruneOrder {
    Age,
    Importance,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OxideWords {
    pub(crate) history_system: Arc<str>,
    pub(crate) session_prompt: Arc<str>,
    pub(crate) session_wishes: Arc<str>,
    pub(crate) session_from: Arc<str>,
    pub(crate) summary_prefix: Arc<str>,
    pub(crate) before_prefix: Arc<str>,
    pub(crate) placeholder: Arc<str>,
    pub(crate) budget: Arc<str>,
    pub(crate) usage: Arc<str>,
}

/// Parts of a prompt in the order of sending. Stable parts come first, so that a prompt cache can keep
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptPart {
    /// System prompt and other system text.
    System,
    /// Overview of the code base.
    RepoMap,
    /// Files for reference, and memory that is sent as the user.
    ReadOnlyFiles,
    /// Finished turns, perhaps summarised.
    ChatHistory,
    /// Files being worked on.
    ChatFiles,
    /// The turn under way; always included.
    Current,
    /// The reminder at the end; always included.
    Reminder,
}

/// Names of the parts for users, and advice to make each smaller.
const PARTS: [(&str, &str); 7] = [
    ("system prompt and tools", "offer fewer tools or shorten the memory files"),
    ("repository map", "give the repository map less room"),
    ("read-only files", "drop read-only files"),
    ("chat history", "clear or compact the chat history"),
    ("files in the chat", "drop files from the chat"),
    ("current turn", "start a new turn with a smaller request or with less tool output"),
    ("reminder", "shorten the reminder"),
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts<T>(pub [T; 7]);

/// The demand of each part, tokens. That of the system prompt includes tools and is measured once when
/// the session starts.
pub(super) type Demand = Parts<u64>;

pub(super) type PromptChunks = Parts<Vec<Arc<Block>>>;

impl<T> Index<PromptPart> for Parts<T> {
    type Output = T;

    fn index(&self, part: PromptPart) -> &T {
        &self.0[part as usize]
    }
}

impl<T> IndexMut<PromptPart> for Parts<T> {
    fn index_mut(&mut self, part: PromptPart) -> &mut T {
        &mut self.0[part as usize]
    }
}

/// Tokens given to the parts that have a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allocation {
    pub repo_map: u64,
    pub chat_history: u64,
}

fn share(of: u64, fraction: f64) -> u64 {
    ((of as f64 * fraction) as u64).min(of)
}

impl OpenOxideSettings {
    /// Returns the maximum prompt in tokens: window − output reserve − safety margin, at least 0.
    pub(super) fn limit(&self, window: u64) -> u64 {
        let effective = window.saturating_sub(self.output_reserve);
        effective - share(effective, self.safety_margin)
    }

    /// Returns the budget of the repository map in tokens: its share of `remaining` within its bounds,
    /// at most `remaining`. The upper bound wins over a larger lower bound.
    fn repo_map_budget(&self, remaining: u64) -> u64 {
        let least = self.repo_map_min.min(self.repo_map_max);
        share(remaining, self.repo_map_fraction).clamp(least, self.repo_map_max).min(remaining)
    }

    /// Returns the maximum tokens of finished turns before they are summarised: a share of the whole
    /// window, as in Aider, up to a cap.
    pub(super) fn history_cap(&self, window: u64) -> u64 {
        share(window, self.chat_history_fraction).min(self.chat_history_max)
    }

    /// Allocates a window in order (docs/sources/openoxide.md §2.2): output reserve, safety margin,
    /// system prompt, repository map, files, history. The current turn and the reminder are always
    /// included, so their tokens are reserved first. Returns `None` if they do not fit next to the
    /// system prompt.
    pub(super) fn allocate(&self, window: u64, demand: &Demand) -> Option<Allocation> {
        let required = demand[System] + demand[Current] + demand[Reminder];
        let limit = Some(self.limit(window)).filter(|_| window > self.output_reserve)?;
        let mut left = limit.checked_sub(required)?;
        let map_budget = self.repo_map_budget(left);
        let mut take = |wanted: u64| {
            let given = wanted.min(left);
            left -= given;
            given
        };
        let repo_map = take(demand[RepoMap].min(map_budget));
        take(demand[ReadOnlyFiles]);
        take(demand[ChatFiles]);
        let chat_history = take(demand[ChatHistory].min(self.history_cap(window)));
        Some(Allocation { repo_map, chat_history })
    }
}

impl PromptChunks {
    /// Splits a view into parts; the conversation keeps its order. The current turn begins at position
    /// `current_from`, which is the length of the view if there is none.
    pub fn split(blocks: &[Arc<Block>], current_from: usize) -> Self {
        let mut out = PromptChunks::default();
        for (i, b) in blocks.iter().enumerate() {
            let part = match b.kind {
                _ if is_system(b) => System,
                BlockKind::Context => ReadOnlyFiles,
                BlockKind::RepoMap => RepoMap,
                BlockKind::File => ChatFiles,
                BlockKind::Reminder => Reminder,
                _ if i >= current_from => Current,
                _ => ChatHistory,
            };
            out[part].push(b.clone());
        }
        out
    }

    pub fn all_messages(&self) -> Vec<Arc<Block>> {
        self.0.concat()
    }

    /// Returns the estimated demand of each part next to a system prompt of `system` tokens.
    pub fn demand(&self, system: u64) -> Demand {
        let mut demand = Parts(self.0.each_ref().map(|blocks| estimate(blocks)));
        demand[PromptPart::System] = system;
        demand
    }

    /// Checks a prompt of `total` tokens against `limit`. Sizes in the error are exact; tokens outside
    /// the parts (tool definitions, the provider's additions) count as system.
    pub fn check(&self, by: &Counting, total: u64, limit: u64) -> Result<(), Oversize> {
        if total <= limit {
            return Ok(());
        }
        let mut sizes = self.0.each_ref().map(|blocks| total_tokens(by, blocks));
        sizes[0] += total.saturating_sub(sizes.iter().sum());
        let mut parts: Vec<_> = PARTS.into_iter().zip(sizes).filter(|(_, n)| *n > 0).collect();
        parts.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let largest = parts.iter().take(MAX_NAMED).map(|((name, _), n)| format!("{name} {n}"));
        let largest = largest.collect::<Vec<_>>().join(", ");
        let over = total - limit;
        let advice = parts.first().map_or("", |((_, advice), _)| advice);
        let reason = format!(
            "the prompt of {total} tokens is {over} over its limit of {limit}; its largest parts: \
             {largest}; {advice}"
        );
        Err(Oversize { over, reason })
    }
}

/// Maximum number of parts named in an error.
const MAX_NAMED: usize = 3;

/// A prompt that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Oversize {
    /// Number of tokens beyond the limit.
    pub over: u64,
    /// Reason with advice, for the user.
    pub reason: String,
}

impl Oversize {
    /// Creates the error of a window that the reserve for the reply uses up.
    pub fn no_room(window: u64, reserve: u64) -> Oversize {
        let reason = format!(
            "the window of {window} tokens has no room for a prompt next to an output reserve of \
             {reserve}; choose a smaller reserve or a model with a larger window"
        );
        Oversize { over: reserve.saturating_sub(window), reason }
    }
}

/// Estimates tokens as `bytes / 4` of every text (`estimate_fast`, docs/sources/openoxide.md §2.1).
pub(super) fn estimate(blocks: &[Arc<Block>]) -> u64 {
    blocks.iter().map(|b| bytes_div4_down(&b.text)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::testing::block;
    use proptest::prelude::*;

    /// Returns the blueprint's figures (docs/sources/openoxide.md §2.2).
    fn blueprint() -> OpenOxideSettings {
        Spec::parse("openoxide").unwrap().settings.read().unwrap()
    }

    #[test]
    fn the_blueprint_on_200k() {
        let c = blueprint();
        let d = Parts([9_600, 50_000, 0, 30_000, 0, 0, 0]);
        assert_eq!(c.limit(200_000), 200_000 - 32_000 - 8_400);
        let given = c.allocate(200_000, &d);
        assert_eq!(given, Some(Allocation { repo_map: 8_192, chat_history: 8_192 }));
        assert_eq!(c.history_cap(64_000), 4_000);
        assert_eq!([4_000, 40_000, 500].map(|n| c.repo_map_budget(n)), [1_024, 5_000, 500]);
    }

    #[test]
    fn the_current_turn_comes_before_all_optional_parts() {
        let c = blueprint();
        // The limit is 28,500, so 1,500 tokens are left.
        let d = |current| Parts([1_000, 9_000, 0, 900, 0, current, 0]);
        let given = c.allocate(62_000, &d(26_000));
        assert_eq!(given, Some(Allocation { repo_map: 1_024, chat_history: 476 }));
        assert_eq!(c.allocate(62_000, &d(28_000)), None);
        assert_eq!(c.allocate(32_000, &Parts([1_000, 0, 0, 0, 0, 0, 0])), None);
    }

    proptest! {
        #[test]
        fn a_larger_window_never_gives_less(
            map in 0u64..60_000, files in 0u64..60_000, history in 0u64..60_000, current in 0u64..9_000,
            window in 0u64..300_000, more in 0u64..50_000,
        ) {
            let d = Parts([0, map, 0, history, files, current, 0]);
            let c = blueprint();
            let Some(a) = c.allocate(window, &d) else { return Ok(()) };
            let b = c.allocate(window + more, &d).unwrap();
            prop_assert!(b.repo_map >= a.repo_map && b.chat_history >= a.chat_history);
            prop_assert!(a.repo_map <= map.min(8_192));
            prop_assert!(a.chat_history <= c.history_cap(window).min(history));
            prop_assert!(a.repo_map + a.chat_history + current <= c.limit(window));
        }
    }

    fn view() -> Vec<Arc<Block>> {
        let kinds = [
            (BlockKind::Base, "base"),
            (BlockKind::Context, "memory"),
            (BlockKind::File, "file"),
            (BlockKind::User, "old"),
            (BlockKind::Reminder, "remember"),
            (BlockKind::RepoMap, "map"),
            (BlockKind::User, "new"),
        ];
        kinds.map(|(kind, text)| block(kind, 0, text)).to_vec()
    }

    #[test]
    fn all_messages_are_in_order_of_sending() {
        let all = PromptChunks::split(&view(), 6).all_messages();
        let texts: Vec<&str> = all.iter().map(|b| &*b.text).collect();
        assert_eq!(texts, ["base", "map", "memory", "old", "file", "new", "remember"]);
        assert_eq!(PromptChunks::split(&view(), 7)[ChatHistory].len(), 2);
        assert_eq!(PromptChunks::split(&view(), 6).demand(0)[Reminder], 2);
    }

    #[test]
    fn an_oversize_names_the_largest_parts() {
        let mut v = view();
        v.push(block(BlockKind::User, 0, &"word ".repeat(400)));
        let chunks = PromptChunks::split(&v, 6);
        let by = &Counting::O200K;
        let total = total_tokens(by, &v) + 50;
        assert_eq!(chunks.check(by, total, total), Ok(()));
        let e = chunks.check(by, total, total - 7).unwrap_err();
        assert_eq!(e.over, 7);
        let current = total_tokens(by, &chunks[Current]);
        let system = 50 + v[0].tokens(by);
        let largest = format!("parts: current turn {current}, system prompt and tools {system}, ");
        assert!(e.reason.contains(&largest), "{}", e.reason);
        assert!(e.reason.ends_with("with a smaller request or with less tool output"));
        let e = Oversize::no_room(20_000, 32_000);
        assert!(e.over == 12_000 && e.reason.contains("smaller reserve"));
    }
}
