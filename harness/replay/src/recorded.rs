//! The row *as recorded*: the figures of the original session, from the provider's counters alone.
//!
//! None of it is modelled. Dollars are counters × prices. If a counted output is known to be the
//! stub from the start of a stream, the dollars are a lower bound, and an estimate with the visible
//! output is given too.

use std::collections::{BTreeSet, HashSet};

use ctxbench_core::model::{self, Model};
use ctxbench_core::prelude::*;
use ctxbench_core::strategy::Standing;
use ctxbench_reports::record::{
    AS_RECORDED, CompactionRecord, Recall, RequestRecord, RunRecord, Status, StrategyInfo, Summary,
};
use ctxbench_scenarios::Scenario;
use ctxbench_session::{
    Entry, RecordedCall, RecordedUsage, Session, Surcharge, Trigger, calibration,
};

use crate::billing::call_hashes;
use crate::compactions::{break_even, paid_off};
use crate::exchange::recorded_summary;
use crate::models;
use crate::record::scenario_info;
use crate::recorded_recall;

/// Returns the row of a session with counters for the model that it was recorded with, or, if the
/// recording program itself tells its costs, for the one that replaces it. `None` for any other model.
pub fn as_recorded(scenario: &Scenario, model: &Model) -> Option<RunRecord> {
    let session = &scenario.session;
    let read = counters(scenario, model)?;
    let about: Vec<String> = read.about_prices().collect();
    let unpriced = read.bill.iter().any(|(_, usd)| usd.is_none());
    // The program's own sums cover replies without counters.
    let is_covered = session
        .entries
        .iter()
        .any(|e| matches!(e, Entry::RecordedCall(c) if c.usage.is_cost_only()));
    let (uncounted, counted) = match is_covered {
        true => (0, read.steps),
        false => (read.uncounted, read.counted),
    };
    let stubs = read.about_stubs();
    let CounterReading { requests, compactions, estimate_usd, .. } = read;
    let sum = |of: fn(&RequestRecord) -> u64| requests.iter().map(of).sum::<u64>();
    let (input, cache_read) = (sum(|r| r.input_tokens), sum(|r| r.cache_read));
    let cost_usd = requests.iter().map(|r| r.cost_usd).sum();
    let summary_calls = requests.iter().filter(|r| r.purpose == Purpose::Summary).count() as u64;
    // A provider that compacts within a call summarizes a whole prompt, without instructions after it.
    let within = |r: &RequestRecord| compactions.iter().any(|c| c.before_tokens == r.input_tokens);
    let is_own = |r: &&RequestRecord| r.purpose == Purpose::Sample || within(r);
    let own = requests.iter().filter(|r| r.agent.is_none()).filter(is_own);
    let mut remarks = Vec::from_iter(stubs);
    if uncounted > 0 {
        remarks.push(ctxbench_reports::uncounted(uncounted as u64));
    }
    let elsewhere = requests.iter().filter(|r| r.is_billed_elsewhere()).count();
    if elsewhere > 0 {
        remarks.push(format!(
            "{elsewhere} of {} calls are billed with another session that has them, too",
            requests.len()
        ));
    }
    remarks.extend(about);
    let (facts, lives) = recorded_recall::facts(session);
    let recall = Recall::over(facts.iter().filter(|f| f.is_at_risk()));
    let summary = Summary {
        steps_completed: counted,
        steps_total: read.steps,
        requests: (requests.len() - elsewhere) as u64,
        compactions: compactions.len() as u64,
        summary_calls,
        input_tokens: input,
        cache_read_tokens: cache_read,
        cache_write_tokens: sum(|r| r.cache_write),
        output_tokens: sum(|r| r.output_tokens),
        peak_context_tokens: own.map(|r| r.context_tokens).max().unwrap_or_default(),
        cost_usd,
        cost_estimate_usd: (!unpriced).then_some(estimate_usd),
        cache_read_ratio: (input > 0).then(|| cache_read as f64 / input as f64),
        total_ms: read.last_ms,
        recall_at_risk_pct: recall.pct,
        at_risk: (!facts.is_empty()).then_some(recall.events),
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
        facts,
        lives,
        ..RunRecord::default()
    })
}

