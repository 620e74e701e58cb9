//! Default summariser, which applies general rules to the prompt.

use ctxbench_core::tokens::o200k;
use ctxbench_provider::Prompt;

use super::ask::Instruction;
use super::choose::choose;
use super::collect::{SummaryCandidate, collect};
use super::read::{Author, ParsedPrompt, read};
use super::render::render;

/// Maximum length of a summary if the request allows more, tokens. Measured with Claude Code: 4,413
/// and 4,438 tokens from 187,000 and 222,000 (docs/sources/claude-code.md §1.3), a median of 4,382
/// over 873 compactions (docs/sources/peers-and-metrics.md §1b).
pub const MAX_TOKENS: u64 = 4_400;
/// Minimum budget, tokens. Below it, headings alone would fill the summary.
const MIN_TOKENS: u64 = 300;
/// Tokens of conversation per token of summary. This lies between the 2 % of the long sessions in
/// [`MAX_TOKENS`] and the 9 % of the shortest one measured (61,895 to 5,706, same source).
const RATIO: u64 = 20;

/// Summary of an empty conversation.
const NOTHING: &str = "Nothing has been said so far.";

/// Returns the tokens of a summary: a twentieth of the conversation, at least 300 and at most
/// 4,400, and never more than the request allows.
///
/// The size of the conversation is its bytes / 4, because an exact count of a megabyte takes longer
/// than the rest of the summary.
pub fn budget(conversation_bytes: usize, max_tokens: Option<u64>) -> u64 {
    let own = (conversation_bytes as u64 / 4 / RATIO).clamp(MIN_TOKENS, MAX_TOKENS);
    max_tokens.map_or(own, |m| m.min(own))
}

/// Writes the summary for a prompt.
pub(super) fn write(prompt: &Prompt, max_tokens: Option<u64>) -> String {
    let reading = read(prompt);
    let ask = Instruction::parse(&reading.instruction, &reading.wishes);
    let limit = reading.limit(max_tokens);
    if reading.segments.is_empty() {
        return nothing(ask, limit);
    }
    let units = collect(&reading.segments, &ask);
    fit(ask, &units, limit, &reading.thoughts(), choose)
}

impl ParsedPrompt<'_> {
    /// Returns the size limit of the summary, tokens.
    pub(super) fn limit(&self, max_tokens: Option<u64>) -> u64 {
        budget(self.segments.iter().map(|s| s.text.len()).sum(), max_tokens)
    }

    /// Returns a short note for the `<analysis>` tags. Products discard it, so it contains no
    /// facts.
    pub(super) fn thoughts(&self) -> String {
        let count = |w: Author| self.segments.iter().filter(|s| s.who == w).count();
        let (users, calls, before) =
            (count(Author::User), count(Author::Call), count(Author::Summary));
        format!("{users} messages of the user, {calls} tool calls, {before} earlier summaries.")
    }
}

/// Returns the summary of an empty conversation.
pub(super) fn nothing(mut ask: Instruction, limit: u64) -> String {
    (ask.headings, ask.opening, ask.analysis_tag) = (Vec::new(), None, false);
    let text = if ask.summary_tag {
        format!("<summary>\n{NOTHING}\n</summary>")
    } else {
        NOTHING.to_string()
    };
    if o200k(&text) <= limit { text } else { cut(NOTHING, limit) }
}

/// Renders as many candidates as fit. `pick(units, tokens)` chooses by estimated sizes, which are
/// corrected by the exact count of the result.
pub(super) fn fit(
    mut ask: Instruction,
    units: &[SummaryCandidate<'_>],
    limit: u64,
    thoughts: &str,
    pick: impl Fn(&[SummaryCandidate<'_>], u64) -> Vec<usize>,
) -> String {
    let frame = |ask: &Instruction| o200k(&render(ask, units, &[], thoughts));
    // Under a tight limit, content matters more than the requested form.
    if 2 * frame(&ask) > limit {
        ask.analysis_tag = false;
    }
    if 2 * frame(&ask) > limit {
        ask.headings.clear();
    }
    if frame(&ask) > limit {
        (ask.summary_tag, ask.opening) = (false, None);
    }
    let room = limit.saturating_sub(frame(&ask));
    let mut guess = room;
    let (mut chosen, mut text, mut size) = (Vec::new(), String::new(), 0);
    for _ in 0..3 {
        chosen = pick(units, guess);
        text = render(&ask, units, &chosen, thoughts);
        size = o200k(&text);
        let full = size * 100 >= limit * 95 || chosen.len() == units.len();
        if size <= limit && full {
            return text;
        }
        let guessed: u64 = chosen.iter().map(|&i| u64::from(units[i].tokens)).sum();
        let real = size.saturating_sub(limit - room).max(1);
        guess = (room as f64 * 0.985 * guessed.max(1) as f64 / real as f64) as u64;
    }
    while size > limit && !chosen.is_empty() {
        // Drops the weakest candidates, as many as the excess probably requires.
        let mut excess = (size - limit) as i64;
        while excess > 0
            && let Some(i) = chosen.pop()
        {
            excess -= i64::from(units[i].tokens / 2 + 1);
        }
        text = render(&ask, units, &chosen, thoughts);
        size = o200k(&text);
    }
    if size <= limit { text } else { cut(&text, limit) }
}

/// Returns the beginning of a text with at most `limit` tokens.
pub(super) fn cut(text: &str, limit: u64) -> String {
    let mut head = text;
    loop {
        let n = o200k(head);
        if n <= limit {
            return head.trim_end().to_string();
        }
        let shorter = (head.len() as u64 * limit / n) as usize;
        head = &head[..head.floor_char_boundary(shorter.min(head.len() - 1))];
    }
}
