//! Counters of a rollout and the replies that they belong to.

use std::collections::HashSet;
use std::sync::Arc;

use crate::formats::prelude::*;
use ctxbench_core::tokens::content_hash;

/// Counters of a call, as a line tells them.
#[derive(Clone)]
pub(super) struct CallRecord {
    counters: Counters,
    reasoning: Option<u64>,
    /// Whether a `token_usage_record` tells them, and not a `token_count`.
    is_record: bool,
}

impl CallRecord {
    pub(super) fn new(usage: &Map<String, Value>, is_record: bool) -> Self {
        let counters = messages::counters(usage).unwrap_or_default();
        let reasoning = usage.get("reasoning_output_tokens").and_then(tokens);
        CallRecord { counters, reasoning, is_record }
    }

    /// Names the call by the totals after it, which forks repeat, by the provider's id if there is one,
    /// and by its thread if the file tells which it is.
    pub(super) fn named(mut self, totals: &str, id: Option<&str>, thread: Option<&str>) -> Self {
        let Billing { call_id, call_alias, call_in, .. } = &mut *self.counters.billing;
        *call_id = Some(totals.into());
        (*call_alias, *call_in) = (id.map(Into::into), thread.map(Into::into));
        self
    }

    /// Returns the tokens of the request and its reply. `None` = an estimate of the program.
    pub(super) fn context(&self) -> Option<u64> {
        (self.counters.prompt() > 0).then(|| self.counters.context())
    }

    pub(super) fn reply(self, response: String, model: Option<String>) -> RecordingReply {
        RecordingReply {
            model,
            counters: Ok(self.counters),
            ..RecordingReply::new(response, Vec::new())
        }
    }

    fn is_same_call(&self, other: &CallRecord) -> bool {
        let numbers = |c: &Counters| [c.prompt(), c.read, c.output];
        self.is_record != other.is_record && numbers(&self.counters) == numbers(&other.counters)
    }
}

/// Assigns counters to replies.
#[derive(Default)]
pub(super) struct RolloutCalls {
    /// Name and steps of the reply that has no counters yet.
    open: Option<(String, Vec<usize>)>,
    pub(super) searches: u64,
    ended: bool,
    /// Newest counters with their steps, until another line repeats them.
    newest: Option<(CallRecord, Vec<usize>)>,
    pub(super) unreplied: Option<(RecordingStep, RecordingReply)>,
    /// Names of the counters so far.
    seen: HashSet<Arc<str>>,
    /// Tokens of the calls since the newest totals, in the order of [`TOTALS`].
    since_totals: [u64; 4],
}

/// Sums of a rollout: all input, the input that the cache served, the output, and the input that was
/// written to the cache.
const TOTALS: [&str; 4] =
    ["input_tokens", "cached_input_tokens", "output_tokens", "cache_write_input_tokens"];

/// Names a call by totals of input and output, and what was used since.
pub(super) fn name(totals: &Map<String, Value>, since: [u64; 2]) -> String {
    let told = [TOTALS[0], TOTALS[2]].map(|key| totals.get(key).and_then(tokens).unwrap_or(0));
    format!("{:?}", [told[0].saturating_add(since[0]), told[1].saturating_add(since[1])])
}

/// Returns the counters of the newest call or, with totals only, their growth.
/// Totals that fall began at 0 again.
pub(super) fn newest(
    info: &Map<String, Value>,
    before: Option<&Map<String, Value>>,
) -> Option<Map<String, Value>> {
    if let Some(last) = object_of(info, "last_token_usage") {
        return Some(last.clone());
    }
    let totals = object_of(info, "total_token_usage")?;
    let sums = |of: &Map<String, Value>| TOTALS.map(|k| of.get(k).and_then(tokens).unwrap_or(0));
    let (now, before) = (sums(totals), before.map(sums).unwrap_or_default());
    let before = if now.iter().zip(before).any(|(n, b)| *n < b) { [0; 4] } else { before };
    let grown = (0..TOTALS.len()).map(|n| (TOTALS[n].to_string(), (now[n] - before[n]).into()));
    Some(grown.collect())
}

impl RolloutCalls {
    /// Adds a part to the open reply. Returns the name of the reply.
    pub(super) fn part(&mut self, step: usize) -> String {
        if self.ended {
            (self.open, self.searches) = (None, 0);
        }
        self.ended = false;
        let (name, steps) = self.open.get_or_insert_with(|| (format!("step {step}"), Vec::new()));
        steps.push(step);
        name.clone()
    }

    /// Ends the open reply: the next part belongs to another.
    pub(super) fn end_reply(&mut self) {
        self.ended = true;
    }

    /// Returns the input and the output since the newest totals, with those of a call.
    pub(super) fn since_totals(&self, record: &CallRecord) -> [u64; 2] {
        let ([input, _, output, _], c) = (self.since_totals, &record.counters);
        [input.saturating_add(c.prompt()), output.saturating_add(c.output)]
    }

