//! Subagents at work: each is a conversation of its own with the same strategy, settings and model, through the same provider and by the
//! same clock, begun when its caller's call is made.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use ctxbench_core::provider::Model;
use ctxbench_core::record::{FactRecord, RunRecord};
use ctxbench_core::session::Millis;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::agents::{self, Agent};
use super::path::{Defaults, Path};
use super::tally::Tally;
use super::{Doors, Options, Scene, measure, play};
use crate::summarise::SummaryDesk;

/// What a subagent left behind.
pub(super) struct Done {
    pub(super) record: RunRecord,
    pub(super) trace: Vec<String>,
    /// Number, in its caller's window, of the request whose reply started it.
    pub(super) request: Option<u64>,
    pub(super) started_ms: Millis,
    pub(super) took_ms: Millis,
}

/// The subagents of a replay. Shared by its worlds, since a subagent may start others.
pub(super) struct Crew {
    scenario: Scenario,
    spec: Spec,
    model: Arc<Model>,
    options: Options,
    desk: SummaryDesk,
    doors: Doors,
    pub(super) agents: Vec<Agent>,
    /// By the place of the agent.
    done: Mutex<Vec<Option<Done>>>,
    started: Mutex<HashSet<usize>>,
}

impl Crew {
    pub(super) fn new(scene: &Scene<'_>, doors: Doors, agents: Vec<Agent>) -> Arc<Crew> {
        Arc::new(Crew {
            scenario: scene.scenario.clone(),
            spec: scene.spec.clone(),
            model: scene.model.clone(),
            options: scene.options.clone(),
            desk: scene.desk.clone(),
            doors,
            done: Mutex::new(agents.iter().map(|_| None).collect()),
            started: Mutex::default(),
            agents,
        })
    }

    /// A reply made these calls: runs the subagents that they start, all from this moment on. Returns how long the caller waits, ms.
    pub(super) async fn called(self: &Arc<Self>, calls: &[Arc<str>], now: Millis, request: Option<u64>) -> Millis {
        let mut waits = 0;
        for i in 0..self.agents.len() {
            let agent = &self.agents[i];
            if agent.call.as_ref().is_some_and(|c| calls.iter().any(|id| **id == *c.id)) {
                let took = self.clone().run(i, now, request).await;
                waits = waits.max(if agent.waits { took } else { 0 });
            }
        }
        waits
    }

    /// The main conversation is over: runs the subagents that no call could be found for.
    pub(super) async fn rest(self: &Arc<Self>, now: Millis) {
        for i in (0..self.agents.len()).filter(|&i| self.agents[i].call.is_none()) {
            self.clone().run(i, now, None).await;
        }
    }

    /// Runs one subagent, once; boxed, since it may start others.
    fn run(self: Arc<Self>, i: usize, now: Millis, request: Option<u64>) -> Pin<Box<dyn Future<Output = Millis> + Send>> {
        Box::pin(async move {
            if agents::depth(&self.agents, i) > agents::DEEPEST || !self.started.lock().is_ok_and(|mut s| s.insert(i)) {
                return 0;
            }
            let id = &self.agents[i].id;
            let session = agents::own(&self.scenario.session, id);
            let scene = Scene {
                scenario: &self.scenario,
                session: &session,
                agent: Some(id),
                spec: &self.spec,
                model: &self.model,
                options: &self.options,
                desk: &self.desk,
            };
            let (tally, engine) = play(&scene, self.doors.of(Some(&self.agents[i].id)), Some(self.clone()), now).await;
            let took_ms = engine.now().saturating_sub(now);
            let background = engine.races.records();
            let (_, ledger, events, _) = engine.into_parts();
            let course = measure::Course { events: &events, ledger: &ledger, background, total_ms: took_ms };
            let replayed = measure::record(&self.scenario, &self.spec, &self.model, &tally, course);
            if let Ok(mut done) = self.done.lock() {
                done[i] = Some(Done { record: replayed.record, trace: replayed.trace, request, started_ms: now, took_ms });
            }
            took_ms
        })
    }

    /// What each subagent left behind, in their order; `None` = its call was never made.
    pub(super) fn finish(&self) -> Vec<Option<Done>> {
        self.done.lock().map(|mut d| std::mem::take(&mut *d)).unwrap_or_default()
    }

    /// The pairs of a subagent that was never started: nobody looked at them.
    pub(super) fn unreached(&self, agent: &Agent) -> Vec<FactRecord> {
        let session = agents::own(&self.scenario.session, &agent.id);
        let path = Path::of(&session, &Defaults::STATED);
        let mut tally = Tally::new(&session, &path, &self.model, self.spec.descriptor.recovery, &self.options);
        tally.close();
        tally.retention.facts
    }
}
