//! Name and version of a program, without a session.

use std::sync::Arc;

use async_trait::async_trait;
use ctxbench_core::agent;
use ctxbench_core::content::ToolCall;
use ctxbench_core::engine::{Action, Engine, Event, Host, Incoming};
use ctxbench_core::model::{self, DEFAULT_MODEL};
use ctxbench_core::request::{ModelError, Reply, Request};
use ctxbench_core::session::Millis;
use ctxbench_strategies::Spec;

/// A session without events.
struct EmptyWorld;

#[async_trait]
impl Host for EmptyWorld {
    async fn next(&mut self) -> Option<Action> {
        None
    }

    async fn send(&mut self, _request: &Request) -> Result<Reply, ModelError> {
        Err(ModelError::ended())
    }

    async fn run(&mut self, _calls: &[ToolCall]) -> Vec<Incoming> {
        vec![]
    }

    fn now(&self) -> Millis {
        0
    }
}

/// Starts a program and returns its name and version.
pub fn introduced(spec: &Spec) -> Result<(String, String), String> {
    let model = model::find(DEFAULT_MODEL).map_err(|e| e.to_string())?;
    let mut engine = Engine::new(Arc::new(model.clone()), Box::new(EmptyWorld));
    let mut strategy = spec.build(1.0, model.window);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| format!("the runtime could not be started: {e}"))?;
    runtime.block_on(agent::run(&mut engine, &mut *strategy));
    let introduction = engine.events.iter().find_map(|e| match &e.event {
        Event::Program { name, version } => Some(Ok((name.clone(), version.clone()))),
        Event::StrategyFailed(why) => Some(Err(why.clone())),
        _ => None,
    });
    introduction.unwrap_or_else(|| Err("the strategy is not a program".into()))
}
