//! Causes of cache misses, by evidence in the file. Without evidence, a miss is "unexplained".

use std::collections::HashMap;

use ctxbench_core::model;
use ctxbench_core::usage::Ttl;
use serde::Serialize;

use super::calls::{Calls, ModelCall, Note, NoteKind, ProviderRoute};
use super::predict::{PredictOptions, Predicted, cached_part, rule_of};

/// Cause of a cache miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The idle time exceeded the lifetime of cache entries.
    Lifetime,
    /// Another model was used. Models do not share entries.
    Model,
    /// A compaction was recorded in between.
    Compaction,
    /// Earlier content changed, or the conversation was rewound.
    Edit,
    /// A request parameter or the client changed.
    Settings,
    /// A request without counters was sent in between.
    Uncounted,
    /// A new turn began, and the model's provider drops the reasoning of the previous turn.
    Thinking,
    /// More blocks were added than a read looks back.
    Lookback,
    /// The call was sent before the previous reply began.
    Concurrent,
    /// The calls went through a gateway.
    Gateway,
    /// The prefix was read although its lifetime was over.
    Outlived,
    /// The file contains no evidence.
    Unexplained,
}

impl Cause {
    pub fn name(self) -> &'static str {
        match self {
            Cause::Lifetime => "lifetime",
            Cause::Model => "model change",
            Cause::Compaction => "compaction",
            Cause::Edit => "edit",
            Cause::Settings => "settings",
            Cause::Uncounted => "uncounted request",
            Cause::Thinking => "thinking left out",
            Cause::Lookback => "lookback",
            Cause::Concurrent => "concurrent",
            Cause::Gateway => "gateway",
            Cause::Outlived => "outlived",
            Cause::Unexplained => "unexplained",
        }
    }
}

/// A call with a prefix that was not read as written, or that was predicted incorrectly.
#[derive(Clone, Debug, Serialize)]
pub struct Miss {
    /// Line number of the call, from 1.
    pub line: usize,
    /// Line number of the previous call in the conversation.
    pub after_line: usize,
    /// Name of the conversation.
    pub conversation: String,
    pub model: String,
    /// Time from the first part of the previous reply to the request, s. `None` without time
    /// stamps.
    pub gap_s: Option<f64>,
    /// Tokens that the previous call left in the cache.
    pub left: u64,
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens that the simulator predicted to be read.
    pub predicted_read: u64,
    /// True if the prediction was exact.
    pub predicted: bool,
    /// Tokens of this prompt that the previous call left in the cache and that were not read.
    pub missed: u64,
    /// Their cost above a read from the cache, USD. `None` without a known price.
    pub usd: Option<f64>,
    pub cause: Cause,
    pub evidence: String,
}

/// Number of positions that a read looks back on Anthropic's side.
const LOOKBACK: usize = 20;

/// A recording with an index of its counters, for finding those of an unexplained call.
pub(super) struct Evidence<'a> {
    r: &'a Calls,
    options: PredictOptions,
    /// Lines of calls by the number of tokens that they left in the cache, in file order.
    left: HashMap<u64, Vec<usize>>,
    /// First line of a call after a compaction, by the number of tokens that it read.
    compacted: HashMap<u64, usize>,
}

