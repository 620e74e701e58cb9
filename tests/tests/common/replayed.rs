//! Replays in this process, for calculations by hand with o200k token counts.

use ctxbench_core::model;
use ctxbench_core::request::Purpose;
use ctxbench_replay::{FullReplay, Options, replay_in_full};
use ctxbench_reports::record::{RequestRecord, RunRecord};
use ctxbench_scenarios::Scenario;
use ctxbench_session::calibration::Calibrate;
use ctxbench_strategies::Spec;

/// Model of the hand calculations.
pub const MODEL: &str = "claude-sonnet-4-6";

/// Token counts without calibration: o200k, plus four per block.
pub fn as_told() -> Options {
    Options { calibrate: Calibrate::Off, ..Options::default() }
}

pub fn run(scenario: &Scenario, spec: &str) -> RunRecord {
    run_with(MODEL, scenario, spec, &as_told())
}

pub fn run_with(model: &str, scenario: &Scenario, spec: &str, options: &Options) -> RunRecord {
    run_in_full(model, scenario, spec, options).replayed.record
}

pub fn run_in_full(model: &str, scenario: &Scenario, spec: &str, options: &Options) -> FullReplay {
    run_spec(model, scenario, &Spec::parse(spec).unwrap(), options)
}

pub fn run_spec(model: &str, scenario: &Scenario, spec: &Spec, options: &Options) -> FullReplay {
    let model = model::find(model).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(replay_in_full(scenario, spec, model, options))
}

pub fn requests_with(record: &RunRecord, purpose: Purpose) -> Vec<&RequestRecord> {
    record.requests.iter().filter(|r| r.purpose == purpose).collect()
}

pub fn samples(record: &RunRecord) -> Vec<&RequestRecord> {
    requests_with(record, Purpose::Sample)
}

pub fn summaries(record: &RunRecord) -> Vec<&RequestRecord> {
    requests_with(record, Purpose::Summary)
}
