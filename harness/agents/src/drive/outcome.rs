//! The two rows of a drive: the agent's, and that of our implementation on the session that the
//! agent saw.

use ctxbench_core::{Model, Role};
use ctxbench_mock::summarise::Summariser;
use ctxbench_os::block_on;
use ctxbench_replay::{Options, not_run};
use ctxbench_reports::agreement::compared;
use ctxbench_reports::record::{Agreement, Counterpart, RunRecord, Status};
use ctxbench_scenarios::Scenario;
use ctxbench_session::calibration::Calibrate;
use ctxbench_strategies::Spec;
use ctxbench_util::cut::cut;
use ctxbench_util::plural::pluralize;
use serde::Serialize;

use super::agent::{Agent, Purpose};
use super::director::Exchange;
use super::observed_session::{Extent, work};
use super::plan::DrivePlan;
use super::{Aside, Driven, observed_session, replay_strategy, words};
use crate::quotes::contains_summary;

#[derive(Debug, Default)]
pub struct DriveOutcome {
    /// Row of the agent.
    pub real: RunRecord,
    /// Row of our implementation, compared with the agent's.
    pub ours: Option<RunRecord>,
    /// Side requests by purpose.
    pub asides: Vec<Aside>,
    /// HTTP status of every request that was refused or aborted.
    pub refused: Vec<u16>,
    /// Number of moves that failed for the user.
    pub failed: usize,
    /// Notes about faults that did not occur.
    pub unused_faults: Vec<String>,
    /// Further runs of the agent; the rows are those of the first.
    pub repeats: Vec<Repeat>,
}

/// Figures of one of several runs of an agent on a session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Repeat {
    pub completed: bool,
    pub requests: u64,
    pub input_tokens: u64,
    #[serde(rename = "cost_usd")]
    pub usd: f64,
}

impl From<&RunRecord> for Repeat {
    fn from(r: &RunRecord) -> Repeat {
        let s = &r.summary;
        let completed = r.status == Status::Completed;
        let (requests, input_tokens, usd) = (s.requests, s.input_tokens, s.cost_usd);
        Repeat { completed, requests, input_tokens, usd }
    }
}

impl DriveOutcome {
    /// Returns the agreement of the two rows, if both reached the end of the session.
    pub fn agreement(&self) -> Option<&Agreement> {
        self.ours.as_ref()?.beside.as_ref()?.agreement.as_ref()
    }
}

/// Tolerance between the tokens of the row and those of the provider, per cent.
const EXACT_PCT: f64 = 0.1;

pub fn measured(scenario: &Scenario, driven: &Driven) -> DriveOutcome {
    let extent = if driven.end.stopped.is_some() { Extent::UpToTheEnd } else { Extent::Asked };
    // The model with the agent's wire format.
    let work = observed_session::work(&driven.exchanges).next();
    let wire = work.map_or(driven.model.wire.clone(), |(e, _)| e.wire.name.into());
    let model = Model { wire, ..driven.model.clone() };
    // The observed session, without scaling.
    let lived = |extent, faults| {
        let session = observed_session::observed(driven, extent);
        Scenario { session, faults, scale: 1.0, ..scenario.clone() }
    };
    let own = lived(extent, driven.said_by_faults());
    let mut real = driven.replayed(&own, &driven.row(), &model);
    // The session of the scenario without scaling.
    let given = ctxbench_replay::scenario_info(&Scenario { scale: 1.0, ..scenario.clone() }, &[]);
    real.scenario = given.clone();
    driven.add_errors(&mut real);
    let mut outcome = DriveOutcome {
        asides: driven.asides(),
        refused: driven.refused(),
        failed: driven.end.failures.len(),
        unused_faults: driven.unused_faults.clone(),
        real,
        ours: None,
        repeats: Vec::new(),
    };
    if !driven.has_asked() {
        // There is nothing to measure or to compare.
        outcome.real.status = Status::Error;
        return outcome;
    }
    driven.add_request_notes(&mut outcome.real);
    if let Some(spec) = &driven.strategy {
        let whole = lived(Extent::Whole, driven.faults_of_ours());
        let ours = RunRecord { scenario: given, ..driven.replayed(&whole, spec, &model) };
        outcome.ours = Some(with_agreement(&outcome.real, ours));
    }
    outcome
}

/// Compares our row with the agent's.
fn with_agreement(real: &RunRecord, mut ours: RunRecord) -> RunRecord {
    let both = [real, &ours].iter().all(|r| r.status == Status::Completed);
    let agreement = both.then(|| compared(real, &ours));
    if let Some(agreement) = &agreement {
        add_note(&mut ours, agreement.sentence(&real.strategy.label));
    }
    ours.beside = Some(Counterpart { row: real.strategy.label.clone(), agreement });
    ours
}

/// Returns the row of an agent that was not driven.
pub fn failed(scenario: &Scenario, agent: &Agent, model: &Model, why: String) -> RunRecord {
    let sent =
        replay_strategy::AgentRequests { program: agent.title.clone(), ..Default::default() };
    let spec = replay_strategy::row(&agent.name, sent);
    let mut record = not_run(scenario, &spec, model, Status::Error, why);
    record.strategy.driven = true;
    record.strategy.program = Some(agent.title.clone());
    record.window = model.window;
    record
}

fn add_note(record: &mut RunRecord, more: String) {
    record.note = Some(match record.note.take() {
        Some(note) => format!("{note}; {more}"),
        None => more,
    });
}

