//! Size, cost and effect of each compaction, and the rules that concern compactions.

use ctxbench_core::block::common_prefix;
use ctxbench_core::context_editing;
use ctxbench_core::host::{Event as Noted, TimedEvent};
use ctxbench_core::model::Model;
use ctxbench_core::prelude::*;
use ctxbench_reports::record::{
    BackgroundRecord, BreakEven, CompactionRecord, FactPlace, IntegrityFailure, RequestRecord,
    RequestStatus, Rule, Status, TriggerRecord,
};

use super::conversation::Conversation;
use super::facts::fact_place;
use super::{background, exchange};

/// Measures a compaction of the engine with `new` blocks at the end of the context. This is done when
/// it happens, so that a run does not have to store the contexts. `room` = number of characters that
/// excerpts may still use.
pub(super) fn measured(
    model: &Model,
    before: &[Arc<Block>],
    after: &[Arc<Block>],
    new: usize,
    room: &mut usize,
) -> CompactionRecord {
    let by = &model.counting;
    let size = |blocks: &[Arc<Block>]| context_editing::prompt_tokens(model, &[], blocks);
    let changed = &after[common_prefix(before, after)..];
    let again = &changed[..changed.len().saturating_sub(new)];
    let summaries = changed.iter().filter(|b| fact_place(b) == FactPlace::Summary);
    let (went, came) = exchange::between(before, after, by, room);
    CompactionRecord {
        before_tokens: size(before),
        after_tokens: Some(size(after)),
        invalidated_tokens: size(again),
        summary_tokens: summaries.map(|b| b.tokens(by)).sum(),
        went,
        came,
        ..CompactionRecord::default()
    }
}

/// Completes a conversation that ended: the records of its compactions by its requests, and the rules
/// that it broke. `offset` = number of its first request in the run.
pub(super) fn complete(conversation: &mut Conversation, model: &Model, offset: u64) {
    conversation.offset = offset;
    conversation.background = background::records(conversation.noted.iter().map(|e| &**e));
    conversation.triggers = conversation.noted.iter().filter_map(|e| trigger(e)).collect();
    let completed = conversation.status().0 == Status::Completed;
    let background = &conversation.background;
    let mut compactions = std::mem::take(&mut conversation.compactions);
    let requests = &conversation.requests;
    let within = |from: u64, to: u64| {
        let last = requests.len();
        &requests[(from as usize).min(last)..(to as usize).min(last)]
    };
    let next: Vec<u64> = compactions.iter().skip(1).map(|c| c.before_request).collect();
    let mut from = 0;
    for (i, c) in compactions.iter_mut().enumerate() {
        let at = c.before_request;
        let (mut waited, mut inside_ms, mut cost_usd, mut inside_usd) = (0, 0, 0.0, 0.0);
        for r in within(from, at) {
            match r.purpose {
                Purpose::Summary => {
                    cost_usd += r.cost_usd;
                    let waits = r.phase != Some(Phase::Background);
                    waited += if waits { r.latency_ms } else { 0 };
                }
                // The part of a normal request that the provider spent on a compaction.
                Purpose::Sample => {
                    inside_usd += r.compaction_usd;
                    inside_ms += r.compaction_ms;
                }
                Purpose::Ping | Purpose::Edit => {}
            }
        }
        cost_usd += inside_usd;
        // A background summary that the conversation waited for is used at the time of its
        // compaction.
        let taken =
            |b: &&BackgroundRecord| b.before_request == Some(at) && b.delivered_ms == Some(c.at_ms);
        let raced: Millis = match c.kind {
            CompactionKind::Summarise => background.iter().filter(taken).map(|b| b.waited_ms).sum(),
            _ => 0,
        };
        let saved = c.before_tokens.saturating_sub(c.after_tokens.unwrap_or_default());
        from = at;
        let even = break_even(model, saved, c.invalidated_tokens, cost_usd);
        let next = next.get(i).copied();
        let answered =
            |r: &&RequestRecord| r.purpose == Purpose::Sample && r.status == RequestStatus::Ok;
        let following = within(at, next.unwrap_or(u64::MAX));
        c.calls_after = following.iter().filter(answered).count() as u64;
        c.seq = i as u64;
        c.blocked_ms = Some(waited + inside_ms + raced);
        c.cost_usd = Some(cost_usd);
        c.break_even_calls = Some(even);
        // An interrupted run does not complete the last one.
        c.paid_off = paid_off(even, c.calls_after, completed || next.is_some());
    }
    conversation.compactions = compactions;
    let broken = broken_rules(conversation);
    conversation.integrity.extend(broken);
}

fn trigger(e: &TimedEvent) -> Option<TriggerRecord> {
    let Noted::Trigger { check, believed, billed, limit } = e.event else { return None };
    let (before_request, check) = (e.before_request, check.to_string());
    Some(TriggerRecord { before_request, believed, billed, limit, check })
}

/// Returns whether `calls` exceed the break-even point, which is false if there is no such point.
/// `None` if the point is not reached yet and more calls may follow (`!over`).
pub(crate) fn paid_off(even: BreakEven, calls: u64, over: bool) -> Option<bool> {
    let paid = even.calls().is_some_and(|n| calls as f64 > n);
    (paid || over || even == BreakEven::Never).then_some(paid)
}

