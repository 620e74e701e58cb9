//! OpenCode's rules as pure functions (docs/sources/opencode.md §1-4, §6): size limits, the plan of
//! a compaction, pruning, selection of messages, breakpoints.

use std::collections::HashSet;
use std::sync::LazyLock;

use ctxbench_core::model::{Model, Provider};
use ctxbench_core::prelude::*;
use serde::Deserialize;

use super::log::StoredMessage;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenCodeSettings {
    pub(crate) auto: bool,
    pub(crate) prune: Option<bool>,
    pub(crate) prune_protect: u64,
    pub(crate) prune_minimum: u64,
    pub(crate) count: Count,
    pub(crate) reserved: Option<u64>,
    pub(crate) tail_turns: Option<u64>,
    pub(crate) preserve_recent_tokens: Option<u64>,
    pub(crate) tail_least: u64,
    pub(crate) tail_most: u64,
    pub(crate) model: Option<Arc<str>>,
    pub(crate) model_context: Option<u64>,
    pub(crate) model_output: Option<u64>,
    pub(crate) model_input: Option<u64>,
    pub(crate) hook_context: Option<Arc<str>>,
    pub(crate) hook_prompt: Option<Arc<str>>,
    pub(crate) autocontinue: bool,
    pub(crate) proactive: Option<f64>,
    pub(crate) prompt: Prompt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Count {
    Characters,
    Tokens,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Prompt {
    Own,
    Sdk,
}

/// Texts in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OpenCodeWords {
    pub(crate) summary_system: Arc<str>,
    pub(crate) intro: Arc<str>,
    pub(crate) first: Arc<str>,
    pub(crate) prior_open: Arc<str>,
    pub(crate) prior_close: Arc<str>,
    pub(crate) template: Arc<str>,
    pub(crate) hook_history: Arc<str>,
    pub(crate) old_prompt: Arc<str>,
    pub(crate) wrapper_open: Arc<str>,
    pub(crate) wrapper_close: Arc<str>,
    pub(crate) marker: Arc<str>,
    pub(crate) go_on: Arc<str>,
    pub(crate) go_on_overflow: Arc<str>,
    pub(crate) template_sdk: Arc<str>,
    pub(crate) plain_prompt: Arc<str>,
}

impl OpenCodeWords {
    /// Selects the headings: the program's own, or the five sections of
    /// docs/sources/opencode-vs-claude-code.md §8.
    pub(crate) fn headed(self, prompt: Prompt) -> Self {
        match prompt {
            Prompt::Own => self,
            Prompt::Sdk => OpenCodeWords {
                template: self.template_sdk.clone(),
                old_prompt: self.template_sdk.clone(),
                plain_prompt: self.template_sdk.clone(),
                ..self
            },
        }
    }

    /// Applies a plugin's additions to, or replacement of, the prompt (docs/sources/opencode.md
    /// §3.2.5).
    pub(crate) fn hooked(self, s: &OpenCodeSettings) -> Self {
        let with = |words: &Arc<str>| match (&s.hook_prompt, &s.hook_context) {
            (Some(prompt), _) => prompt.clone(),
            (None, Some(context)) => format!("{words}\n\n{context}").into(),
            (None, None) => words.clone(),
        };
        OpenCodeWords { template: with(&self.template), old_prompt: with(&self.old_prompt), ..self }
    }

    /// Builds the summary request of a plugin with its own prompt. The conversation follows the
    /// prompt; the previous summary is not included.
    pub(crate) fn prompt_of_plugin(&self, transcript: &Transcript) -> Transcript {
        let mut out = Transcript::default();
        out.instruct(&self.template);
        out.instruct(&self.hook_history);
        out.append(transcript);
        out
    }

    /// Builds the summary request around a transcript and the previous summary
    /// (docs/sources/opencode.md §3.2.7).
    pub(crate) fn prompt(&self, transcript: &Transcript, prior: Option<&str>) -> Transcript {
        let mut out = Transcript::default();
        out.instruct(&self.intro);
        out.append(transcript);
        match prior {
            None => out.instruct(&self.first),
            Some(p) => {
                out.instruct(&self.prior_open);
                out.recall(&Transcript::quoted(BlockKind::Summary, p));
                out.instruct(&self.prior_close);
            }
        }
        out.instruct(&self.template);
        out
    }
}

/// Limits of a model as OpenCode knows them, tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelLimits {
    /// Context window; 0 = unknown.
    pub context: u64,
    pub output: u64,
    /// Separate limit on input.
    pub input: Option<u64>,
    /// Replies are capped at this (docs/sources/opencode.md §2,
    /// `OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX`).
    pub cap: u64,
    /// Kept free where a model has an input limit (docs/sources/opencode.md §2, COMPACTION_BUFFER).
    pub buffer: u64,
}

