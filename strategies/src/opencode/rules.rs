//! OpenCode's rules as pure functions (docs/sources/opencode.md §1-4): size limits, start of the
//! tail, selection of messages.

use std::sync::Arc;

use super::settings::{Count, OpenCodeSettings};
use ctxbench_core::block::{Block, BlockForm, BlockKind, MessageId};
use ctxbench_core::compaction::{PruneRule, PruneStep, head_cut, prune_walk, turn_starts};
use ctxbench_core::request::{ErrorKind, ModelError};
use ctxbench_core::tokens::{o200k, utf16_div4_round};
use ctxbench_core::usage::Usage;

/// Limits of a model as OpenCode knows them, tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelLimits {
    /// Context window; 0 = unknown.
    pub context: u64,
    pub output: u64,
    /// Separate limit on input.
    pub input: Option<u64>,
}

/// `OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX`'s default: replies are capped at this
/// (docs/sources/opencode.md §2).
pub const OUTPUT_CAP: u64 = 32_000;
/// Buffer kept free where a model has an input limit (docs/sources/opencode.md §2,
/// COMPACTION_BUFFER).
pub const BUFFER: u64 = 20_000;

/// Returns `min(output, cap)`, or the cap if that is 0.
pub fn max_output(limits: ModelLimits, cap: u64) -> u64 {
    match limits.output.min(cap) {
        0 => cap,
        n => n,
    }
}

/// Returns the tokens that may be used before a compaction.
pub fn usable(limits: ModelLimits, reserved: Option<u64>, cap: u64, buffer: u64) -> u64 {
    let out = max_output(limits, cap);
    if limits.context == 0 {
        return 0;
    }
    match limits.input.filter(|n| *n > 0) {
        Some(input) => input.saturating_sub(reserved.unwrap_or(buffer.min(out))),
        None => limits.context.saturating_sub(out),
    }
}

/// Returns true if a compaction follows a step that ended with `count` tokens
/// (docs/sources/opencode.md §2).
pub fn overflows(auto: bool, context: u64, usable: u64, count: u64) -> bool {
    auto && context != 0 && count >= usable
}

/// Returns the tokens of a step to compare with the window: the provider's total, or the sum of the
/// parts if the total is missing or 0 (docs/sources/opencode.md §2).
pub fn used(usage: &Usage) -> u64 {
    let parts = || usage.prompt().saturating_add(usage.output);
    usage.reported_total.filter(|n| *n > 0).unwrap_or_else(parts)
}

/// Provider messages that mean that the prompt is too long, in lower case (docs/sources/opencode.md
/// §3.1 lists the kinds).
const TOO_LONG: &[&str] = &[
    "prompt is too long",
    "input is too long",
    "exceeds the context window",
    "exceed context limit",
    "maximum context length",
    "maximum prompt length",
    "input token count",
    "context length exceeded",
    "context_length_exceeded",
    "context window exceeds limit",
    "reduce the length of the messages",
    "request entity too large",
    "request_too_large",
    "too many tokens",
    "token limit exceeded",
];

/// Messages about the request rate and not about the length.
const ABOUT_RATE: &[&str] = &["rate limit", "too many requests", "throttl", "per minute"];

/// Returns true if the provider refused a prompt for its length (docs/sources/opencode.md §3.1).
pub fn is_overflow(e: &ModelError) -> bool {
    let message = e.message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| message.contains(w));
    e.is_overflow() || (!says(ABOUT_RATE) && says(TOO_LONG))
}

/// Maximum retries of a request after transient failures (docs/sources/opencode.md §3.1).
pub const RETRIES: u32 = 5;

/// Returns true if a failed request is sent again: rate limits, time-outs, server errors and broken
/// streams (docs/sources/opencode.md §3.1).
pub fn is_retryable(e: &ModelError) -> bool {
    let passing = matches!(e.kind, ErrorKind::RateLimited | ErrorKind::Server | ErrorKind::Stream)
        || matches!(e.status, 408 | 409);
    passing && !is_overflow(e)
}

/// Returns the token budget of the verbatim tail: a quarter of the usable tokens, within bounds.
pub fn tail_budget(usable: u64, preserve: Option<u64>, least: u64, most: u64) -> u64 {
    preserve.unwrap_or_else(|| most.min(least.max(usable / 4)))
}

