//! Aider's rules as pure functions: token counts, budgets, the split of the finished history into a
//! head that is summarised and a tail that stays, and the end of a background summary
//! (docs/sources/aider.md §1.1-§1.3, version 0.86).

use std::fmt::Write as _;

use ctxbench_core::prelude::*;
use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AiderSettings {
    pub(crate) max_chat_history_tokens: Option<u64>,
    pub(crate) history_least: u64,
    pub(crate) history_most: u64,
    pub(crate) map_tokens: Option<u64>,
    pub(crate) map_multiplier_no_files: u64,
    pub(crate) weak_model: Option<Arc<str>>,
    pub(crate) architect: bool,
    pub(crate) editor_model: Option<Arc<str>>,
    pub(crate) auto_accept: bool,
    pub(crate) cache_prompts: bool,
    pub(crate) keepalive_pings: u64,
    pub(crate) keepalive_delay_ms: u64,
    pub(crate) reminder: Reminder,
    pub(crate) auto_commits: bool,
    pub(crate) oversize: Oversize,
    pub(crate) restore: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reminder {
    User,
    Sys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Oversize {
    Proceed,
    Decline,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AiderWords {
    pub(crate) summary_prompt: Arc<str>,
    pub(crate) summary_prefix: Arc<str>,
    pub(crate) described_prefix: Arc<str>,
    pub(crate) committed: Arc<str>,
    pub(crate) updated: Arc<str>,
    pub(crate) edited: Arc<str>,
    pub(crate) ok: Arc<str>,
    pub(crate) files: Arc<str>,
    pub(crate) files_ok: Arc<str>,
    pub(crate) no_files: Arc<str>,
    pub(crate) no_files_but_map: Arc<str>,
    pub(crate) no_files_but_map_ok: Arc<str>,
    pub(crate) reminder: Arc<str>,
    pub(crate) too_long: Arc<str>,
}

/// Lists of at most this many messages are summarised whole (docs/sources/aider.md §1.1,
/// `min_split`).
pub const MIN_SPLIT: usize = 4;
/// Maximum depth of the recursion (docs/sources/aider.md §1.1, docs/sources/token-budgeting.md §2.4).
const MAX_DEPTH: u32 = 3;
/// Reserve within the summariser's input limit, tokens (docs/sources/aider.md §1.1).
const HEAD_RESERVE: u64 = 512;
/// Input limit of an unknown summariser, tokens (docs/sources/aider.md §1.1).
const UNKNOWN_INPUT: u64 = 4_096;

/// A message of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatLine {
    /// Role in the spelling of the source, such as `user`.
    pub role: String,
    pub text: Transcript,
}

impl ChatLine {
    pub fn new(role: &str, text: impl Into<Transcript>) -> Self {
        ChatLine { role: role.into(), text: text.into() }
    }

    /// Formats the message as Python's `json.dumps` does, with escapes for everything outside
    /// printable ASCII.
    pub fn json(&self) -> String {
        format!("{{\"role\": {}, \"content\": {}}}", quoted(&self.role), quoted(&self.text))
    }
}

/// Formats a text as Python's `json.dumps` does.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string never fails.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
    out
}

/// Token counts of a message: alone, and as the only one of a list.
#[derive(Clone, Copy, Debug)]
pub struct TokenCount {
    pub message: fn(&ChatLine) -> u64,
    pub list: fn(&ChatLine) -> u64,
}

/// Exact cl100k counts in the program's two ways (docs/sources/aider.md §1.3): the JSON text of a
/// single message; for a list its strings, 3 per message, and 3.
pub const EXACT: TokenCount =
    TokenCount { message: |m| cl100k(&m.json()), list: |m| list_tokens([in_list(m)]) };

/// Returns the tokens of a list from those of its messages.
pub fn list_tokens(messages: impl IntoIterator<Item = u64>) -> u64 {
    3 + messages.into_iter().sum::<u64>()
}

/// Returns the tokens of a message in a list.
pub fn in_list(m: &ChatLine) -> u64 {
    cl100k(&m.role) + cl100k(&m.text) + 3
}

/// Limits of a summarisation.
#[derive(Clone, Debug)]
pub struct SummaryRules {
    /// Size limit of the finished history, tokens. It has a fraction if the window is not a
    /// multiple of 16.
    pub max_tokens: f64,
    /// Size limit of the summarised head if a tail is kept, tokens. May be negative.
    pub head_limit: i64,
    /// Text that precedes every summary.
    pub prefix: String,
    pub count: TokenCount,
    /// True for the split of the published description, false for that of the released program.
    pub described: bool,
}

impl SummaryRules {
    /// Plans the summary of a list. `sizes` contains the tokens of each message, and `assistant`
    /// whether it is the model's.
    pub fn plan(&self, sizes: &[u64], assistant: &[bool], depth: u32) -> SummaryPlan {
        match self.described {
            true => described_plan(sizes, self.max_tokens, depth),
            false => plan(sizes, assistant, self.max_tokens, self.head_limit, depth),
        }
    }

    /// Returns whether a summary with its tail is small enough.
    pub fn fits(&self, tokens: u64) -> bool {
        let tokens = tokens as f64;
        tokens < self.max_tokens || (self.described && tokens == self.max_tokens)
    }
}

/// Returns the size limit of the summarised head: the first model's input limit (0 and `None` =
/// unknown) without the reserve, both scaled.
pub fn head_limit(input: Option<u64>, scale: f64) -> i64 {
    let input = input.filter(|n| *n > 0).unwrap_or(UNKNOWN_INPUT);
    scale_tokens(input, scale) as i64 - scale_tokens(HEAD_RESERVE, scale) as i64
}

/// `min(max(window / 16, least), most)` (docs/sources/aider.md §1.3).
pub fn history_budget(window: u64, least: u64, most: u64) -> f64 {
    (window as f64 / 16.0).max(least as f64).min(most as f64)
}

/// Plan for the messages of a list at one level of the recursion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryPlan {
    /// The list stays unchanged.
    Keep,
    /// The whole list becomes the summary.
    All,
    /// The first `keep` messages become the summary, and those from `tail` on stay. The messages
    /// between them are dropped silently.
    Split {
        /// Number of messages that are summarised.
        keep: usize,
        /// Index of the first message that stays.
        tail: usize,
    },
}