impl ModelLimits {
    pub fn new(context: u64, output: u64, input: Option<u64>, scale: f64) -> ModelLimits {
        let (cap, buffer) = (scale_tokens(32_000, scale), scale_tokens(20_000, scale));
        ModelLimits { context, output, input, cap, buffer }
    }

    pub fn for_model(m: &Model, scale: f64) -> ModelLimits {
        ModelLimits::new(m.window, m.max_output, m.input_limit, scale)
    }

    /// Returns `min(output, cap)`, or the cap if that is 0.
    pub fn max_output(self) -> u64 {
        match self.output.min(self.cap) {
            0 => self.cap,
            n => n,
        }
    }

    /// Returns the tokens that may be used before a compaction.
    pub fn usable(self, reserved: Option<u64>) -> u64 {
        let out = self.max_output();
        match self.input.filter(|n| *n > 0) {
            _ if self.context == 0 => 0,
            Some(input) => input.saturating_sub(reserved.unwrap_or(self.buffer.min(out))),
            None => self.context.saturating_sub(out),
        }
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

/// How a refusal for the length of a prompt is told by the text of the answer, in lower case.
#[derive(Deserialize)]
struct Failures {
    too_large: Vec<String>,
    not_too_large: Vec<String>,
}

static FAILURES: LazyLock<Failures> = LazyLock::new(|| {
    toml::from_str(include_str!("failures.toml")).expect("a test reads failures.toml")
});

/// Returns true if the provider refused a prompt for its length (docs/sources/opencode.md §3.1).
pub fn is_overflow(e: &ModelError) -> bool {
    let message = e.message.to_lowercase();
    let says = |words: &[String]| words.iter().any(|w| message.contains(w));
    e.is_overflow() || (!says(&FAILURES.not_too_large) && says(&FAILURES.too_large))
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

/// Returns the turns among these messages with the estimates of their suffixes.
fn turns(log: &[StoredMessage], messages: &[usize]) -> Vec<TurnSpan> {
    let starts: Vec<usize> =
        (0..messages.len()).filter(|&k| log[messages[k]].is_prompt()).collect();
    let lens: Vec<u64> = messages.iter().map(|&i| log[i].json_len()).collect();
    let ends = starts.iter().skip(1).copied().chain([messages.len()]);
    let turn = |(&first, end)| {
        let suffix_tokens = (first..end).map(|k| estimate_list(&lens[k..end])).collect();
        TurnSpan { first, end, suffix_tokens }
    };
    starts.iter().zip(ends).map(turn).collect()
}

/// Estimates a list of messages as JSON, brackets included: length / 4, rounded half up. Each entry
/// is the length of a message's model messages, each with a comma.
pub fn estimate_list(lens: &[u64]) -> u64 {
    let members: u64 = lens.iter().sum();
    (2 + members.saturating_sub(1) + 2) / 4
}

/// Limits of the verbatim tail.
#[derive(Clone, Copy, Debug)]
pub struct TailRule {
    /// Maximum number of turns; `None` = no limit.
    pub turns: Option<i64>,
    /// Tokens.
    pub budget: u64,
}

/// Messages that a compaction summarises, keeps and repeats, as indexes in the log.
#[derive(Debug, Default)]
pub struct CompactionPlan {
    pub head: Vec<usize>,
    /// First message of the verbatim tail; `None` = no tail.
    pub tail: Option<usize>,
    /// The summary that the new one continues.
    pub prior: Option<usize>,
    /// User message that is sent again after the summary.
    pub replay: Option<usize>,
}

/// Plans a compaction for the message `parent`: its marker, or the newest user message if the
/// compaction is older than that message (docs/sources/opencode.md §3.2). After a refused prompt
/// (`overflow`), the nearest user message before the parent is repeated and not summarised, unless it
/// is the first. Without a rule for a tail, as in 1.3, everything is summarised, earlier summaries
/// included.
pub fn plan_compaction(
    log: &[StoredMessage],
    parent: MessageId,
    overflow: bool,
    tail: Option<TailRule>,
) -> CompactionPlan {
    let view = filter_compacted(log);
    let at_parent = view.iter().position(|&i| log[i].id == parent).unwrap_or(view.len());
    let mut prompts = (0..at_parent).rev().filter(|&k| log[view[k]].is_prompt());
    let replay = prompts.next().filter(|_| overflow && prompts.next().is_some());
    let mut head = view[..replay.unwrap_or(view.len())].to_vec();
    let replay = replay.map(|k| view[k]);
    let Some(rule) = tail else { return CompactionPlan { head, replay, ..Default::default() } };
    head.pop_if(|&mut i| log[i].id == parent && log[i].is_marker());
    let prior = strip_compactions(log, &mut head);
    let start = select_tail(&turns(log, &head), rule.turns, rule.budget);
    let tail = start.map(|k| head[k]);
    head.truncate(start.unwrap_or(head.len()));
    CompactionPlan { head, tail, prior, replay }
}

/// Removes finished marker-summary pairs and returns the last summary by position, if it has text: if
/// a tail contains an older pair, that pair's summary is passed on and the newer one is lost.
fn strip_compactions(log: &[StoredMessage], messages: &mut Vec<usize>) -> Option<usize> {
    let marker_of = |i: usize| {
        let parent = log[i].parent.filter(|_| log[i].is_summary())?;
        messages.iter().copied().find(|&k| log[k].id == parent && log[k].is_marker())
    };
    let pairs: Vec<[usize; 2]> =
        messages.iter().filter_map(|&i| Some([marker_of(i)?, i])).collect();
    let hidden: HashSet<usize> = pairs.iter().flatten().copied().collect();
    messages.retain(|i| !hidden.contains(i));
    pairs.last().map(|&[_, summary]| summary).filter(|&i| !log[i].text().is_empty())
}

/// Returns the indexes of the stored messages to send, in order (docs/sources/opencode.md §4).
pub fn filter_compacted(messages: &[StoredMessage]) -> Vec<usize> {
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
        } else if !m.user && m.is_summary() {
            done.extend(m.parent);
        }
    }
    out.reverse();
    tail_behind_summary(messages, &out).unwrap_or(out)
}

/// Orders a marker and its summary before the tail, and later messages after it.
fn tail_behind_summary(messages: &[StoredMessage], order: &[usize]) -> Option<Vec<usize>> {
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

/// Returns the results to clear after a turn, as message index and index among its blocks, oldest
/// first (docs/sources/opencode.md §1). `size` measures a result; results of the `exempt` tools stay.
pub fn prune(
    messages: &[StoredMessage],
    rule: PruneRule,
    exempt: &[&str],
    size: fn(&str) -> u64,
) -> Vec<(usize, usize)> {
    let (mut turns, mut sizes, mut places) = (0, Vec::new(), Vec::new());
    'walk: for (i, m) in messages.iter().enumerate().rev() {
        turns += usize::from(m.user);
        if turns < PRUNE_TURNS {
            continue;
        }
        if m.summary {
            break;
        }
        for (j, b) in m.blocks.iter().enumerate().rev() {
            let is_exempt = b.call.as_ref().is_some_and(|c| exempt.contains(&&*c.name));
            if b.kind != BlockKind::Output || b.is_error || is_exempt {
                continue;
            }
            if b.form == BlockForm::Cleared {
                break 'walk;
            }
            sizes.push(Some(size(&b.text)));
            places.push((i, j));
        }
    }
    prune_walk(sizes, rule).into_iter().rev().map(|k| places[k]).collect()
}

/// Returns the breakpoints, which only Anthropic needs: the first two system messages and the last
/// two other messages (docs/sources/opencode.md §6).
pub fn breakpoints(provider: Provider, blocks: &[Arc<Block>]) -> Vec<usize> {
    if provider != Provider::Anthropic {
        return Vec::new();
    }
    let is_system = |&i: &usize| blocks[i].role == Role::System;
    let ends = |&i: &usize| {
        blocks.get(i + 1).is_none_or(|b| {
            let a = &blocks[i];
            a.message != b.message && (a.role, b.role) != (Role::Tool, Role::Tool)
        })
    };
    let systems = (0..blocks.len()).filter(is_system).take(2);
    let others = (0..blocks.len()).rev().filter(|i| !is_system(i) && ends(i));
    let mut last: Vec<usize> = others.take(2).collect();
    last.reverse();
    systems.chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::call_block;

    #[test]
    fn a_tokenizer_sees_what_characters_do_not() {
        // A rare character is a quarter of a token by its length, but at least one token to a
        // tokenizer.
        let result = call_block(BlockKind::Output, "1", "read", &"鑰".repeat(100));
        let message = |user, blocks| StoredMessage::new(MessageId(0), user, blocks);
        let said = || message(true, vec![]);
        let messages = [said(), message(false, vec![result]), said(), said()];
        let rule = PruneRule { protect: 0, minimum: 99, minimum_suffices: false };
        let pruned = |count| prune(&messages, rule, PRUNE_EXEMPT, size_of(count));
        assert_eq!(pruned(Count::Characters), []);
        assert_eq!(pruned(Count::Tokens), [(1, 0)]);
    }
}
