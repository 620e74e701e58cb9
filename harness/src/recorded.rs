//! The row *as recorded*: what a session really was, by the provider's counters alone.
//!
//! Nothing in it is modelled. Dollars are counters × prices. Where a counted output is known to be
//! the stub from the start of a stream, they are a lower bound, and what the visible output adds
//! stands beside them.

use std::collections::BTreeMap;

use ctxbench_core::calibration;
use ctxbench_core::compaction::CompactionKind;
use ctxbench_core::model::{self, Model};
use ctxbench_core::request::{Phase, Purpose, Usage};
use ctxbench_core::session::{Entry, Millis, RecordedCall, RecordedUsage, Session, Trigger};
use ctxbench_core::strategy::Standing;
use ctxbench_reports::record::{
    AS_RECORDED, CompactionRecord, RequestRecord, RequestStatus, RunRecord, Status, StrategyInfo,
    Summary,
};
use ctxbench_scenarios::Scenario;

use crate::models;
use crate::replay::exchange::recorded_summary;
use crate::replay::scenario_info;

/// The row of a session with counters, for the model it was recorded with; `None` for any other.
pub fn as_recorded(scenario: &Scenario, model: &Model) -> Option<RunRecord> {
    let session = &scenario.session;
    if models::recorded(session).is_none_or(|m| m.name != model.name) {
        return None;
    }
    let read = Reading::of(session, model);
    if read.requests.is_empty() {
        return None;
    }
    let (steps, counted, last) = (read.steps, read.counted, read.last_ms);
    let Reading {
        requests, compactions, stubs, estimate_usd, stand_ins, unpriced, uncounted, ..
    } = read;
    let sum = |of: fn(&RequestRecord) -> u64| requests.iter().map(of).sum::<u64>();
    let (input, cache_read) = (sum(|r| r.input_tokens), sum(|r| r.cache_read));
    let cost_usd = requests.iter().map(|r| r.cost_usd).sum();
    let summary_calls = requests.iter().filter(|r| r.purpose == Purpose::Summary).count() as u64;
    let own = requests.iter().filter(|r| r.purpose == Purpose::Sample && r.agent.is_none());
    let mut remarks = Vec::new();
    if stubs > 0 {
        remarks.push(format!(
            "dollars are a lower bound: {stubs} of {} counted outputs are the stub from the start \
             of a stream; about ${estimate_usd:.3} with the visible output",
            requests.len()
        ));
    }
    if uncounted > 0 {
        remarks.push(match uncounted {
            1 => "1 reply without counters is not in it".to_string(),
            n => format!("{n} replies without counters are not in it"),
        });
    }
    remarks.extend(stand_ins.iter().map(|(name, listed)| {
        format!("{name} is not in the table of models: its calls are priced as {listed}")
    }));
    if let Some(name) = unpriced {
        remarks.push(format!("calls of {name} have no price here and are not in the dollars"));
    }
    let summary = Summary {
        steps_completed: counted,
        steps_total: steps,
        requests: requests.len() as u64,
        compactions: compactions.len() as u64,
        summary_calls,
        input_tokens: input,
        cache_read_tokens: cache_read,
        cache_write_tokens: sum(|r| r.cache_write),
        output_tokens: sum(|r| r.output_tokens),
        task_tokens: Some(input + sum(|r| r.output_tokens)),
        peak_context_tokens: own.map(|r| r.input_tokens).max().unwrap_or_default(),
        cost_usd,
        cost_estimate_usd: Some(estimate_usd),
        cache_read_ratio: (input > 0).then(|| cache_read as f64 / input as f64),
        total_ms: last,
        ..Summary::default()
    };
    Some(RunRecord {
        scenario: scenario_info(scenario, &[]),
        strategy: StrategyInfo {
            label: AS_RECORDED.into(),
            name: AS_RECORDED.into(),
            version: session.header.source.as_ref().map(|s| s.format.clone()).unwrap_or_default(),
            standing: Standing::Recorded,
            ..StrategyInfo::default()
        },
        model: model.name.to_string(),
        window: session.header.context_window.unwrap_or(model.window),
        status: Status::Completed,
        note: (!remarks.is_empty()).then(|| remarks.join("; ")),
        summary,
        requests,
        compactions,
        ..RunRecord::default()
    })
}

/// What the counters of a session tell, entry by entry.
struct Reading<'a> {
    model: &'a Model,
    requests: Vec<RequestRecord>,
    compactions: Vec<CompactionRecord>,
    /// Replies of the main conversation.
    steps: u64,
    /// Those with counters.
    counted: u64,
    /// Counted outputs that are a stub.
    stubs: usize,
    /// Dollars with the visible output where the counted one is a stub.
    estimate_usd: f64,
    /// Models that others of their family stand in for, with these.
    stand_ins: BTreeMap<String, &'static str>,
    /// A model without a price list, if any.
    unpriced: Option<String>,
    /// Replies without counters.
    uncounted: usize,
    last_ms: Millis,
}