/// Plans the split of a list (docs/sources/aider.md §1.1, steps 1-6). `sizes` contains the tokens
/// of each message, and `assistant` whether it is the model's.
pub fn plan(
    sizes: &[u64],
    assistant: &[bool],
    max_tokens: f64,
    head_limit: i64,
    depth: u32,
) -> SummaryPlan {
    if depth == 0 && sizes.iter().sum::<u64>() as f64 <= max_tokens {
        return SummaryPlan::Keep;
    }
    if sizes.len() <= MIN_SPLIT || depth > MAX_DEPTH {
        return SummaryPlan::All;
    }
    let half = (max_tokens / 2.0).floor();
    let mut tail = sizes.len();
    let mut total = 0;
    while tail > 0 && ((total + sizes[tail - 1]) as f64) < half {
        tail -= 1;
        total += sizes[tail];
    }
    // The head must end with the model. This lengthens the tail beyond the budget.
    while tail > 1 && !assistant[tail - 1] {
        tail -= 1;
    }
    if tail <= MIN_SPLIT {
        return SummaryPlan::All;
    }
    let mut total = 0;
    let fits = |size: &&u64| {
        total += **size as i64;
        total <= head_limit
    };
    let keep = sizes[..tail].iter().take_while(fits).count();
    SummaryPlan::Split { keep, tail }
}

/// Returns the text for the summariser: `# ROLE` headings, without other roles, and with a line
/// break after each text.
pub fn transcript(messages: &[ChatLine]) -> Transcript {
    let mut out = Transcript::default();
    for m in messages {
        let role = m.role.to_uppercase();
        if role != "USER" && role != "ASSISTANT" {
            continue;
        }
        out.push(&format!("# {role}\n"));
        out.append(&m.text);
        if !out.ends_with('\n') {
            out.push("\n");
        }
    }
    out
}

/// Effect of a finished background summary on the history (docs/sources/aider.md §1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The summary replaces the messages that it covers; later ones stay after it.
    Applied,
    /// The history changed meanwhile, or the summary failed: the history stays.
    Discarded,
    /// The summariser failed on an unchanged history, which the program treats as an empty summary.
    Emptied,
}

