//! Summarisation of Aider's finished history: the newest half of the budget stays, and the rest
//! becomes one message (docs/sources/aider.md §1.1, versions 0.86).
//!
//! A [`Job`] implements the program's recursion as a state machine: it returns the next text to
//! summarise and takes the answer. The same rules therefore apply to background requests and to
//! recorded cases.

use std::fmt::Write as _;

use ctxbench_core::block::BlockKind;
use ctxbench_core::compaction::Transcript;
use ctxbench_core::settings::scale_tokens;
use ctxbench_core::tokens::o200k;

/// Lists of at most this many messages are summarised whole (docs/sources/aider.md §1.1,
/// `min_split`).
const MIN_SPLIT: usize = 4;
/// Maximum depth of the recursion (docs/sources/aider.md §1.1).
const MAX_DEPTH: u32 = 3;
/// Reserve within the summariser's input limit, tokens (docs/sources/aider.md §1.1).
const HEAD_RESERVE: u64 = 512;
/// Input limit of an unknown summariser, tokens (docs/sources/aider.md §1.1).
const UNKNOWN_INPUT: u64 = 4_096;

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "our histories hold texts, recorded ones also others")
)]
pub enum LineContent {
    Text(Transcript),
    /// No content.
    Null,
    /// A list of parts, as its JSON text.
    Parts(String),
}

/// A message of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatLine {
    /// Role in the spelling of the source, such as `user`.
    pub role: String,
    pub content: LineContent,
}

impl ChatLine {
    /// Creates a text message.
    pub fn text(role: &str, text: impl Into<Transcript>) -> Self {
        ChatLine { role: role.into(), content: LineContent::Text(text.into()) }
    }

    /// Formats the message as Python's `json.dumps` does, with escapes for everything outside
    /// printable ASCII.
    pub fn json(&self) -> String {
        let content = match &self.content {
            LineContent::Text(t) => quoted(t),
            LineContent::Null => "null".into(),
            LineContent::Parts(json) => json.clone(),
        };
        format!("{{\"role\": {}, \"content\": {content}}}", quoted(&self.role))
    }
}

