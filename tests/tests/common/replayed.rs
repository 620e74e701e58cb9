//! Replays in this process, for calculations by hand with o200k token counts.

use ctxbench_core::calibration::Calibrate;
use ctxbench_core::model;
use ctxbench_harness::replay::{FullReplay, Options, replay, replay_in_full};
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::Scenario;
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
    let (model, spec) = (model::find(model).unwrap(), Spec::parse(spec).unwrap());
    runtime().block_on(replay(scenario, &spec, model, options)).record
}

pub fn run_in_full(scenario: &Scenario, spec: &str) -> FullReplay {
    let (model, spec) = (model::find(MODEL).unwrap(), Spec::parse(spec).unwrap());
    runtime().block_on(replay_in_full(scenario, &spec, model, &as_told()))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