/// Returns the number of calls until a compaction pays for itself: its immediate cost (its own
/// calls, and the prefix that is written instead of read), divided by the savings per call (tokens
/// that are no longer read). This is the standard form in docs/sources/failure-modes.md §6.
pub(crate) fn break_even(model: &Model, removed: u64, rewritten: u64, own_usd: f64) -> BreakEven {
    let p = &model.prices;
    let per_call = removed as f64 * p.read / 1e6;
    // Without a write fee the price list has the input price for writes.
    let at_once = own_usd + rewritten as f64 * (p.write_5m - p.read) / 1e6;
    if per_call > 0.0 { BreakEven::Calls(at_once / per_call) } else { BreakEven::Never }
}

/// Returns the broken rules that concern compactions, not single requests.
fn broken_rules(c: &Conversation) -> Vec<IntegrityFailure> {
    let mut out = Vec::new();
    let mut fail = |request: u64, rule: Rule, detail: String| {
        out.push(IntegrityFailure { request, rule, detail });
    };
    let summaries: Vec<&CompactionRecord> =
        c.compactions.iter().filter(|c| c.kind == CompactionKind::Summarise).collect();
    let triggers = &c.triggers;
    let mut row = 0;
    for (i, c) in summaries.iter().enumerate() {
        let Some(after) = c.after_tokens else { continue };
        if after > c.before_tokens {
            let detail =
                format!("compaction {}: {} tokens became {}", c.seq, c.before_tokens, after);
            fail(c.before_request, Rule::LargerSummary, detail);
        }
        let at_once = summaries.get(i + 1).is_some_and(|n| {
            let between = c.before_request..=n.before_request;
            n.before_request <= c.before_request + 2
                && triggers.iter().any(|t| between.contains(&t.before_request))
        });
        row = if at_once { row + 1 } else { 0 };
        if row == 2 {
            let detail = "three summaries in a row, each leaving the trigger true".to_string();
            fail(c.before_request, Rule::CompactionLoop, detail);
        }
    }
    // Remains of a failed compaction: its marker, and a history that is sent again in full.
    for e in &c.noted {
        let Noted::CompactionFailed { mechanism, dangling } = e.event else { continue };
        let at = e.before_request;
        if dangling {
            let detail = format!(
                "`{mechanism}` failed and its marker stays in the context without a summary"
            );
            fail(at, Rule::DanglingMarker, detail);
        }
        let before = c.samples().filter(|r| r.seq < at).last();
        let after = c.samples().find(|r| r.seq >= at);
        if let (Some(before), Some(after)) = (before, after) {
            let helped = |c: &CompactionRecord| (at..=after.seq).contains(&c.before_request);
            if after.context_tokens >= before.context_tokens && !c.compactions.iter().any(helped) {
                let detail = format!(
                    "`{mechanism}` failed; {} tokens before it, {} after",
                    before.context_tokens, after.context_tokens
                );
                fail(after.seq, Rule::HistoryUncut, detail);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::model;

    #[test]
    fn break_even_in_the_standard_form() {
        // docs/sources/failure-modes.md §6: w = 1.25, r = 0.10 gives n > 11.5 · R / D. Sonnet 4.6
        // has these shares.
        let m = model::find("claude-sonnet-4-6").unwrap();
        let n = break_even(m, 10_000, 20_000, 0.0).calls().unwrap();
        assert!((n - 11.5 * 2.0).abs() < 1e-9, "{n}");
        assert_eq!(break_even(m, 0, 20_000, 0.0), BreakEven::Never);
        // n = (w − r) / r for R = D, by w and r as shares of the input price: 1.25 and 0.05 give
        // 24, 1.25 and 0.025 give 49; without a write fee w is 1: r = 0.1 gives 9, DeepSeek's 0.02
        // gives 49, xAI's 0.25 gives 3.
        for (name, calls) in [
            ("claude-opus-5-5", 24.0),
            ("claude-fable-5-1", 49.0),
            ("gpt-5.4", 9.0),
            ("gpt-5.6-sol", 11.5),
            ("gpt-6.1-sol", 24.0),
            ("gemini-2.5-pro", 9.0),
            ("deepseek-v4-flash", 49.0),
            ("grok-4.7", 3.0),
        ] {
            let even = break_even(model::find(name).unwrap(), 10_000, 10_000, 0.0);
            let n = even.calls().unwrap();
            assert!((n - calls).abs() < 1e-9, "{name}: {n}");
        }
        // The call of the compaction costs 0.03 USD more, and each later call saves 0.003 USD: ten
        // more calls.
        let n = break_even(m, 10_000, 10_000, 0.03).calls().unwrap();
        assert!((n - 21.5).abs() < 1e-9, "{n}");
    }

    #[test]
    fn a_compaction_has_paid_off_after_more_calls_than_break_even() {
        assert_eq!(paid_off(BreakEven::Calls(11.5), 11, true), Some(false));
        assert_eq!(paid_off(BreakEven::Calls(11.5), 12, true), Some(true));
        assert_eq!(paid_off(BreakEven::Calls(12.0), 12, true), Some(false));
        assert_eq!(paid_off(BreakEven::Never, 99, true), Some(false));
        // The run was interrupted.
        assert_eq!(paid_off(BreakEven::Calls(11.5), 3, false), None);
        assert_eq!(paid_off(BreakEven::Calls(11.5), 12, false), Some(true));
    }
}