/// Formats a text as Python's `json.dumps` does.
pub fn quoted(text: &str) -> String {
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

/// Token counting. Aider counts single messages by their JSON text and lists by their contents.
pub trait TokenCount: Sync {
    /// Returns the tokens of a single message.
    fn message_tokens(&self, m: &ChatLine) -> u64;
    /// Returns the tokens of a list of messages.
    fn list(&self, m: &[ChatLine]) -> u64;
}

/// Exact o200k counts in the program's two ways (docs/sources/aider.md §1.3): the JSON text of a
/// single message; for a list its strings, 3 per message, and 3.
#[derive(Clone, Copy, Debug)]
pub struct Exact;

impl Exact {
    /// Returns the tokens of a list from those of its messages.
    pub fn total(messages: impl IntoIterator<Item = u64>) -> u64 {
        3 + messages.into_iter().sum::<u64>()
    }

    /// Returns the tokens of a message in a list.
    pub fn in_list(m: &ChatLine) -> u64 {
        let text = match &m.content {
            LineContent::Text(t) => o200k(t),
            LineContent::Null => 0,
            LineContent::Parts(json) => o200k(json),
        };
        o200k(&m.role) + text + 3
    }
}

impl TokenCount for Exact {
    fn message_tokens(&self, m: &ChatLine) -> u64 {
        o200k(&m.json())
    }

    fn list(&self, m: &[ChatLine]) -> u64 {
        Exact::total(m.iter().map(Exact::in_list))
    }
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
    /// Rules for splitting the history and for accepting a summary.
    pub split_rules: SplitRules,
}

/// Rules for splitting a list and for accepting a summary.
#[derive(Clone, Copy, Debug)]
pub struct SplitRules {
    /// Plans the summary of a list. Parameters: sizes in tokens, whether each message is the
    /// model's, budget, size limit of the head, and depth.
    pub plan: fn(&[u64], &[bool], f64, i64, u32) -> SummaryPlan,
    /// Returns whether a summary and its tail fit. Parameters: their tokens and the budget.
    pub fits: fn(f64, f64) -> bool,
}

/// Split rules of the released program (docs/sources/aider.md §1.1).
pub const OBSERVED: SplitRules = SplitRules { plan, fits: |tokens, max| tokens < max };

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

/// Returns whether the history is larger than `max_tokens`.
pub fn too_big(messages: &[ChatLine], max_tokens: f64, count: &dyn TokenCount) -> bool {
    messages.iter().map(|m| count.message_tokens(m)).sum::<u64>() as f64 > max_tokens
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
/// break after each text. `None` if a content is not a text.
pub fn transcript(messages: &[ChatLine]) -> Option<Transcript> {
    let mut out = Transcript::default();
    for m in messages {
        let role = m.role.to_uppercase();
        if role != "USER" && role != "ASSISTANT" {
            continue;
        }
        let LineContent::Text(text) = &m.content else { return None };
        out.push(&format!("# {role}\n"));
        out.append(text);
        if !out.ends_with('\n') {
            out.push("\n");
        }
    }
    Some(out)
}

/// Next action of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobStep {
    /// Request a summary of this text.
    Ask(Transcript),
    /// Finished: see [`Job::summary`] and [`Job::tail`].
    Done,
}

/// A summarisation in progress. The current history is `summary? + messages[from..]`.
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

    /// Plans the current level and returns its first step. `None` = a content is not a text.
    pub fn start(&mut self, count: &dyn TokenCount) -> Option<JobStep> {
        let list = self.list();
        let sizes: Vec<u64> = list.iter().map(|m| count.message_tokens(m)).collect();
        let assistant: Vec<bool> = list.iter().map(|m| m.role == "assistant").collect();
        let plan = (self.rules.split_rules.plan)(
            &sizes,
            &assistant,
            self.rules.max_tokens,
            self.rules.head_limit,
            self.depth,
        );
        self.whole = plan == SummaryPlan::All;
        let (keep, tail) = match plan {
            SummaryPlan::Keep => return Some(JobStep::Done),
            SummaryPlan::All => (list.len(), list.len()),
            SummaryPlan::Split { keep, tail } => (keep, tail),
        };
        self.next_from = self.from + tail - usize::from(self.summary.is_some()).min(tail);
        transcript(&list[..keep]).map(JobStep::Ask)
    }

    /// Adds the answer to the last step (docs/sources/aider.md §1.1, steps 7-8) and returns the next.
    /// `None` = a content is not a text.
    pub fn answer(&mut self, text: &str, count: &dyn TokenCount) -> Option<JobStep> {
        let text = format!("{}{text}", self.rules.prefix);
        let summary = ChatLine::text("user", Transcript::quoted(BlockKind::Summary, text));
        let tail = &self.messages[self.next_from..];
        let tokens = count.list(std::slice::from_ref(&summary))
            + tail.iter().map(|m| count.message_tokens(m)).sum::<u64>();
        self.summary = Some(summary);
        self.from = self.next_from;
        if self.whole || (self.rules.split_rules.fits)(tokens as f64, self.rules.max_tokens) {
            return Some(JobStep::Done);
        }
        self.depth += 1;
        self.start(count)
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

/// Effect of a finished background summary on the history (docs/sources/aider.md §1.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending<T> {
    /// The summary replaces the messages that it covers.
    Applied(Vec<T>),
    /// The history changed meanwhile, or the summary failed: the history stays.
    Discarded,
    /// The summariser failed on an unchanged history, which the program treats as an empty summary.
    Emptied,
}

/// Joins a background summary with the history. The released version applies it only if the history
/// is still equal to the snapshot, which is never the case after an edit turn. The intended version
/// keeps the messages appended since the snapshot after the summary. `summarised` is `None` if
/// every model failed.
pub fn summarize_end<T: Clone + PartialEq>(
    done: &[T],
    snapshot: &[T],
    summarised: Option<Vec<T>>,
    as_released: bool,
) -> Ending<T> {
    match summarised {
        Some(new) if as_released && done == snapshot => Ending::Applied(new),
        None if as_released && done == snapshot => Ending::Emptied,
        Some(mut new) if !as_released && done.starts_with(snapshot) => {
            new.extend_from_slice(&done[snapshot.len()..]);
            Ending::Applied(new)
        }
        _ => Ending::Discarded,
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
pub(crate) mod tests;
