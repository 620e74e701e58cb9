//! Subagents at work: each is a conversation of its own with the same strategy, settings and model,
//! through the same provider and by the same clock, begun when its caller's call is made.

use std::collections::{BTreeSet, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use ctxbench_core::model::Model;
use ctxbench_core::session::Millis;
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::agents::DEEPEST;
use super::crew::Crew;
use super::events::Log;
use super::known::Known;
use super::recording::of_subagent;
use super::{Doors, Options, Scene, Start, play};
use crate::summarise::SummaryDesk;

/// The subagents of a replay. Shared by its worlds, since a subagent may start others.
pub(super) struct Subagents {
    scenario: Scenario,
    spec: Spec,
    model: Arc<Model>,
    options: Options,
    desk: SummaryDesk,
    /// Of the whole session.
    whole: Arc<Known>,
    doors: Doors,
    log: Log,
    started: Mutex<HashSet<usize>>,
}

impl Subagents {
    pub(super) fn new(scene: &Scene<'_>, doors: Doors, log: Log) -> Arc<Subagents> {
        Arc::new(Subagents {
            scenario: scene.scenario.clone(),
            spec: scene.spec.clone(),
            model: scene.model.clone(),
            options: scene.options.clone(),
            desk: scene.desk.clone(),
            whole: scene.known.clone(),
            doors,
            log,
            started: Mutex::default(),
        })
    }

    fn crew(&self) -> &Crew {
        self.whole.crew(&self.scenario.session)
    }

    /// The calls of a window whose time is that of the agents that it waits for.
    pub(super) fn waited_in(&self, window: Option<&str>) -> HashSet<&str> {
        self.crew().waited_in(window)
    }

    /// A reply made these calls: runs the subagents that they start, all from this moment on.
    /// Returns how long the caller waits, ms.
    pub(super) async fn called(
        self: &Arc<Self>,
        calls: &[Arc<str>],
        now: Millis,
        request: Option<u64>,
    ) -> Millis {
        let mut waits = 0;
        let started = calls.iter().flat_map(|id| self.crew().called(id));
        // In the order in which they begin.
        for i in started.copied().collect::<BTreeSet<usize>>() {
            let took = self.clone().run(i, now, request).await;
            waits = waits.max(if self.crew().all[i].waits { took } else { 0 });
        }
        waits
    }

    /// The main conversation is over: runs the subagents that no call could be found for.
    pub(super) async fn run_uncalled(self: &Arc<Self>, now: Millis) {
        let all = &self.crew().all;
        for i in (0..all.len()).filter(|&i| all[i].call.is_none()) {
            self.clone().run(i, now, None).await;
        }
    }

    /// Runs one subagent, once; boxed, since it may start others. Returns how long it took, ms.
    fn run(
        self: Arc<Self>,
        i: usize,
        now: Millis,
        request: Option<u64>,
    ) -> Pin<Box<dyn Future<Output = Millis> + Send>> {
        Box::pin(async move {
            if self.crew().depths[i] > DEEPEST
                || !self.started.lock().is_ok_and(|mut s| s.insert(i))
            {
                return 0;
            }
            let id = &self.crew().all[i].id;
            let session = self.crew().windows.session(&self.scenario.session, id);
            let model = of_subagent(&self.scenario, &session, &self.model, &self.options);
            let scene = Scene {
                scenario: &self.scenario,
                session: &session,
                agent: Some(id),
                spec: &self.spec,
                model: &model,
                options: &self.options,
                desk: &self.desk,
                known: self.crew().known(i, &session),
                keeps_events: false,
            };
            let start = Start { at_ms: now, by_request: request };
            let log = self.log.of_agent(i as u32);
            let engine =
                play(&scene, self.doors.of(Some(id)), Some(self.clone()), start, log).await;
            engine.now().saturating_sub(now)
        })
    }
}
