//! Monitoring of a replay: meters every request and enforces spend limits.
//!
//! Strategies do not see the monitor, so a monitored run gives the same figures.

pub mod otel;

use std::sync::{Arc, Mutex};

use ctxbench_core::prelude::*;
use ctxbench_kit::monitor::{SessionMeter, SpendGuard, SpendLimit};

use ctxbench_mock::{Door, PlannedReply};

/// Monitoring options.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    pub spend: Vec<SpendLimit>,
}

/// Result of monitoring a run.
#[derive(Debug, Default)]
pub struct Observations {
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
    state: Arc<Mutex<WatchState>>,
}

impl Watcher {
    pub fn new(watch: &Watch) -> Self {
        let meter = Some(SessionMeter::default());
        let observations = Observations { meter, ..Observations::default() };
        // A replay has no date: days and months start with the session.
        let guard = SpendGuard::new(watch.spend.clone(), 0);
        Watcher { state: Arc::new(Mutex::new(WatchState { observations, guard })) }
    }

    /// Takes the observations at the end of the run.
    pub fn take(&self) -> Observations {
        let Ok(mut s) = self.state.lock() else { return Observations::default() };
        std::mem::take(&mut s.observations)
    }

    /// Returns why a limit refuses a request. After one refusal, all requests are refused.
    fn refusal(&self, agent: Option<&str>, request: &Request, now: Millis) -> Option<String> {
        let mut s = self.state.lock().ok()?;
        if s.observations.refused.is_none() {
            s.observations.refused = s.guard.check(agent, request, now).err();
        }
        s.observations.refused.clone()
    }

    fn observe(
        &self,
        agent: Option<&str>,
        request: &Request,
        result: &Result<Reply, ModelError>,
        now: Millis,
    ) {
        let Ok(mut state) = self.state.lock() else { return };
        let WatchState { observations, guard } = &mut *state;
        if let Ok(reply) = result {
            guard.record(agent, request, reply, now);
        }
        if let Some(meter) = &mut observations.meter {
            let took = result.as_ref().map_or(0, |r| r.latency_ms);
            meter.observe(agent, request, result, now, took);
        }
    }
}

/// The door of a conversation to the provider that all conversations of a run share, with its
/// prompt cache. Requests pass one at a time.
#[derive(Clone)]
pub(crate) struct RunDoor {
    pub(crate) provider: Arc<tokio::sync::Mutex<Box<dyn Door>>>,
    pub(crate) watcher: Option<Watcher>,
    /// The subagent; `None` for the main conversation.
    pub(crate) agent: Option<String>,
}

#[async_trait]
impl Door for RunDoor {
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        let agent = self.agent.as_deref();
        let refused = self.watcher.as_ref().and_then(|w| w.refusal(agent, request, now));
        if let Some(message) = refused {
            return Err(ModelError { message, ..ModelError::ended() });
        }
        let result = self.provider.lock().await.send(request, plan, now).await;
        if let Some(watcher) = &self.watcher {
            watcher.observe(agent, request, &result, now);
        }
        result
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        self.provider.lock().await.count(request).await
    }
}

#[cfg(test)]
mod tests;