/// Returns whether [`as_recorded`] returns a row.
pub fn is_recorded(scenario: &Scenario, model: &Model) -> bool {
    counters(scenario, model).is_some()
}

/// Reads the counters of a session that has a row as recorded for this model.
fn counters<'a>(scenario: &'a Scenario, model: &'a Model) -> Option<CounterReading<'a>> {
    let session = &scenario.session;
    if models::own(session).name != model.name {
        return None;
    }
    let read = CounterReading::new(session, model, &scenario.billed_elsewhere);
    let is_priced = models::recorded(session).is_some() || read.is_told_by_program();
    (is_priced && !read.requests.is_empty()).then_some(read)
}

/// Returns remarks about the prices of a session. `told` = a model that is already mentioned
/// elsewhere.
pub fn about_prices(session: &Session, told: Option<&str>) -> Vec<String> {
    let all = BTreeSet::new();
    let read = CounterReading::new(session, models::own(session), &all);
    let told = told.map(|name| format!("{name} {STAND_IN}"));
    let is_new = |remark: &String| told.as_ref().is_none_or(|told| !remark.starts_with(told));
    read.about_prices().filter(is_new).collect()
}

/// Kind of a remark about prices, in the order of the remarks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PriceRemark {
    /// A model is priced as another one.
    StandIn,
    /// The recording program itself computed the costs.
    ByProgram,
    /// Calls without a price.
    Unpriced,
    /// A term without a price.
    Term,
}

/// Remark about a model that is priced as another one of its family.
const STAND_IN: &str = "is not in the table of models";

/// A recorded call: hash of its identity, and its cost in USD if its price is known.
pub type BilledCall = (Option<u64>, Option<f64>);

/// Returns the calls of a session, which have these hashes, and remarks about their prices.
pub fn bill(session: &Session, hashes: &[Option<u64>]) -> (Vec<BilledCall>, Vec<String>) {
    let elsewhere = BTreeSet::new();
    let read = CounterReading::of_calls(session, models::own(session), &elsewhere, hashes);
    let remarks = read.about_stubs().into_iter().chain(read.about_prices()).collect();
    (read.bill, remarks)
}

/// Figures from the counters of a session, collected entry by entry.
struct CounterReading<'a> {
    model: &'a Model,
    /// Name of the session's model, as recorded.
    told: Option<&'a str>,
    requests: Vec<RequestRecord>,
    compactions: Vec<CompactionRecord>,
    /// Replies of the main conversation.
    steps: u64,
    /// Replies of the main conversation with counters.
    counted: u64,
    /// Number of counted outputs that are stubs.
    stubs: usize,
    /// Cost in USD, with the visible output in place of stubs.
    estimate_usd: f64,
    /// Remarks about calls that do not cost the list price of their model, in the order of their kinds.
    prices: BTreeSet<(PriceRemark, String)>,
    /// Replies of all conversations without counters.
    uncounted: usize,
    last_ms: Millis,
    /// Calls that another session is billed for.
    elsewhere: &'a BTreeSet<u64>,
    /// Identified calls so far.
    seen: HashSet<u64>,
    bill: Vec<BilledCall>,
}

impl<'a> CounterReading<'a> {
    fn new(session: &'a Session, model: &'a Model, elsewhere: &'a BTreeSet<u64>) -> Self {
        CounterReading::of_calls(session, model, elsewhere, &call_hashes(session))
    }

    fn of_calls(
        session: &'a Session,
        model: &'a Model,
        elsewhere: &'a BTreeSet<u64>,
        hashes: &[Option<u64>],
    ) -> Self {
        let mut read = CounterReading {
            model,
            told: session.header.model.as_deref(),
            requests: Vec::new(),
            compactions: Vec::new(),
            steps: 0,
            counted: 0,
            stubs: 0,
            estimate_usd: 0.0,
            prices: BTreeSet::new(),
            uncounted: 0,
            last_ms: 0,
            elsewhere,
            seen: HashSet::new(),
            bill: Vec::new(),
        };
        for (entry, id) in session.entries.iter().zip(hashes) {
            read.entry(entry, *id);
        }
        read
    }

