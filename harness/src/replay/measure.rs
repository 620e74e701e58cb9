//! From what was counted to the record of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ctxbench_core::block::{Block, total_tokens};
use ctxbench_core::descriptor::Standing;
use ctxbench_core::engine::{Event, Stamped};
use ctxbench_core::fact::{FactKind, Match};
use ctxbench_core::ledger::Ledger;
use ctxbench_core::provider::{self, Model};
use ctxbench_core::race::BackgroundRecord;
use ctxbench_core::record::{
    CompactionKind, CompactionRecord, FactRecord, IntegrityFailure, RequestRecord, RunRecord, ScenarioInfo, Status, StrategyInfo, Summary,
    TriggerRecord,
};
use ctxbench_core::request::Purpose;
use ctxbench_core::session::Millis;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::Replayed;
use super::drift;
use super::facts::Place;
use super::tally::Tally;

/// What the engine knows of a run that is over.
pub(super) struct Course<'a> {
    pub(super) events: &'a [Stamped],
    pub(super) ledger: &'a Ledger,
    pub(super) background: Vec<BackgroundRecord>,
    pub(super) total_ms: Millis,
}

pub(super) fn record(scenario: &Scenario, spec: &Spec, model: &Model, tally: &Arc<Mutex<Tally>>, course: Course<'_>) -> Replayed {
    let Course { events, ledger, background, total_ms } = course;
    let mut record = RunRecord {
        scenario: ScenarioInfo {
            id: scenario.id.clone(),
            title: scenario.title.clone(),
            scale: scenario.scale,
            why: scenario.why.clone(),
            recorded: scenario.session.header.source.is_some(),
            warnings: scenario.warnings.clone(),
        },
        strategy: StrategyInfo {
            label: spec.label(),
            name: spec.descriptor.name.to_string(),
            version: spec.version.to_string(),
            settings: spec.scaled(scenario.scale).all().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            hypothetical: spec.descriptor.standing == Standing::Hypothetical,
            control: spec.descriptor.standing == Standing::Control,
        },
        model: model.name.to_string(),
        window: model.window,
        ..RunRecord::default()
    };
    let Ok(mut t) = tally.lock() else {
        record.status = Status::Error;
        record.error = Some("the replay ended in a panic".into());
        return Replayed { record, trace: vec![], loadings: vec![], seen: Default::default() };
    };
    t.close();
    record.compactions = compactions(events, &background, &t, model);
    record.background = background;
    record.triggers = triggers(events);
    (record.status, record.error) = ended(&t);
    judge(&mut record.compactions, record.status == Status::Completed);
    record.integrity = std::mem::take(&mut t.integrity);
    record.integrity.extend(compaction_failures(&record.compactions, &record.triggers));
    record.integrity.extend(events.iter().flat_map(|e| failed_compaction(e, &record.compactions, &t.requests)));
    record.integrity.sort_by(|a, b| (a.request, &a.rule).cmp(&(b.request, &b.rule)));
    record.rewinds = t.rewinds.records(events);
    record.facts = std::mem::take(&mut t.retention.facts);
    record.lives = std::mem::take(&mut t.retention.lives.0);
    record.requests = std::mem::take(&mut t.requests);
    record.summary = summary(&record, &t, ledger, total_ms);
    if record.compactions.is_empty() && record.status == Status::Completed && spec.descriptor.standing == Standing::Contender {
        let asked = record.summary.summary_calls > 0;
        let note = if asked { "a summary was written, nothing was replaced" } else { "never triggered" };
        record.note = Some(note.into());
    }
    if spec.descriptor.standing == Standing::Contender && events.iter().any(|e| matches!(e.event, Event::NoManualCompaction)) {
        let asked = "manual compaction n/a";
        record.note = Some(record.note.map_or(asked.to_string(), |n| format!("{n}; {asked}")));
    }
    let trace = std::mem::take(&mut t.trace);
    Replayed { record, trace, loadings: vec![], seen: Default::default() }
}

fn ended(t: &Tally) -> (Status, Option<String>) {
    if t.livelock {
        return (Status::Livelock, Some(format!("{} requests for {} recorded steps", t.requests.len(), t.steps_total)));
    }
    if t.steps_done >= t.steps_total {
        return (Status::Completed, None);
    }
    let reason = t.failure.clone().unwrap_or_else(|| "the run ended before the session did".into());
    let status = if t.overflows > 0 { Status::Overflow } else { Status::Failed };
    (status, Some(reason))
}