impl Driven {
    fn replayed(&self, scenario: &Scenario, spec: &Spec, model: &Model) -> RunRecord {
        let again = Summariser::Again(self.summaries().into(), Box::new(self.summariser.clone()));
        let options = Options {
            summariser: again,
            rereads: false,
            calibrate: Calibrate::Family,
            window: Some(self.window),
            shown: Some(observed_session::fixed(self).into()),
            ..Options::default()
        };
        let replayed = block_on(ctxbench_replay::replay(scenario, spec, model, &options));
        replayed.map(|replayed| replayed.record).unwrap_or_else(|e| {
            let why = format!("the runtime could not be started: {e}");
            not_run(scenario, spec, model, Status::Error, why)
        })
    }

    /// Adds figures and errors of the drive that the replay does not know.
    fn add_errors(&self, real: &mut RunRecord) {
        real.strategy.driven = true;
        let s = &mut real.summary;
        s.blocked_ms = 0;
        s.steps_total = self.plan.replies();
        s.user_interventions = self.end.asked_to_go_on;
        if self.end.stopped.is_some() || self.end.unasked > 0 {
            // Notes of the replay apply only to a complete session.
            real.note = None;
        }
        if let Some(why) = &self.end.stopped {
            (real.status, real.error) = (Status::Error, Some(why.clone()));
        } else if self.end.unasked > 0 && real.status == Status::Completed {
            let first = self.end.failures.first();
            let first = first.map(|(at, why)| format!("; move {} failed: {why}", at + 1));
            real.status = Status::Failed;
            real.error = Some(format!(
                "it did not ask for {} of the session's {}{}",
                self.end.unasked,
                pluralize(self.plan.replies(), "reply"),
                first.unwrap_or_default()
            ));
        } else if let Some((at, why)) = self.end.failures.first() {
            add_note(real, format!("move {} of the session failed for the user: {why}", at + 1));
        }
        if self.skipped > 0 {
            let n = pluralize(self.skipped as u64, "message");
            add_note(real, format!("the agent takes no more turns: {n} of the user left out"));
        }
        if let Err(why) = &self.version {
            add_note(real, why.clone());
        }
        self.unused_faults.iter().for_each(|line| add_note(real, line.clone()));
    }

    fn add_request_notes(&self, real: &mut RunRecord) {
        if self.plan.left_out > 0 {
            let n = self.plan.left_out;
            add_note(real, format!("manual compaction n/a: it cannot be asked for one ({n} ×)"));
        }
        let billed: u64 = self.exchanges.iter().filter(|e| e.is_own()).map(Exchange::input).sum();
        let counted = real.summary.input_tokens;
        let off = 100.0 * (counted as f64 / billed.max(1) as f64 - 1.0);
        if off.abs() > EXACT_PCT {
            let counted = format!("the provider counted {billed} tokens of input");
            add_note(real, format!("{counted}; the row differs by {off:+.1} %"));
        }
        for Aside { purpose, requests, input_tokens, usd } in self.asides() {
            let sort = if purpose == Purpose::Other { "unknown".into() } else { purpose.word() };
            let what = format!("{requests} × {sort}, {input_tokens} tokens in, ${usd:.4}");
            add_note(real, format!("not in the row: {what}"));
        }
        // Our implementation has known request types.
        if self.strategy.is_none()
            && let Some(note) = unclassified(&self.agent, &self.plan, &self.exchanges)
        {
            add_note(real, note);
        }
    }
}

/// Length of the excerpt of a message in a note, characters.
const EXCERPT_CHARS: usize = 60;

/// Returns a note about requests that end with text of the user that neither the session nor the
/// description of the agent knows.
fn unclassified(agent: &Agent, plan: &DrivePlan, exchanges: &[Exchange]) -> Option<String> {
    let rules = agent.side.iter().filter(|s| s.purpose == Purpose::Work);
    let described: Vec<&str> = rules.filter_map(|s| s.last.as_deref()).collect();
    let says = plan.messages().map(|(_, words)| words.trim());
    let says: Vec<&str> = says.filter(|words| !words.is_empty()).collect();
    let summaries = exchanges.iter().filter(|e| e.purpose == Purpose::Summary);
    let summaries = summaries.filter_map(|e| e.outcome.as_ref().ok());
    let summaries: Vec<&str> = summaries.map(|r| words(r).trim()).collect();
    let is_unknown = |text: &str| {
        let is_known = says.iter().chain(&described).any(|known| text.contains(known))
            || summaries.iter().any(|s| contains_summary(text, s));
        !text.trim().is_empty() && !is_known
    };
    let ends = work(exchanges).filter_map(|(_, prompt)| {
        let last = prompt.items.last()?;
        let of_user = last.role == Role::User && last.is_text();
        of_user.then(|| last.text()).filter(|text| is_unknown(text))
    });
    let ends: Vec<&str> = ends.collect();
    let whole = ends.first()?.trim();
    let first = cut(whole, EXCERPT_CHARS);
    let n = ends.len();
    let (requests, end, they) = match n {
        1 => ("request", "ends", "it is a side request"),
        _ => ("requests", "end", "they are side requests"),
    };
    Some(format!(
        "{n} {requests} of its work {end} with an unknown text (“{first}”); if {they}, add a [[side]] \
         rule to its description; if a call ends its turn, an [end] table"
    ))
}