    fn entry(&mut self, entry: &Entry, id: Option<u64>) {
        match entry {
            Entry::Assistant(a) => {
                let main = a.agent.is_none();
                self.steps += u64::from(main);
                self.last_ms = self.last_ms.max(a.at.unwrap_or_default());
                match &a.usage {
                    Some(usage) => {
                        self.call(
                            id,
                            Purpose::Sample,
                            &RecordedCall {
                                model: a.model.clone(),
                                at: a.at,
                                agent: a.agent.clone(),
                                usage: usage.clone(),
                            },
                        );
                        if main {
                            self.counted += 1;
                            self.first_after_a_compaction(usage);
                        }
                    }
                    None => self.uncounted += 1,
                }
            }
            Entry::RecordedCall(call) => {
                self.call(id, Purpose::Sample, call);
            }
            Entry::RecordedCompaction(c) => {
                let main = |r: &&RequestRecord| r.agent.is_none() && r.purpose == Purpose::Sample;
                let before = self.requests.iter().rev().find(main).map(|r| r.context_tokens);
                let at = c.at.unwrap_or(self.last_ms);
                let cost = c.usage.clone().map(|usage| {
                    let (model, at) = (c.model.clone(), Some(at));
                    self.call(
                        id,
                        Purpose::Summary,
                        &RecordedCall { model, at, usage, ..RecordedCall::default() },
                    )
                });
                let cost = cost.flatten();
                let by = calibration::counting_of(Some(&*self.model.name)).for_visible_text();
                let words = c.summary.as_deref().map(ctxbench_core::tokens::Size::text);
                let summary_tokens = words.map_or(0, |w| by.block(w));
                self.compactions.push(CompactionRecord {
                    seq: self.compactions.len() as u64,
                    mechanism: "recorded".into(),
                    phase: match c.trigger {
                        Some(Trigger::Manual) => Phase::StandaloneTurn,
                        _ => Phase::MidTurn,
                    },
                    before_request: self.requests.len() as u64,
                    at_ms: at,
                    before_tokens: c.pre_tokens.or(before).unwrap_or_default(),
                    after_tokens: c.post_tokens,
                    summary_tokens,
                    cost_usd: cost.map(|(_, likely)| likely),
                    cost_is_estimate: cost.is_some_and(|(usd, likely)| likely > usd),
                    came: recorded_summary(c.summary.as_deref(), summary_tokens),
                    ..CompactionRecord::default()
                });
            }
            _ => {}
        }
    }

    /// Returns a remark about outputs of which only a stub is counted.
    fn about_stubs(&self) -> Option<String> {
        let (stubs, all, usd) = (self.stubs, self.requests.len(), self.estimate_usd);
        (stubs > 0).then(|| {
            format!(
                "dollars are a lower bound: {stubs} of {all} counted outputs are the stub from the \
                 start of a stream; about ${usd:.3} with the visible output"
            )
        })
    }

    /// Returns remarks about calls that do not cost the list price of their model.
    fn about_prices(&self) -> impl Iterator<Item = String> {
        self.prices.iter().map(|(_, remark)| remark.clone())
    }

    /// Uses the first prompt after a compaction as its size after, unless the recording states that
    /// size.
    fn first_after_a_compaction(&mut self, usage: &RecordedUsage) {
        let Some(last) = self.compactions.last_mut() else { return };
        if last.calls_after == 0 {
            let after = *last.after_tokens.get_or_insert(usage.prompt());
            // Providers with free cache writes do not report them.
            last.invalidated_tokens = usage.prompt() - usage.cache_read;
            let saved = last.before_tokens.saturating_sub(after);
            let even = |usd| break_even(self.model, saved, last.invalidated_tokens, usd);
            last.break_even_calls = last.cost_usd.map(even);
        }
        last.calls_after += 1;
        // Nothing follows the end of the recording.
        last.paid_off = last.break_even_calls.and_then(|n| paid_off(n, last.calls_after, true));
    }

