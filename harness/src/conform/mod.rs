//! Comparison of our requests with the recorded ones of real programs.
//!
//! A case gives settings, fixed pieces and events. The engine and the strategies of the benchmark
//! must make the recorded requests. The modules here call the code of a strategy, and compare its
//! requests.

mod changes;
mod compare;
mod outcome;
mod pieces;
mod prompt;
mod shorten;
mod world;

pub use changes::{Changes, changes};
pub use compare::Difference;
pub use ctxbench_strategies::conform::case::{Case, CaseError};
pub use shorten::shorten;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use ctxbench_core::agent;
use ctxbench_core::engine::{Engine, Event};
use ctxbench_core::model;
use ctxbench_provider::wire;
use ctxbench_strategies::conform::{SetUp, replay_of};

/// Result of one replay case.
#[derive(Clone, Debug)]
pub struct CaseVerdict {
    /// Number of requests in the case.
    pub expected: usize,
    /// Number of matching requests before the first difference.
    pub matched: usize,
    /// The first difference; `None` = the case passed.
    pub difference: Option<Difference>,
}

/// Runs one replay case.
pub fn replay(case: &Case) -> Result<CaseVerdict, CaseError> {
    let unknown = |what, name: &str| CaseError::Unknown { what, name: name.to_string() };
    let product = replay_of(&case.agent);
    let product = product.ok_or_else(|| unknown("agent", &case.agent))?;
    case.check(product)?;
    let template = model::catalogue().first().ok_or_else(|| unknown("model", ""))?;
    let SetUp { mut strategy, model, view } = (product.set_up)(case, template.clone())?;
    let (world, script) = world::ScriptWorld::new(case, &view);
    let mut engine = Engine::new(Arc::new(model), Box::new(world));
    engine.fixed = pieces::fixed(case);
    if let Some(name) = view.numbered {
        let wire = wire::find(name).ok_or_else(|| unknown("wire", name))?;
        engine.fixed.server_edits = wire.edits_among(&view.params);
    }
    engine.fixed.params = view.params.clone();
    engine.default_breakpoints = false;
    // Nothing in a case waits, so the run ends at once.
    let run =
        pin!(agent::run(&mut engine, &mut *strategy)).poll(&mut Context::from_waker(Waker::noop()));
    if run.is_pending() {
        return Err(CaseError::Unfinished);
    }
    let (_, _, events, _) = engine.into_parts();
    let estimates = events
        .iter()
        .filter_map(|e| match e.event {
            Event::Estimated(n) => Some((e.before_request.saturating_sub(1) as usize, n)),
            _ => None,
        })
        .collect();
    let script = script.lock().map_err(|_| CaseError::Unfinished)?;
    let mut verdict = compare::compare(case, &script, &view, &estimates);
    if let (None, Some(want)) = (&verdict.difference, &case.outcome) {
        let found = outcome::outcome(want, &script, product.error_classes, &view, &events);
        verdict.difference = found.map(|m| m.at(script.requests.len(), None));
    }
    Ok(verdict)
}