/// A turn among the messages to be summarised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnSpan {
    /// Index of its user message.
    pub first: usize,
    /// Index after its last message.
    pub end: usize,
    /// Estimate of the messages from each index of the turn to its end.
    pub suffix_tokens: Vec<u64>,
}

/// Returns the start of the verbatim tail; `None` = everything is summarised
/// (docs/sources/opencode.md §3.2.4).
pub fn select_tail(turns: &[TurnSpan], tail_turns: Option<i64>, budget: u64) -> Option<usize> {
    let considered = match tail_turns {
        None => turns.len(),
        Some(n) => usize::try_from(n).unwrap_or(0).min(turns.len()),
    };
    let (mut total, mut start) = (0, None);
    for turn in turns[turns.len() - considered..].iter().rev() {
        let whole = turn.suffix_tokens.first().copied().unwrap_or(0);
        if total + whole <= budget {
            total += whole;
            start = Some(turn.first);
            continue;
        }
        let left = budget - total;
        if let Some(i) = (1..turn.suffix_tokens.len()).find(|&i| turn.suffix_tokens[i] <= left) {
            start = Some(turn.first + i);
        }
        break;
    }
    start.filter(|s| *s > 0)
}

/// Facts about a stored message for [`filter_compacted`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageView {
    pub id: MessageId,
    /// True for a message on the user's side.
    pub user: bool,
    /// A marker of a compaction, with the start of its verbatim tail.
    pub marker: Option<Option<MessageId>>,
    /// The user message that an assistant message answers.
    pub parent: Option<MessageId>,
    pub summary: bool,
    /// True if the message is complete.
    pub finished: bool,
    pub error: bool,
}

/// Returns the indexes of the stored messages to send, in order (docs/sources/opencode.md §4).
pub fn filter_compacted(messages: &[MessageView]) -> Vec<usize> {
    let mut done: Vec<MessageId> = Vec::new();
    let mut until: Option<MessageId> = None;
    let mut out = Vec::new();
    for (i, m) in messages.iter().enumerate().rev() {
        out.push(i);
        if let Some(id) = until {
            if m.id == id {
                break;
            }
            continue;
        }
        if m.user && done.contains(&m.id) {
            match m.marker {
                Some(None) => break,
                Some(Some(start)) if start == m.id => break,
                Some(Some(start)) => until = Some(start),
                None => {}
            }
        } else if !m.user && m.summary && m.finished && !m.error {
            done.extend(m.parent);
        }
    }
    out.reverse();
    tail_behind_summary(messages, &out).unwrap_or(out)
}

/// Orders a marker and its summary before the tail, and later messages after it.
fn tail_behind_summary(messages: &[MessageView], order: &[usize]) -> Option<Vec<usize>> {
    let marker = order
        .iter()
        .rposition(|&i| messages[i].user && matches!(messages[i].marker, Some(Some(_))))?;
    let start_id = messages[order[marker]].marker.flatten()?;
    let marker_id = messages[order[marker]].id;
    let summary = (marker + 1..order.len()).find(|&k| {
        let m = &messages[order[k]];
        !m.user && m.summary && m.parent == Some(marker_id)
    })?;
    let start = order[..marker].iter().position(|&i| messages[i].id == start_id)?;
    let mut out = order[marker..=summary].to_vec();
    out.extend(&order[start..marker]);
    out.extend(&order[summary + 1..]);
    Some(out)
}

/// Tools with results that are never cleared (docs/sources/opencode.md §1).
pub const PRUNE_EXEMPT: &[&str] = &["skill"];
/// Number of newest user turns in which nothing is cleared (docs/sources/opencode.md §1).
const PRUNE_TURNS: usize = 2;

/// Facts about a tool result for [`prune`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneResult<'a> {
    pub tool: &'a str,
    pub output: &'a str,
    /// True if the call did not fail.
    pub completed: bool,
    pub cleared: bool,
}

/// Facts about a stored message for [`prune`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PruneMessage<'a> {
    /// True for a message on the user's side.
    pub user: bool,
    pub summary: bool,
    /// Tool results in order.
    pub results: Vec<PruneResult<'a>>,
}