impl<'a> Evidence<'a> {
    pub(super) fn new(r: &'a Calls, options: PredictOptions) -> Evidence<'a> {
        let (mut left, mut compacted) = (HashMap::<u64, Vec<usize>>::new(), HashMap::new());
        for call in &r.calls {
            let c = &call.counters;
            left.entry(c.read.saturating_add(c.write)).or_default().push(call.line);
            if call.boundary.is_some() {
                compacted.entry(c.read).or_insert(call.line);
            }
        }
        Evidence { r, options, left, compacted }
    }

    /// Returns the miss of call `i` after call `p`, if any.
    pub(super) fn miss(
        &self,
        i: usize,
        p: usize,
        predicted: Predicted,
        exact: bool,
    ) -> Option<Miss> {
        let (call, before) = (&self.r.calls[i], &self.r.calls[p]);
        let (rule, _) = rule_of(&call.model)?;
        let left = cached_part(before, &rule);
        let left = left - left % rule.step;
        let read = call.counters.read;
        if exact && read >= left {
            return None;
        }
        let gap_ms = call.sent_ms.zip(before.began_ms).map(|(a, b)| a - b);
        let missed = left.min(cached_part(call, &rule)).saturating_sub(read);
        let (cause, evidence) = self.cause(i, p, gap_ms, left, predicted);
        Some(Miss {
            line: call.line,
            after_line: before.line,
            conversation: call.conversation.clone(),
            model: call.model.clone(),
            gap_s: gap_ms.map(|ms| ms as f64 / 1_000.0),
            left,
            read,
            predicted_read: predicted.read,
            predicted: exact,
            missed,
            usd: surcharge(call, missed),
            cause,
            evidence,
        })
    }

    fn cause(
        &self,
        i: usize,
        p: usize,
        gap_ms: Option<i64>,
        left: u64,
        predicted: Predicted,
    ) -> (Cause, String) {
        let (call, before) = (&self.r.calls[i], &self.r.calls[p]);
        let read = call.counters.read;
        let note = |kind: NoteKind| {
            call.notes
                .iter()
                .rfind(|n: &&Note| n.kind == kind)
                .map(|n| format!("line {}: {}", n.line, n.text))
        };
        if call.model != before.model {
            return (Cause::Model, format!("{} after {}", call.model, before.model));
        }
        if let Some(b) = call.boundary {
            let known = if predicted.size_unknown {
                "; the size of the system part shows here for the first time"
            } else {
                ""
            };
            return (
                Cause::Compaction,
                format!("line {}: compaction boundary{known}", self.r.boundaries[b].line),
            );
        }
        if call.before != Some(p) {
            let to = call.before.map_or("the beginning".into(), |b| {
                format!("the reply of line {}", self.r.calls[b].line)
            });
            return (Cause::Edit, format!("the chain of parents returns to {to}"));
        }
        if let Some(text) = note(NoteKind::Edit) {
            return (Cause::Edit, text);
        }
        let rule = rule_of(&call.model).map(|(r, _)| r);
        let ttl = call
            .counters
            .is_long()
            .or(before.counters.is_long())
            .map_or(self.options.ttl, |l| if l { Ttl::OneHour } else { Ttl::FiveMinutes });
        let life = rule.map(|r| r.lifetime(ttl)).and_then(|ms| i64::try_from(ms).ok());
        if let (Some(gap), Some(life)) = (gap_ms, life)
            && gap >= life
        {
            let idle =
                format!("idle for {:.0} s, entries live {} s", gap as f64 / 1_000.0, life / 1_000);
            return if read >= left {
                (Cause::Outlived, format!("{idle}; something else used it, or it lives longer"))
            } else {
                (Cause::Lifetime, idle)
            };
        }
        if let Some(text) = note(NoteKind::Settings) {
            return (Cause::Settings, text);
        }
        if let Some(text) = note(NoteKind::Uncounted) {
            return (Cause::Uncounted, text);
        }
        if read < left
            && let Some(first) = dropped_thinking(self.r, call)
            && rule.is_some_and(|rule| cached_part(first, &rule) == read)
        {
            let text =
                format!("the text before the reply of line {}, which has thinking", first.line);
            return (Cause::Thinking, text);
        }
        let grown = before.reply_blocks + call.input_blocks;
        if rule.is_some_and(|r| r.lookback.is_some()) && read < left && grown >= LOOKBACK {
            return (
                Cause::Lookback,
                format!(
                    "{grown} content blocks since the last write, {LOOKBACK} positions are checked"
                ),
            );
        }
        if gap_ms.is_some_and(|g| g < 0) {
            return (Cause::Concurrent, "sent before the reply before had begun".into());
        }
        if matches!(self.r.route, ProviderRoute::Gateway(_)) {
            // Evidence of the route itself comes first.
            return (Cause::Gateway, self.hint(call, left));
        }
        (Cause::Unexplained, self.hint(call, left))
    }

    /// Describes the counters of an unexplained call. This is a hint, not evidence.
    fn hint(&self, call: &ModelCall, left: u64) -> String {
        let read = call.counters.read;
        if read > left {
            return format!(
                "{} tokens more than the call before had left: written by a request that is not in \
                 the file",
                read - left
            );
        }
        if read == 0 {
            return "nothing was served, tools and system included: they changed, or the entry was \
                    lost"
                .into();
        }
        if let Some(line) = self.compacted.get(&read).filter(|line| **line < call.line) {
            return format!(
                "only tools and system were served, as in line {line}: something in the messages \
                 changed that the file does not show"
            );
        }
        let same = self.left.get(&read).map_or(&[][..], Vec::as_slice);
        match same[..same.partition_point(|line| *line < call.line)].last() {
            Some(line) => {
                format!("the prefix of line {line} was served, the text after it was not")
            }
            None => format!("{} tokens fewer than the call before had left", left - read),
        }
    }
}

/// Returns the cost of `missed` tokens of a prompt above a read from the cache, USD. Tokens that were
/// not read are written first.
fn surcharge(call: &ModelCall, missed: u64) -> Option<f64> {
    let model = model::find_recorded(&call.model)?;
    let c = &call.counters;
    let written = missed.min(c.write);
    let cost = |read: u64, write: u64, input: u64| {
        model::cost(model, &super::usage(c, input, read, write)).total()
    };
    let paid = cost(c.read, c.write, c.input);
    Some(paid - cost(c.read + missed, c.write - written, c.input - (missed - written).min(c.input)))
}

/// Returns the first call with thinking of the previous turn, if a new turn drops thinking.
fn dropped_thinking<'a>(r: &'a Calls, call: &ModelCall) -> Option<&'a ModelCall> {
    if !call.begins_turn || model::keeps_thinking(&call.model) {
        return None;
    }
    let (mut at, mut first) = (call.before, None);
    while let Some(c) = at {
        let own = &r.calls[c];
        first = Some(own).filter(|c| c.thoughts > 0).or(first);
        at = own.before.filter(|before| *before < c && !own.begins_turn);
    }
    first
}