/// Returns the effect of a background summary. The released version applies it only if the history is
/// still equal to the snapshot, which is never the case after an edit turn. The intended version
/// keeps the messages appended since. `summarised` = a model answered.
pub fn ending<T: PartialEq>(
    done: &[T],
    snapshot: &[T],
    summarised: bool,
    as_released: bool,
) -> Ending {
    match summarised {
        true if done == snapshot || (!as_released && done.starts_with(snapshot)) => Ending::Applied,
        false if as_released && done == snapshot => Ending::Emptied,
        _ => Ending::Discarded,
    }
}

/// Counts the exact tokens of the contents.
pub(crate) const CONTENTS: TokenCount =
    TokenCount { message: |m| o200k(&m.text), list: |m| o200k(&m.text) };

/// Keeps the newest messages within half of the budget and summarises all others, as the published
/// description says.
pub(crate) fn described_plan(sizes: &[u64], max_tokens: f64, depth: u32) -> SummaryPlan {
    if depth > MAX_DEPTH || (depth == 0 && sizes.iter().sum::<u64>() as f64 <= max_tokens) {
        return SummaryPlan::Keep;
    }
    let mut total = 0;
    let stays = |size: &&u64| {
        total += **size;
        total as f64 <= max_tokens / 2.0
    };
    let tail = sizes.len() - sizes.iter().rev().take_while(stays).count();
    SummaryPlan::Split { keep: tail, tail }
}

/// The current history is `summary? + messages[from..]`.
#[derive(Clone, Debug)]
pub struct Job {
    messages: Vec<ChatLine>,
    rules: SummaryRules,
    summary: Option<ChatLine>,
    from: usize,
    next_from: usize,
    /// True if the current step covers everything, so that its answer is used in any case.
    whole: bool,
    depth: u32,
}

impl Job {
    /// Creates a job for a finished history.
    pub fn new(messages: Vec<ChatLine>, rules: SummaryRules) -> Self {
        Job { messages, rules, summary: None, from: 0, next_from: 0, whole: false, depth: 0 }
    }

    /// Plans the current level. Returns the text to summarise; `None` = finished.
    pub fn start(&mut self) -> Option<Transcript> {
        let list = self.list();
        let sizes: Vec<u64> = list.iter().map(self.rules.count.message).collect();
        let assistant: Vec<bool> = list.iter().map(|m| m.role == "assistant").collect();
        let plan = self.rules.plan(&sizes, &assistant, self.depth);
        self.whole = plan == SummaryPlan::All;
        let (keep, tail) = match plan {
            SummaryPlan::Keep => return None,
            SummaryPlan::All => (list.len(), list.len()),
            SummaryPlan::Split { keep, tail } => (keep, tail),
        };
        self.next_from = self.from + tail - usize::from(self.summary.is_some()).min(tail);
        Some(transcript(&list[..keep]))
    }

    /// Takes the answer to the last text (docs/sources/aider.md §1.1, steps 7-8). Returns the next
    /// text; `None` = finished.
    pub fn answer(&mut self, text: &str) -> Option<Transcript> {
        let text = format!("{}{text}", self.rules.prefix);
        let summary = ChatLine::new("user", Transcript::quoted(BlockKind::Summary, text));
        let tail = self.messages[self.next_from..].iter().map(self.rules.count.message);
        let tokens = (self.rules.count.list)(&summary) + tail.sum::<u64>();
        self.summary = Some(summary);
        self.from = self.next_from;
        if self.whole || self.rules.fits(tokens) {
            return None;
        }
        self.depth += 1;
        self.start()
    }

    /// Returns the newest summary with its prefix, or `None` if nothing was summarised.
    pub fn summary(&self) -> Option<&ChatLine> {
        self.summary.as_ref()
    }

    /// Returns the index of the first message that stays verbatim after the summary.
    pub fn tail(&self) -> usize {
        self.from
    }

    /// Returns the current history.
    fn list(&self) -> Vec<ChatLine> {
        self.summary.iter().chain(&self.messages[self.from..]).cloned().collect()
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
pub(crate) mod tests;
