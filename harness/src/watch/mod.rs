//! Watching a replay from outside: a door that meters what goes through it, and stops it at a spend
//! limit.
//!
//! The strategy and its world know nothing of it, so a watched run is the same run.

mod team;

pub mod otel;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctxbench_core::model::Model;
use ctxbench_core::request::{ModelError, Purpose, Reply, Request};
use ctxbench_core::session::Millis;
use ctxbench_kit::monitor::{
    Counted, Headroom, RateLimit, RateStatus, SessionMeter, SpendGuard, SpendLimit, StatusLine,
};

use crate::mock::{Door, PlannedReply};

pub(crate) use team::thousands;
pub use team::{Team, team_section};

/// What is watched.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Keep a status line after every reply.
    pub status: bool,
    /// Refuse requests that would go over these.
    pub spend: Vec<SpendLimit>,
    /// Show in status lines what the run leaves of this limit, tokens per minute. It refuses
    /// nothing.
    pub tpm: Option<u64>,
}

/// What was seen.
#[derive(Default)]
pub struct Seen {
    /// The JSON of a status line per reply, if asked for.
    pub status: Vec<String>,
    /// Tokens, dollars, lines and time; `None` = nothing ran.
    pub meter: Option<SessionMeter>,
    /// Why the run was stopped.
    pub refused: Option<String>,
}

impl std::fmt::Debug for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seen")
            .field("status", &self.status.len())
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

struct State {
    seen: Seen,
    guard: SpendGuard,
    headroom: Option<Headroom>,
}

/// Watches the conversations of one run; what it has seen is read when the run is over.
#[derive(Clone)]
pub struct Watcher {
    status: bool,
    tpm: Option<u64>,
    scale: f64,
    session: String,
    model: String,
    state: Arc<Mutex<State>>,
}

impl Watcher {
    /// `session` names the run in status lines; `model` is that of the conversation; `scale` is the
    /// session's, which a limit of tokens per minute is not subject to.
    pub fn new(watch: &Watch, session: String, model: &Model, scale: f64) -> Self {
        let seen = Seen { meter: Some(SessionMeter::new(model.window)), ..Seen::default() };
        // A replay has no date: days and months begin with the session.
        let guard = SpendGuard::new(watch.spend.clone(), 0);
        let headroom = watch.tpm.map(|tpm| Headroom::new(RateLimit { tpm, rpm: None }));
        let state = Arc::new(Mutex::new(State { seen, guard, headroom }));
        Watcher {
            status: watch.status,
            tpm: watch.tpm,
            scale,
            session,
            model: model.name.to_string(),
            state,
        }
    }

    /// A watched door for the main conversation, or for that of a subagent.
    pub fn door(&self, inner: Box<dyn Door>, agent: Option<&str>) -> Box<dyn Door> {
        Box::new(WatchedDoor { inner, watcher: self.clone(), agent: agent.map(str::to_string) })
    }

    /// Takes what was seen.
    pub fn take(&self) -> Seen {
        let Ok(mut s) = self.state.lock() else { return Seen::default() };
        if let Some(m) = &mut s.seen.meter {
            m.close();
        }
        std::mem::take(&mut s.seen)
    }
}

/// A door that looks at what goes through.
struct WatchedDoor {
    inner: Box<dyn Door>,
    watcher: Watcher,
    agent: Option<String>,
}

impl Watcher {
    /// Whether the request may go; once one was refused, none goes any more.
    fn admit(&self, agent: Option<&str>, request: &Request, now: Millis) -> Result<(), ModelError> {
        let Ok(mut s) = self.state.lock() else { return Ok(()) };
        if s.seen.refused.is_none() {
            s.seen.refused = s.guard.check_of(agent, request, now).err().map(|e| e.to_string());
        }
        match &s.seen.refused {
            None => Ok(()),
            Some(why) => Err(ModelError { message: why.clone(), ..ModelError::ended() }),
        }
    }

    fn note(
        &self,
        agent: Option<&str>,
        request: &Request,
        result: &Result<Reply, ModelError>,
        now: Millis,
    ) {
        let Ok(mut state) = self.state.lock() else { return };
        let State { seen, guard, headroom } = &mut *state;
        let took = result.as_ref().map_or(0, |r| r.latency_ms);
        if let Ok(reply) = result {
            guard.paid_of(agent, request, reply, now);
            if let Some(h) = headroom {
                h.spend(
                    now,
                    (Counted::default().tokens(&reply.billed) as f64 / self.scale).round() as u64,
                );
            }
        }
        let Some(meter) = &mut seen.meter else { return };
        let after = meter.observe_of(agent, request, result, now, took);
        if self.status && after.is_some() && agent.is_none() && request.purpose == Purpose::Sample {
            let left = |h: &Headroom| h.tokens_left(now.saturating_add(took));
            let rate_limit = self.tpm.zip(headroom.as_ref().map(left));
            let rate_limit = rate_limit.map(|(tokens_per_minute, tokens_left)| RateStatus {
                tokens_per_minute,
                tokens_left,
            });
            let line = StatusLine {
                rate_limit,
                ..StatusLine::of_meter(&self.session, &self.model, meter)
            };
            seen.status.push(serde_json::to_string(&line).expect("plain data always serialises"));
        }
    }
}

#[async_trait]
impl Door for WatchedDoor {
    async fn send(
        &mut self,
        request: &Request,
        plan: PlannedReply,
        now: Millis,
    ) -> Result<Reply, ModelError> {
        self.watcher.admit(self.agent.as_deref(), request, now)?;
        let result = self.inner.send(request, plan, now).await;
        self.watcher.note(self.agent.as_deref(), request, &result, now);
        result
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        self.inner.count(request).await
    }
}

#[cfg(test)]
mod tests;
