//! Comparison of our requests with the recorded ones of real programs.
//!
//! A case gives settings, fixed pieces and events. The engine and the strategies of the benchmark
//! must make the recorded requests. The modules here read a case, call the code of a strategy, and
//! record its requests.

mod case;
mod changes;
mod compare;
mod format;
mod outcome;
mod pieces;
mod prompt;
mod shape;
mod shorten;
mod world;

pub use case::{Case, CaseError};
pub use changes::{Changes, changes};
pub use compare::Difference;
pub use shorten::shorten;

use std::sync::Arc;

use ctxbench_core::agent;
use ctxbench_core::engine::{Engine, Event};
use ctxbench_core::model;
use ctxbench_provider::wire;
use ctxbench_strategies::conform::{RecordedProgram, SetUp};

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
pub async fn replay(case: &Case) -> Result<CaseVerdict, CaseError> {
    format::check(case)?;
    let product = case.product()?;
    let template = model::catalogue()
        .first()
        .ok_or_else(|| CaseError::Unknown { what: "model", name: String::new() })?;
    let recorded = RecordedProgram {
        version: &case.version,
        settings: &case.settings,
        constants: &case.constants,
        fixed: &case.fixed,
    };
    let set_up = (product.set_up)(&recorded, template.clone())?;
    let (world, script) = world::ScriptWorld::new(case, &set_up);
    let SetUp { mut strategy, model, params, view, .. } = set_up;
    let mut engine = Engine::new(Arc::new(model), Box::new(world));
    engine.fixed = pieces::fixed(case)?;
    if let Some(name) = view.numbered {
        let unknown = || CaseError::Unknown { what: "wire", name: name.to_string() };
        engine.fixed.server_edits = wire::find(name).ok_or_else(unknown)?.edits_among(&params);
    }
    engine.fixed.params = params;
    engine.default_breakpoints = false;
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
    let mut verdict = compare::compare(case, &script, &view, &estimates);
    if let (None, Some(want)) = (&verdict.difference, &case.outcome) {
        verdict.difference = outcome::outcome(want, &script, product.error_classes, &view, &events);
    }
    Ok(verdict)
}