impl<'a> Reading<'a> {
    fn of(session: &'a Session, model: &'a Model) -> Self {
        let mut read = Reading {
            model,
            requests: Vec::new(),
            compactions: Vec::new(),
            steps: 0,
            counted: 0,
            stubs: 0,
            estimate_usd: 0.0,
            stand_ins: BTreeMap::new(),
            unpriced: None,
            uncounted: 0,
            last_ms: 0,
        };
        for entry in &session.entries {
            read.entry(entry);
        }
        read
    }

    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Assistant(a) => {
                let main = a.agent.is_none();
                self.steps += u64::from(main);
                self.last_ms = self.last_ms.max(a.at.unwrap_or_default());
                match a.usage {
                    Some(usage) => {
                        self.call(
                            Purpose::Sample,
                            &RecordedCall {
                                model: a.model.clone(),
                                at: a.at,
                                agent: a.agent.clone(),
                                usage,
                                ..RecordedCall::default()
                            },
                        );
                        if main {
                            self.counted += 1;
                            self.first_after_a_compaction(&usage);
                        }
                    }
                    None => self.uncounted += 1,
                }
            }
            Entry::RecordedCall(call) => {
                self.call(Purpose::Sample, call);
            }
            Entry::RecordedCompaction(c) => {
                let before = self.newest_main().map(|r| r.input_tokens);
                let at = c.at.unwrap_or(self.last_ms);
                let cost = c.usage.map(|usage| {
                    let (model, at) = (c.model.clone(), Some(at));
                    self.call(
                        Purpose::Summary,
                        &RecordedCall { model, at, usage, ..RecordedCall::default() },
                    )
                });
                let by = calibration::counting_of(Some(&*self.model.name)).of_visible_text();
                let words = c.summary.as_deref().map(ctxbench_core::tokens::Size::text);
                let summary_tokens = words.map_or(0, |w| by.block(w));
                self.compactions.push(CompactionRecord {
                    seq: self.compactions.len() as u64,
                    kind: CompactionKind::Summarise,
                    mechanism: "recorded".into(),
                    phase: match c.trigger {
                        Some(Trigger::Manual) => Phase::StandaloneTurn,
                        _ => Phase::MidTurn,
                    },
                    before_request: self.requests.len() as u64,
                    at_ms: at,
                    before_tokens: c.pre_tokens.or(before).unwrap_or_default(),
                    after_tokens: c.post_tokens.unwrap_or_default(),
                    invalidated_tokens: 0,
                    summary_tokens,
                    blocked_ms: 0,
                    cost_usd: cost.unwrap_or_default(),
                    facts_lost_verbatim: 0,
                    facts_carried: 0,
                    break_even_calls: None,
                    calls_after: 0,
                    paid_off: None,
                    facts_needed_later: 0,
                    retained_pct: None,
                    goal_kept: None,
                    went: vec![],
                    came: recorded_summary(c.summary.as_deref(), summary_tokens),
                });
            }
            _ => {}
        }
    }

    fn newest_main(&self) -> Option<&RequestRecord> {
        let main = |r: &&RequestRecord| r.agent.is_none() && r.purpose == Purpose::Sample;
        self.requests.iter().rev().find(main)
    }

    /// The first prompt after a compaction is what it left, unless the recording says so itself.
    fn first_after_a_compaction(&mut self, usage: &RecordedUsage) {
        if let Some(last) = self.compactions.last_mut() {
            if last.after_tokens == 0 {
                last.after_tokens = usage.prompt();
                last.invalidated_tokens = usage.cache_write + usage.cache_write_1h;
            }
            last.calls_after += 1;
        }
    }

    /// Notes a call and returns its dollars.
    fn call(&mut self, purpose: Purpose, call: &RecordedCall) -> f64 {
        let (name, counted) = (call.model.as_deref().unwrap_or(&self.model.name), &call.usage);
        let usage = Usage {
            input: counted.input,
            output: counted.output,
            cache_read: counted.cache_read,
            cache_write: counted.cache_write,
            cache_write_1h: counted.cache_write_1h,
            ..Usage::default()
        };
        let visible = counted.output_estimate.map(|n| n.max(counted.output));
        self.stubs += usize::from(visible.is_some());
        let (cost_usd, estimate) = match model::priced_as(name) {
            Some(m) => {
                if model::find_recorded(name).is_none() {
                    self.stand_ins.insert(name.to_string(), &m.name);
                }
                let all = Usage { output: visible.unwrap_or(usage.output), ..usage };
                (model::cost(m, &usage).total(), model::cost(m, &all).total())
            }
            None => {
                self.unpriced = Some(name.to_string());
                (0.0, 0.0)
            }
        };
        self.estimate_usd += estimate;
        let at_ms = call.at.unwrap_or(self.last_ms);
        self.requests.push(RequestRecord {
            seq: self.requests.len() as u64,
            agent: call.agent.as_deref().map(Into::into),
            purpose,
            phase: (purpose == Purpose::Summary).then_some(Phase::MidTurn),
            model: name.into(),
            step: self.steps.saturating_sub(1),
            extra: false,
            input_tokens: usage.prompt(),
            cache_read: usage.cache_read,
            cache_write: usage.cache_write + usage.cache_write_1h,
            cache_write_1h: usage.cache_write_1h,
            output_tokens: usage.output,
            context_tokens: usage.prompt(),
            cost_usd,
            compaction_usd: 0.0,
            compaction_ms: 0,
            at_ms,
            latency_ms: 0,
            common_prefix_tokens: 0,
            invalidated_tokens: 0,
            invalidated_expired_tokens: 0,
            invalidated_changed_tokens: 0,
            status: RequestStatus::Ok,
        });
        cost_usd
    }
}

/// The rows as recorded of a session that is run on these models: at most one, for the model it was
/// recorded with.
pub(crate) fn rows(scenario: &Scenario, named: &[&'static Model]) -> Vec<RunRecord> {
    let all = models::of(&scenario.session, named);
    all.into_iter().filter_map(|m| as_recorded(scenario, m)).collect()
}