fn triggers(events: &[Stamped]) -> Vec<TriggerRecord> {
    let of = |e: &Stamped| match e.event {
        Event::Trigger { check, believed, billed, limit } => {
            Some(TriggerRecord { before_request: e.before_request, believed, billed, limit, check: check.to_string() })
        }
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn compactions(events: &[Stamped], background: &[BackgroundRecord], t: &Tally, model: &Model) -> Vec<CompactionRecord> {
    let mut out: Vec<CompactionRecord> = Vec::new();
    let mut from = 0;
    for e in events {
        let Event::Compaction { kind, mechanism, phase, before, after } = &e.event else { continue };
        let own: Vec<&RequestRecord> =
            t.requests.iter().filter(|r| r.purpose == Purpose::Summary && (from..e.before_request).contains(&r.seq)).collect();
        let waited: Millis = own.iter().filter(|r| r.phase != Some(ctxbench_core::request::Phase::Background)).map(|r| r.latency_ms).sum();
        // What the provider did inside a normal request is its own part of that request.
        let inside = t.requests.iter().filter(|r| r.purpose == Purpose::Sample && (from..e.before_request).contains(&r.seq));
        let (inside_usd, inside_ms) = inside.fold((0.0, 0), |(usd, ms), r| (usd + r.compaction_usd, ms + r.compaction_ms));
        let own_cost: f64 = own.iter().map(|r| r.cost_usd).sum::<f64>() + inside_usd;
        // A background summary that was waited for is taken at the moment of its compaction.
        let taken = |b: &&BackgroundRecord| b.before_request == Some(e.before_request) && b.delivered_ms == Some(e.at_ms);
        let raced: Millis = match kind {
            CompactionKind::Summarise => background.iter().filter(taken).map(|b| b.waited_ms).sum(),
            _ => 0,
        };
        let waited = waited + inside_ms + raced;
        from = e.before_request;
        let (before_tokens, after_tokens) = (total_tokens(before), total_tokens(after));
        let same = ctxbench_core::block::common_prefix(before, after);
        let invalidated = total_tokens(&after[same..]);
        let point = t.retention.drift.points.get(out.len()).cloned().unwrap_or_default();
        let fresh: Vec<&Arc<Block>> = after[same..].iter().filter(|b| Place::of(b) == Place::Summary).collect();
        out.push(CompactionRecord {
            seq: out.len() as u64,
            kind: *kind,
            mechanism: (*mechanism).to_string(),
            phase: *phase,
            before_request: e.before_request,
            at_ms: e.at_ms,
            before_tokens,
            after_tokens,
            invalidated_tokens: invalidated,
            summary_tokens: fresh.iter().map(|b| b.tokens()).sum(),
            blocked_ms: waited,
            cost_usd: own_cost,
            facts_lost_verbatim: point.lost,
            facts_carried: point.carried,
            break_even_calls: break_even(model, before_tokens.saturating_sub(after_tokens), invalidated, own_cost),
            calls_after: 0,
            paid_off: None,
            facts_needed_later: point.needed_later,
            retained_pct: point.after_pct,
            goal_kept: point.goal,
        });
    }
    let ends: Vec<u64> = out.iter().skip(1).map(|c| c.before_request).chain([u64::MAX]).collect();
    for (c, end) in out.iter_mut().zip(ends) {
        let counts = |r: &&RequestRecord| r.purpose == Purpose::Sample && (c.before_request..end).contains(&r.seq);
        c.calls_after = t.requests.iter().filter(counts).count() as u64;
    }
    out
}

/// Says of each compaction whether it had paid for itself before the next one; a run that broke off leaves its last one open.
fn judge(compactions: &mut [CompactionRecord], completed: bool) {
    let last = compactions.len().saturating_sub(1);
    for (i, c) in compactions.iter_mut().enumerate() {
        c.paid_off = paid_off(c.break_even_calls, c.calls_after, completed || i < last);
    }
}

/// Whether `calls` are more than break-even takes (never without one); `None` = not yet, and the calls were not over.
fn paid_off(break_even: Option<f64>, calls: u64, over: bool) -> Option<bool> {
    let paid = break_even.is_some_and(|n| calls as f64 > n);
    (paid || over || break_even.is_none()).then_some(paid)
}

/// Calls until a compaction has paid for itself: what it cost at once (its own calls, the prefix written again instead of read)
/// over what it saves per call (tokens no longer read). The standard form, facts/claude-code-and-apis.md §6.
fn break_even(model: &Model, removed: u64, rewritten: u64, own_usd: f64) -> Option<f64> {
    let p = &model.prices;
    let per_call = removed as f64 * p.read / 1e6;
    // Without a write fee the price list gives the input price for writes.
    let at_once = own_usd + rewritten as f64 * (p.write_5m - p.read) / 1e6;
    (per_call > 0.0).then(|| at_once / per_call)
}

/// Rules that are judged on compactions and not on single requests.
fn compaction_failures(compactions: &[CompactionRecord], triggers: &[TriggerRecord]) -> Vec<IntegrityFailure> {
    let mut out = Vec::new();
    let mut row = 0;
    for (i, c) in compactions.iter().enumerate() {
        if c.kind != CompactionKind::Summarise {
            continue;
        }
        if c.after_tokens > c.before_tokens {
            let detail = format!("compaction {}: {} tokens became {}", c.seq, c.before_tokens, c.after_tokens);
            out.push(IntegrityFailure { request: c.before_request, rule: "summary larger than what it replaced".into(), detail });
        }
        let next = compactions[i + 1..].iter().find(|n| n.kind == CompactionKind::Summarise);
        let at_once = next.is_some_and(|n| {
            n.before_request <= c.before_request + 2
                && triggers.iter().any(|t| (c.before_request..=n.before_request).contains(&t.before_request))
        });
        row = if at_once { row + 1 } else { 0 };
        if row == 2 {
            let detail = "three summaries in a row, each leaving the trigger true".to_string();
            out.push(IntegrityFailure { request: c.before_request, rule: "compaction loop".into(), detail });
        }
    }
    out
}

/// What a compaction that came to nothing leaves behind: its marker, and a history that is sent again in full.
fn failed_compaction(e: &Stamped, compactions: &[CompactionRecord], requests: &[RequestRecord]) -> Vec<IntegrityFailure> {
    let Event::CompactionFailed { mechanism, dangling } = e.event else { return Vec::new() };
    let failure = |request: u64, rule: &str, detail: String| IntegrityFailure { request, rule: rule.into(), detail };
    let mut out = Vec::new();
    if dangling {
        let detail = format!("`{mechanism}` failed and its marker stays in the context without a summary");
        out.push(failure(e.before_request, "dangling compaction marker", detail));
    }
    let sample = |r: &&RequestRecord| r.purpose == Purpose::Sample;
    let before = requests.iter().rfind(|r| sample(r) && r.seq < e.before_request);
    let after = requests.iter().find(|r| sample(r) && r.seq >= e.before_request);
    if let (Some(before), Some(after)) = (before, after) {
        let helped = compactions.iter().any(|c| c.before_request >= e.before_request && c.before_request <= after.seq);
        if after.context_tokens >= before.context_tokens && !helped {
            let detail = format!("`{mechanism}` failed; {} tokens before it, {} after", before.context_tokens, after.context_tokens);
            out.push(failure(after.seq, "history uncut after a failed compaction", detail));
        }
    }
    out
}

fn summary(record: &RunRecord, t: &Tally, ledger: &Ledger, total_ms: Millis) -> Summary {
    let requests = &record.requests;
    let sum = |f: fn(&RequestRecord) -> u64| requests.iter().map(f).sum::<u64>();
    let input = sum(|r| r.input_tokens);
    let output = sum(|r| r.output_tokens);
    let read = sum(|r| r.cache_read);
    let sampled: Vec<u64> = requests.iter().filter(|r| r.purpose == Purpose::Sample && r.status == "ok").map(|r| r.latency_ms).collect();
    let compacted: Vec<u64> = record.compactions.iter().filter(|c| c.blocked_ms > 0).map(|c| c.blocked_ms).collect();
    let lost: u64 = record.compactions.iter().map(|c| c.facts_lost_verbatim).sum();
    let carried: u64 = record.compactions.iter().map(|c| c.facts_carried).sum();
    let errors: Vec<f64> = record.triggers.iter().map(|t| t.believed as f64 - t.billed as f64).collect();
    let ratio = |a: u64, b: u64| (b > 0).then(|| a as f64 / b as f64);
    let percent = |a: u64, b: u64| ratio(a, b).map(|x| x * 100.0);
    let repriced = |share: f64| {
        let cost =
            |(name, usage): &(Arc<str>, _)| provider::find(name).map_or(0.0, |m| provider::cost_with_read_share(m, usage, share).total());
        t.usages.iter().map(cost).sum::<f64>()
    };
    let done = record.status == Status::Completed;
    Summary {
        steps_completed: t.steps_done,
        steps_total: t.steps_total,
        requests: requests.len() as u64,
        compactions: record.compactions.len() as u64,
        summary_calls: requests.iter().filter(|r| r.purpose == Purpose::Summary).count() as u64 + provider_summaries(requests),
        input_tokens: input,
        cache_read_tokens: read,
        cache_write_tokens: sum(|r| r.cache_write),
        output_tokens: output,
        task_tokens: done.then_some(input + output),
        peak_context_tokens: t.peak,
        saved_pct: None,
        cost_usd: ledger_cost(requests, ledger),
        cost_saved_pct: None,
        prefix_stability: ratio(t.common, t.earlier),
        invalidated_tokens: sum(|r| r.invalidated_tokens),
        invalidated_expired_tokens: sum(|r| r.invalidated_expired_tokens),
        invalidated_changed_tokens: sum(|r| r.invalidated_changed_tokens),
        cache_read_ratio: ratio(read, input),
        blocked_ms: t.blocked_ms,
        total_ms,
        step_p50_ms: percentile(&sampled, 50),
        step_p95_ms: percentile(&sampled, 95),
        compaction_p50_ms: percentile(&compacted, 50),
        compaction_p95_ms: percentile(&compacted, 95),
        retention_pct: retained(record, |_| true),
        // Without summaries there is nothing that could carry a fact.
        summary_retention_pct: percent(carried, lost).filter(|_| record.compactions.iter().any(|c| c.kind == CompactionKind::Summarise)),
        retention_by_kind: by_kind(record),
        stale_pct: share(record, |f| Some(f.stale)),
        contradicted_pct: share(record, |f| Some(f.contradicted)),
        drifted_pct: share(record, |f| Some(f.drifted)),
        recoverable_pct: share(record, |f| f.recoverable),
        specificity_pct: t.retention.specificity_pct(),
        goal_kept_pct: goal_kept(&record.compactions),
        drift_resistance: t.retention.drift.resistance(),
        drift_cliff: drift::cliff(&record.compactions),
        // Filled in by `rewind::complete`, which knows what the product offers.
        restore_success_pct: None,
        rewind_equal_pct: None,
        reread_tokens: t.retention.rereads.tokens,
        extra_requests: requests.iter().filter(|r| r.extra).count() as u64,
        provider_overflows: t.overflows,
        user_interventions: t.interventions,
        trigger_error_tokens: (!errors.is_empty()).then(|| errors.iter().sum::<f64>() / errors.len() as f64),
        integrity_failures: record.integrity.len() as u64,
        reusable: ratio(t.common, t.later),
        cost_read_005_usd: Some(repriced(0.05)),
        cost_read_0025_usd: Some(repriced(0.025)),
    }
}

/// Figures of the pairs, after pairs were added.
pub(super) fn pairs_again(record: &mut RunRecord) {
    let mut s = std::mem::take(&mut record.summary);
    s.retention_pct = retained(record, |_| true);
    s.retention_by_kind = by_kind(record);
    s.stale_pct = share(record, |f| Some(f.stale));
    s.contradicted_pct = share(record, |f| Some(f.contradicted));
    s.drifted_pct = share(record, |f| Some(f.drifted));
    s.recoverable_pct = share(record, |f| f.recoverable);
    record.summary = s;
}

fn by_kind(record: &RunRecord) -> BTreeMap<FactKind, f64> {
    FactKind::ALL.iter().filter_map(|k| retained(record, |x| x == *k).map(|p| (*k, p))).collect()
}

/// Replies that contained a summary made by the provider: they bill more than the context that they show.
fn provider_summaries(requests: &[RequestRecord]) -> u64 {
    requests.iter().filter(|r| r.purpose == Purpose::Sample && r.input_tokens > r.context_tokens).count() as u64
}

/// USD of all requests; the ledger, which adds up by itself, must agree.
fn ledger_cost(requests: &[RequestRecord], ledger: &Ledger) -> f64 {
    let sum: f64 = requests.iter().map(|r| r.cost_usd).sum();
    debug_assert!(ledger.cost_usd() <= sum + 1e-6, "the ledger bills {} and the requests {sum}", ledger.cost_usd());
    sum
}

fn retained(record: &RunRecord, of: impl Fn(FactKind) -> bool) -> Option<f64> {
    share(record, |f| of(f.kind).then_some(f.found > Match::Absent))
}

/// Share of the pairs that hold, per cent; pairs without an answer, and those that no strategy could have kept, do not count.
fn share(record: &RunRecord, of: impl Fn(&FactRecord) -> Option<bool>) -> Option<f64> {
    percent_of(record.facts.iter().filter(|f| !f.undelivered).filter_map(of))
}

/// Share of the compactions after which the first goal was there, per cent.
fn goal_kept(compactions: &[CompactionRecord]) -> Option<f64> {
    percent_of(compactions.iter().filter_map(|c| c.goal_kept))
}

fn percent_of(answers: impl Iterator<Item = bool>) -> Option<f64> {
    let all: Vec<bool> = answers.collect();
    (!all.is_empty()).then(|| 100.0 * all.iter().filter(|k| **k).count() as f64 / all.len() as f64)
}

/// Nearest-rank percentile.
fn percentile(values: &[u64], p: usize) -> Option<u64> {
    let mut v = values.to_vec();
    v.sort_unstable();
    let rank = (p * v.len()).div_ceil(100).max(1);
    v.get(rank - 1).copied()
}

/// Savings against the reference row of the same scenario and model.
pub fn fill_savings(runs: &mut [RunRecord]) {
    let reference: Vec<(String, String, u64, f64)> = runs
        .iter()
        .filter(|r| r.strategy.name == "reference" && r.status == Status::Completed)
        .map(|r| (r.scenario.id.clone(), r.model.clone(), r.summary.input_tokens, r.summary.cost_usd))
        .collect();
    for r in runs.iter_mut().filter(|r| r.status == Status::Completed) {
        let Some((_, _, tokens, cost)) = reference.iter().find(|(s, m, _, _)| *s == r.scenario.id && *m == r.model) else { continue };
        r.summary.saved_pct = (*tokens > 0).then(|| 100.0 * (1.0 - r.summary.input_tokens as f64 / *tokens as f64));
        r.summary.cost_saved_pct = (*cost > 0.0).then(|| 100.0 * (1.0 - r.summary.cost_usd / cost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        assert_eq!(percentile(&[], 50), None);
        assert_eq!(percentile(&[5], 95), Some(5));
        assert_eq!(percentile(&[4, 1, 3, 2], 50), Some(2));
        assert_eq!(percentile(&(1..=100).collect::<Vec<_>>(), 95), Some(95));
    }

    #[test]
    fn break_even_in_the_standard_form() {
        // facts/claude-code-and-apis.md §6: w = 1.25, r = 0.10 gives n > 11.5 · R / D. Sonnet 4.6 has these shares.
        let m = provider::find("claude-sonnet-4-6").unwrap();
        let n = break_even(m, 10_000, 20_000, 0.0).unwrap();
        assert!((n - 11.5 * 2.0).abs() < 1e-9, "{n}");
        assert_eq!(break_even(m, 0, 20_000, 0.0), None);
        // n = (w − r) / r for R = D, by w and r as shares of the input price: 1.25 and 0.05 give 24, 1.25 and 0.025 give 49; without a
        // write fee w is 1: r = 0.1 gives 9, DeepSeek's 0.02 gives 49, xAI's 0.25 gives 3.
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
            let n = break_even(provider::find(name).unwrap(), 10_000, 10_000, 0.0).unwrap();
            assert!((n - calls).abs() < 1e-9, "{name}: {n}");
        }
        // Its own call of 0.03 USD on top, at 0.003 USD saved per call: ten calls more.
        let n = break_even(m, 10_000, 10_000, 0.03).unwrap();
        assert!((n - 21.5).abs() < 1e-9, "{n}");
    }

    #[test]
    fn a_compaction_has_paid_off_after_more_calls_than_break_even() {
        assert_eq!(paid_off(Some(11.5), 11, true), Some(false));
        assert_eq!(paid_off(Some(11.5), 12, true), Some(true));
        assert_eq!(paid_off(Some(12.0), 12, true), Some(false));
        assert_eq!(paid_off(None, 99, true), Some(false));
        // The run broke off.
        assert_eq!(paid_off(Some(11.5), 3, false), None);
        assert_eq!(paid_off(Some(11.5), 12, false), Some(true));
    }
}