    pub(super) fn add_to_totals(&mut self, record: &CallRecord) {
        let Counters { read, output, write, .. } = record.counters;
        let calls = [record.counters.prompt(), read, output, write];
        let sums = self.since_totals.iter_mut().zip(calls);
        sums.for_each(|(sum, n)| *sum = sum.saturating_add(n));
    }

    /// Returns the tokens by which the totals grew beyond the calls since the totals before.
    pub(super) fn uncounted(
        &mut self,
        before: Option<&Map<String, Value>>,
        totals: &Map<String, Value>,
    ) -> Option<CallRecord> {
        let known = std::mem::take(&mut self.since_totals);
        let sum = |of: &Map<String, Value>, n: usize| of.get(TOTALS[n]).and_then(tokens);
        let grown = |n: usize| -> Option<Value> {
            let (before, now) = (sum(before?, n).unwrap_or_default(), sum(totals, n)?);
            Some(now.saturating_sub(before.saturating_add(known[n])).into())
        };
        let grown = (0..TOTALS.len()).filter_map(|n| Some((TOTALS[n].to_string(), grown(n)?)));
        let record = CallRecord::new(&grown.collect(), false);
        (record.counters.context() > 0).then_some(record)
    }

    /// Assigns counters. Returns the counters before, if they stand without a reply.
    pub(super) fn count(
        &mut self,
        at: RecordingStep,
        mut record: CallRecord,
        model: Option<String>,
        steps: &mut [RecordingStep],
    ) -> Option<(RecordingStep, RecordingReply)> {
        if record.context().is_none() && record.counters.wrong.is_empty() {
            return None;
        }
        // A reply that began since has separate counters.
        let newest = self.newest.take().filter(|(_, of)| of.is_empty() || self.open.is_none());
        let repeated = newest.filter(|(newest, _)| newest.is_same_call(&record));
        if let Some((_, of)) = repeated {
            // A record has the provider's id and the thread, a count has the totals. One of the two
            // may lack the written tokens.
            let Counters { input, write, billing, .. } = record.counters;
            let Billing { call_id, call_alias, call_in, .. } = *billing;
            let id = call_id.filter(|_| !record.is_record);
            let id = id.map(|id| with_reply(&id, &of, steps));
            let complete = |reply: &mut RecordingReply| {
                let Ok(counters) = &mut reply.counters else { return };
                if write > counters.write {
                    (counters.input, counters.write) = (input, write);
                }
                let own = &mut counters.billing;
                own.call_id = id.clone().or(own.call_id.take());
                own.call_alias = call_alias.clone().or(own.call_alias.take());
                own.call_in = call_in.clone().or(own.call_in.take());
            };
            self.unreplied.iter_mut().for_each(|(_, reply)| complete(reply));
            for step in of {
                if let StepKind::Reply(reply) = &mut steps[step].what {
                    complete(reply);
                }
            }
            return None;
        }
        self.add_to_totals(&record);
        let Billing { call_id, call_alias, .. } = *record.counters.billing.clone();
        let names = [call_id, call_alias].into_iter().flatten();
        let is_repeated = names.filter(|name| !self.seen.insert(name.clone())).count() > 0;
        record.counters.wrong.iter_mut().for_each(|w| w.line = Some(at.line));
        let Some((_, of)) = self.open.take() else {
            // A program that resumes a session may write its counters again.
            if is_repeated {
                return None;
            }
            let response = format!("line {}", at.line);
            self.newest = Some((record.clone(), Vec::new()));
            return self.unreplied.replace((at, record.reply(response, model)));
        };
        record.counters.billing.web_searches = std::mem::take(&mut self.searches);
        let id = record.counters.billing.call_id.take();
        record.counters.billing.call_id = id.map(|id| with_reply(&id, &of, steps));
        let mut pieces = Vec::new();
        let first = of.first().copied().unwrap_or_default();
        for (n, step) in steps.iter_mut().enumerate().skip(first) {
            if let StepKind::Reply(reply) = &mut step.what
                && of.contains(&n)
            {
                reply.counters = Ok(record.counters.clone());
                pieces.extend(&mut reply.pieces);
            }
        }
        if let Some(tokens) = record.reasoning {
            weigh_reasoning(pieces, tokens);
        }
        self.newest = Some((record, of));
        None
    }
}

/// Adds what these steps of a reply tell to the name of the call, without reasoning, which forks may
/// leave out.
fn with_reply(id: &str, of: &[usize], steps: &[RecordingStep]) -> Arc<str> {
    if of.is_empty() {
        return id.into();
    }
    let pieces = of.iter().flat_map(|n| match &steps[*n].what {
        StepKind::Reply(reply) => &*reply.pieces,
        _ => &[],
    });
    let parts = pieces.filter_map(|piece| match piece {
        MessagePart::Said(Part::Reasoning { .. }) => None,
        MessagePart::Said(part) => Some(format!("{part:?}")),
        _ => None,
    });
    format!("{id} {:x}", content_hash(parts.collect::<String>().as_bytes())).into()
}
