//! Recorded behaviour of the real programs against ours, request for request.
//!
//! A case gives settings, fixed pieces and events; the same engine and strategies that the benchmark runs must make the same
//! requests. The adapters here only read, call what a strategy itself calls, and write down what it showed.

mod case;
mod compare;
mod functions;
mod pieces;
mod text;
mod world;

pub use case::{Case, CaseError};
pub use compare::Difference;
pub use functions::{FunctionDifference, FunctionVerdict, function_file, shorten};

use ctxbench_core::agent;
use ctxbench_core::engine::{Engine, Event};

/// Result of one replay case.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Requests that the case expects.
    pub expected: usize,
    /// Requests that agreed, from the first on.
    pub matched: usize,
    /// The first difference; `None` = the case passed.
    pub difference: Option<Difference>,
}

/// Runs one replay case.
pub async fn replay(case: &Case) -> Result<Verdict, CaseError> {
    let set_up = pieces::set_up(case)?;
    let (world, script) = world::ScriptWorld::new(case)?;
    let mut engine = Engine::new(set_up.model, Box::new(world));
    engine.fixed = set_up.fixed;
    engine.default_breakpoints = false;
    let mut strategy = set_up.strategy;
    agent::run(&mut engine, &mut *strategy).await;
    let (_, _, events, _) = engine.into_parts();
    let estimates = events
        .iter()
        .filter_map(|e| match e.event {
            Event::Estimated(n) => Some((e.before_request.saturating_sub(1) as usize, n)),
            _ => None,
        })
        .collect();
    let script = script.lock().map_err(|_| CaseError::Poisoned)?;
    Ok(compare::compare(case, &script, &set_up.view, &estimates))
}