    /// Returns whether the recording program itself tells what some calls cost.
    fn is_told_by_program(&self) -> bool {
        self.prices.iter().any(|(kind, _)| *kind == PriceRemark::ByProgram)
    }

    /// Records a call and returns its cost in USD, by its counters and with its visible output, if
    /// its price is known. A call that is recorded already is left out, and one that another session
    /// is billed for costs nothing here.
    fn call(
        &mut self,
        id: Option<u64>,
        purpose: Purpose,
        call: &RecordedCall,
    ) -> Option<(f64, f64)> {
        if id.is_some_and(|id| !self.seen.insert(id)) {
            return Some((0.0, 0.0));
        }
        let (name, counted) = (call.model.as_deref().unwrap_or(&self.model.name), &call.usage);
        let usage = Usage::from(counted);
        let visible = counted.output_estimate.map(|n| n.max(counted.output));
        self.stubs += usize::from(visible.is_some());
        let own_name = call.model.as_deref().or(self.told);
        let listed = own_name.is_some_and(|name| model::find_recorded(name).is_some());
        let is_counted = counted.prompt() + counted.output > 0;
        let by_program = counted.billing.told_usd.filter(|_| !listed || !is_counted);
        let priced = own_name.unwrap_or("a model without a name");
        let known = match (by_program, own_name.and_then(model::priced_as)) {
            (Some(usd), _) => {
                let why = match is_counted {
                    true if own_name.is_some() => format!("{priced} has no price here: its calls"),
                    true => format!("calls of {priced}"),
                    false => "calls without exact counters".to_string(),
                };
                let told = format!("{why} cost what the program itself computed");
                self.prices.insert((PriceRemark::ByProgram, told));
                Some((usd, usd))
            }
            (None, Some(m)) => {
                if !listed {
                    let told = format!("{priced} {STAND_IN}: its calls are priced as {}", m.name);
                    self.prices.insert((PriceRemark::StandIn, told));
                }
                let all = Usage { output: visible.unwrap_or(usage.output), ..usage };
                let terms = Surcharge::new(m, counted);
                let unknown = terms.unpriced.iter();
                self.prices.extend(unknown.map(|term| {
                    let told = format!("list price, without {term}, whose cost is not known here");
                    (PriceRemark::Term, told)
                }));
                let usd = |u| model::cost(m, u).total() * terms.factor + terms.fees_usd;
                Some((usd(&usage), usd(&all)))
            }
            (None, None) => {
                let told =
                    format!("calls of {priced} have no price here and are not in the dollars");
                self.prices.insert((PriceRemark::Unpriced, told));
                None
            }
        };
        self.bill.push((id, known.map(|(usd, _)| usd)));
        let prompt = usage.prompt();
        let is_elsewhere = id.is_some_and(|id| self.elsewhere.contains(&id));
        let (usage, known) = match is_elsewhere {
            true => (Usage::default(), Some((0.0, 0.0))),
            false => (usage, known),
        };
        let (cost_usd, estimate) = known.unwrap_or_default();
        self.estimate_usd += estimate;
        let at_ms = call.at.unwrap_or(self.last_ms);
        self.requests.push(RequestRecord {
            seq: self.requests.len() as u64,
            agent: call.agent.as_deref().map(Into::into),
            purpose,
            phase: (purpose == Purpose::Summary).then_some(Phase::MidTurn),
            model: name.into(),
            step: self.steps.saturating_sub(1),
            input_tokens: usage.prompt(),
            cache_read: usage.cache_read,
            cache_write: usage.cache_write + usage.cache_write_1h,
            cache_write_1h: usage.cache_write_1h,
            output_tokens: usage.output,
            context_tokens: prompt,
            cost_usd,
            at_ms,
            ..RequestRecord::default()
        });
        known
    }
}

