//! Replays in process, and arguments of the benchmarks.

use ctxbench_core::model::{self, DEFAULT_MODEL, Model};
use ctxbench_mock::Transport;
use ctxbench_mock::summarise::Summariser;
use ctxbench_replay::Options;
use ctxbench_reports::record::RunRecord;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

/// A window that no session fills, in tokens.
pub const HUGE_WINDOW: u64 = 1_000_000_000;

/// Mode of a benchmark run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Measures the time.
    Measure,
    /// Runs everything once, as a smoke test (`--test`).
    Smoke,
    /// Only prints the names (`--list`).
    List,
}

impl Mode {
    /// Reads the mode from the arguments of the process.
    pub fn of_args() -> Mode {
        let has = |name: &str| std::env::args().any(|a| a == name);
        match (has("--list"), has("--test")) {
            (true, _) => Mode::List,
            (_, true) => Mode::Smoke,
            _ => Mode::Measure,
        }
    }
}

/// Returns the model of a run without arguments.
pub fn model() -> &'static Model {
    model::find(DEFAULT_MODEL).expect("the default model is in the catalogue")
}

/// Returns a strategy by name.
///
/// # Panics
/// If there is no strategy with this name.
pub fn spec(name: &str) -> Spec {
    match Spec::parse(name) {
        Ok(spec) => spec,
        Err(e) => panic!("{e}"),
    }
}

/// Replays a session without a wire, with the extractive summariser.
pub fn replay(scenario: &Scenario, spec: &Spec, window: Option<u64>) -> RunRecord {
    let options = Options {
        transport: Transport::Direct,
        summariser: Summariser::Extractive,
        window,
        ..Options::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime of one thread needs nothing");
    runtime.block_on(ctxbench_replay::replay(scenario, spec, model(), &options)).record
}