/// Builds the pruning rule from the settings. Results that free exactly the minimum are not cleared
/// (docs/sources/opencode.md §1).
pub fn prune_rule(s: &OpenCodeSettings) -> PruneRule {
    PruneRule { protect: s.prune_protect, minimum: s.prune_minimum, minimum_suffices: false }
}

/// Returns the size function for tool results that the settings select.
pub fn size_of(count: Count) -> fn(&str) -> u64 {
    match count {
        Count::Characters => utf16_div4_round,
        Count::Tokens => o200k,
    }
}

/// Returns the results to clear after a turn, as message index and index among its results, oldest
/// first (docs/sources/opencode.md §1). `size` measures a result. Without a rule nothing is
/// cleared.
pub fn prune(
    messages: &[PruneMessage<'_>],
    rule: Option<PruneRule>,
    size: fn(&str) -> u64,
) -> Vec<(usize, usize)> {
    let Some(rule) = rule else { return Vec::new() };
    let (mut turns, mut steps, mut places) = (0, Vec::new(), Vec::new());
    'walk: for (i, m) in messages.iter().enumerate().rev() {
        turns += usize::from(m.user);
        if turns < PRUNE_TURNS {
            continue;
        }
        if m.summary {
            break;
        }
        for (j, r) in m.results.iter().enumerate().rev() {
            if !r.completed || PRUNE_EXEMPT.contains(&r.tool) {
                continue;
            }
            if r.cleared {
                break 'walk;
            }
            steps.push(PruneStep::Result(size(r.output)));
            places.push((i, j));
        }
    }
    prune_walk(steps, rule).into_iter().rev().map(|k| places[k]).collect()
}

/// Selects the results of a view to clear, as positions with their token estimates, according to
/// docs/sources/opencode-vs-claude-code.md and docs/sources/login-bug.md §4. The search starts
/// before the newest two user messages and continues to older results until one that was cleared
/// before. Results of the `exempt` tools stay.
pub fn prune_view(blocks: &[Arc<Block>], rule: PruneRule, exempt: &[&str]) -> Vec<(usize, u64)> {
    let turns = turn_starts(blocks);
    let Some(&end) = turns.len().checked_sub(PRUNE_TURNS).and_then(|i| turns.get(i)) else {
        return Vec::new();
    };
    let at: Vec<usize> = (0..end).rev().filter(|&i| blocks[i].kind == BlockKind::Output).collect();
    let step = |&i: &usize| {
        let b = &blocks[i];
        match b.call.as_ref() {
            _ if b.is_error => PruneStep::Exempt,
            Some(c) if exempt.contains(&&*c.name) => PruneStep::Exempt,
            _ if b.form == BlockForm::Cleared => PruneStep::Stop,
            _ => PruneStep::Result(utf16_div4_round(&b.text)),
        }
    };
    let chosen = prune_walk(at.iter().map(step), rule);
    chosen.into_iter().map(|k| (at[k], utf16_div4_round(&blocks[at[k]].text))).collect()
}

/// Maximum length of a tool result in a transcript, in UTF-16 units (docs/sources/opencode.md
/// §3.2.6).
pub const TRANSCRIPT_OUTPUT: usize = 2_000;

/// Formats a tool result for a transcript.
pub fn transcript_output(text: &str) -> String {
    match head_cut(text, TRANSCRIPT_OUTPUT) {
        Some(head) => format!("{head}\n[truncated]"),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokenizer_sees_what_characters_do_not() {
        // A rare character is a quarter of a token by its length, but at least one token to a
        // tokenizer.
        let output = "鑰".repeat(100);
        let result = PruneResult { tool: "read", output: &output, completed: true, cleared: false };
        let said = |user, results| PruneMessage { user, summary: false, results };
        let messages =
            [said(true, vec![]), said(false, vec![result]), said(true, vec![]), said(true, vec![])];
        let rule = Some(PruneRule { protect: 0, minimum: 99, minimum_suffices: false });
        assert_eq!(prune(&messages, rule, size_of(Count::Characters)), []);
        assert_eq!(prune(&messages, rule, size_of(Count::Tokens)), [(1, 0)]);
    }
}
