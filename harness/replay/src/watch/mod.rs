//! Monitoring of a replay: meters every request and enforces spend limits.
//!
//! Strategies do not see the monitor, so a monitored run gives the same figures.

pub mod otel;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctxbench_core::Millis;
use ctxbench_core::model::Model;
use ctxbench_core::request::{ModelError, Purpose, Reply, Request};
use ctxbench_kit::monitor::{SessionMeter, SpendGuard, SpendLimit, status_line};

use ctxbench_mock::{Door, PlannedReply};

/// Monitoring options.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Record a status line after each reply.
    pub status: bool,
    /// Limits on spending.
    pub spend: Vec<SpendLimit>,
}

/// Result of monitoring a run.
#[derive(Debug, Default)]
pub struct Observations {
    /// Status line per reply as JSON, if enabled.
    pub status: Vec<String>,
    /// Tokens, dollars and time; `None` if nothing ran.
    pub meter: Option<SessionMeter>,
    /// Reason why a spend limit ended the run.
    pub refused: Option<String>,
}

struct WatchState {
    observations: Observations,
    guard: SpendGuard,
}

/// Monitors the conversations of a run.
#[derive(Clone)]
pub struct Watcher {
    status: bool,
    session: String,
    model: String,
    state: Arc<Mutex<WatchState>>,
}

impl Watcher {
    /// Creates a monitor. `session` is the name in status lines, `model` the model of the
    /// conversation.
    pub fn new(watch: &Watch, session: String, model: &Model) -> Self {
        let meter = Some(SessionMeter::new(model.window));
        let observations = Observations { meter, ..Observations::default() };
        // A replay has no date: days and months start with the session.
        let guard = SpendGuard::new(watch.spend.clone(), 0);
        let state = Arc::new(Mutex::new(WatchState { observations, guard }));
        Watcher { status: watch.status, session, model: model.name.to_string(), state }
    }

    /// Wraps the door of the main conversation or of a subagent.
    pub fn door(&self, inner: Box<dyn Door>, agent: Option<&str>) -> Box<dyn Door> {
        Box::new(WatchedDoor { inner, watcher: self.clone(), agent: agent.map(str::to_string) })
    }

    /// Takes the observations at the end of the run.
    pub fn take(&self) -> Observations {
        let Ok(mut s) = self.state.lock() else { return Observations::default() };
        std::mem::take(&mut s.observations)
    }
}

/// A door that reports requests to a [`Watcher`].
struct WatchedDoor {
    inner: Box<dyn Door>,
    watcher: Watcher,
    agent: Option<String>,
}

#[async_trait]
impl Door for WatchedDoor {
    /// Sends a request unless a limit refuses it. After one refusal, all requests are refused.
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        let Watcher { status, session, model, state } = &self.watcher;
        let agent = self.agent.as_deref();
        if let Ok(mut s) = state.lock() {
            if s.observations.refused.is_none() {
                s.observations.refused = s.guard.check(agent, request, now).err();
            }
            if let Some(reason) = &s.observations.refused {
                return Err(ModelError { message: reason.clone(), ..ModelError::ended() });
            }
        }
        let result = self.inner.send(request, plan, now).await;
        let Ok(mut state) = state.lock() else { return result };
        let WatchState { observations, guard } = &mut *state;
        if let Ok(reply) = &result {
            guard.record(agent, request, reply, now);
        }
        if let Some(meter) = &mut observations.meter {
            let took = result.as_ref().map_or(0, |r| r.latency_ms);
            meter.observe(agent, request, &result, now, took);
            if *status && result.is_ok() && agent.is_none() && request.purpose == Purpose::Sample {
                observations.status.push(status_line(session, model, meter).to_string());
            }
        }
        result
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        self.inner.count(request).await
    }
}

#[cfg(test)]
mod tests;