/// Returns the rows as recorded of a session that runs on these models: at most one, for the model
/// that it was recorded with.
pub fn rows(scenario: &Scenario, named: &[&'static Model]) -> Vec<RunRecord> {
    let all = models::for_session(&scenario.session, named);
    all.into_iter().filter_map(|m| as_recorded(scenario, m)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_reports::record::BreakEven;

    /// Returns a session of a model with these lines after its first message.
    fn session(model: &str, lines: &[&str]) -> Session {
        let head = format!(r#"{{"type":"session","version":1,"id":"s","model":"{model}"}}"#);
        let user = r#"{"type":"user","id":"u","text":"go"}"#;
        let text = format!("{head}\n{user}\n{}", lines.join("\n"));
        ctxbench_scenarios::jsonl::read(text.as_bytes(), "s").unwrap().session
    }

    fn compactions(model: &str, lines: &[&str]) -> Vec<CompactionRecord> {
        let (session, model) = (session(model, lines), model::find(model).unwrap());
        CounterReading::new(&session, model, const { &BTreeSet::new() }).compactions
    }

    #[test]
    fn a_recorded_summary_has_the_recall_of_what_was_fetched_again() {
        let lines = |n: std::ops::Range<u32>| -> String {
            n.map(|n| format!("let value_{n} = {n};\\n")).collect()
        };
        let read = |id: &str, text: &str| {
            format!(
                r#"{{"type":"assistant","id":"a{id}","calls":[{{"id":"c{id}","name":"read","arguments":"{{\"path\":\"/w/auth.rs\"}}"}}],"usage":{{"input":9,"output":9}}}}
{{"type":"tool","call_id":"c{id}","output":"{text}"}}"#
            )
        };
        let (first, again) = (read("1", &lines(10..20)), read("2", &lines(10..20)));
        // Two of ten lines are in the summary.
        let summary = format!(r#"{{"type":"recorded_compaction","summary":"{}"}}"#, lines(11..13));
        let lines = [&*first, &*summary, &*again];
        let mut session = session("claude-sonnet-4-6", &lines);
        ctxbench_scenarios::autofacts::add(&mut session);
        let (facts, lives) = recorded_recall::facts(&session);
        assert_eq!(Recall::over(facts.iter()), Recall { pct: Some(20.0), events: 1 });
        assert_eq!((&*facts[0].need, facts[0].is_at_risk()), ("a2", true));
        assert_eq!(lives[0].moves.len(), 1);
    }

    #[test]
    fn a_reply_tests_no_recorded_summary() {
        let lines = [
            r#"{"type":"assistant","id":"a1","calls":[{"id":"c1","name":"read","arguments":"{}"}]}"#,
            r#"{"type":"tool","call_id":"c1","output":"listens on port 8443\nlogs into app.log"}"#,
            r#"{"type":"recorded_compaction","summary":"It listens on port 8443."}"#,
            r#"{"type":"assistant","id":"a2","text":"port 8443 and app.log it is"}"#,
            r#"{"type":"fact","id":"f","kind":"value","tokens":["port 8443"],"arises":"c1","needs":["a2"]}"#,
            r#"{"type":"fact","id":"g","kind":"value","tokens":["app.log"],"arises":"c1","needs":["a2"]}"#,
        ];
        let (facts, _) = recorded_recall::facts(&session("claude-sonnet-4-6", &lines));
        let told: Vec<_> = facts.iter().map(|f| (f.share, f.counts)).collect();
        assert_eq!(told, [(1.0, false), (0.0, false)], "a reply had all that it uses");
        let at_risk = Recall::over(facts.iter().filter(|f| f.is_at_risk()));
        assert_eq!(at_risk, Recall { pct: None, events: 0 });
    }

    #[test]
    fn prices_of_other_models_are_told_whatever_their_names_begin_with() {
        let lines = [
            r#"{"type":"assistant","id":"a","text":"1","usage":{"input":100,"output":1}}"#,
            r#"{"type":"recorded_call","model":"gpt-5.9-foo","usage":{"input":100,"output":1}}"#,
        ];
        let session = session("gpt-5.9", &lines);
        assert_eq!(about_prices(&session, None).len(), 2);
        let [of_others] = &about_prices(&session, Some("gpt-5.9"))[..] else { panic!() };
        assert!(of_others.starts_with("gpt-5.9-foo is not"), "{of_others:?}");
    }

    #[test]
    fn what_a_recorded_compaction_took_is_told_as_far_as_it_is_known() {
        let read = compactions(
            "claude-sonnet-4-6",
            &[
                r#"{"type":"assistant","id":"a","text":"1","usage":{"input":0,"output":100,"cache_read":0,"cache_write":100000}}"#,
                r#"{"type":"recorded_compaction","pre_tokens":100000,"usage":{"input":100000,"output":1000,"cache_read":0,"cache_write":0}}"#,
                r#"{"type":"assistant","id":"b","text":"2","usage":{"input":0,"output":10,"cache_read":0,"cache_write":20000}}"#,
                r#"{"type":"recorded_compaction","pre_tokens":20000,"post_tokens":5000}"#,
                r#"{"type":"assistant","id":"c","text":"3","usage":{"input":0,"output":10,"cache_read":0,"cache_write":6000}}"#,
            ],
        );
        let told = |c: &CompactionRecord| {
            (c.after_tokens, c.invalidated_tokens, c.paid_off, c.cost_usd.is_some())
        };
        assert_eq!(told(&read[0]), (Some(20_000), 20_000, Some(false), true));
        // At 3, 0.30, 3.75 and 15 USD per million tokens (input, read, written, output): 0.315 for
        // the summary and 20,000 × 3.45 µUSD to write instead of read, over 80,000 × 0.30 µUSD per
        // call. The cost of the second compaction is not known.
        let Some(BreakEven::Calls(calls)) = read[0].break_even_calls else { panic!("{read:?}") };
        assert!((calls - 16.0).abs() < 1e-9, "{calls}");
        assert_eq!(told(&read[1]), (Some(5_000), 6_000, None, false));
        assert_eq!(read[1].break_even_calls, None);
        for c in &read {
            assert_eq!((c.blocked_ms, c.facts_lost_verbatim), (None, None));
            assert_eq!((c.facts_carried, c.facts_needed_later), (None, None));
        }
        // Of a stub, the visible output counts.
        let stub = compactions(
            "claude-sonnet-4-6",
            &[
                r#"{"type":"recorded_compaction","usage":{"input":100000,"output":6,"output_estimate":1000,"cache_read":0,"cache_write":0}}"#,
            ],
        );
        assert!((stub[0].cost_usd.unwrap() - 0.315).abs() < 1e-9 && stub[0].cost_is_estimate);
        // Where writing to the cache is free, what was not read counts.
        let read = compactions(
            "gpt-5.4",
            &[
                r#"{"type":"assistant","id":"a","text":"1","usage":{"input":100500,"output":100,"cache_read":0,"cache_write":0}}"#,
                r#"{"type":"recorded_compaction","usage":{"input":20000,"output":500,"cache_read":0,"cache_write":0}}"#,
                r#"{"type":"assistant","id":"b","text":"2","usage":{"input":16000,"output":10,"cache_read":4000,"cache_write":0}}"#,
                r#"{"type":"recorded_compaction","pre_tokens":20000}"#,
            ],
        );
        // At 2.50, 0.25 and 15 USD per million tokens (input, read, output): (0.0575 + 16,000 × 2.25
        // µUSD) ÷ (80,500 × 0.25 µUSD).
        let Some(BreakEven::Calls(calls)) = read[0].break_even_calls else { panic!("{read:?}") };
        assert!((calls - 4.645_962_732_919_254).abs() < 1e-9, "{calls}");
        assert_eq!(read[0].invalidated_tokens, 16_000);
        // Nothing follows the last compaction.
        let last = &read[1];
        assert_eq!((last.after_tokens, last.cost_usd, last.break_even_calls), (None, None, None));
    }
}
