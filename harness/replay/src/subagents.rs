//! Runs subagents. Each is a separate conversation with the same strategy, settings, model,
//! provider and clock. It begins with the call of its caller.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use ctxbench_core::{Millis, Model};
use ctxbench_scenarios::Scenario;
use ctxbench_strategies::Spec;

use super::agents::{DEEPEST, Subagent};
use super::conversation::{Conversation, SharedConversation};
use super::recording::of_subagent;
use super::session_cache::SessionCache;
use super::subagent_index::SubagentIndex;
use super::windows::window;
use crate::options::Options;
use crate::play::play;
use crate::scene::{Scene, Start};
use crate::watch::RunDoor;
use crate::world::RunAgents;
use ctxbench_mock::summarise::SummaryDesk;

/// Subagents of a replay. The worlds of the replay share them, because a subagent may start others.
pub(super) struct Subagents {
    scenario: Scenario,
    spec: Spec,
    model: Arc<Model>,
    options: Options,
    desk: SummaryDesk,
    known: Arc<SessionCache>,
    index: Arc<SubagentIndex>,
    /// Door of the main conversation.
    door: RunDoor,
    /// What was measured of each subagent that ran.
    conversations: Mutex<Vec<Option<Conversation>>>,
    started: Mutex<HashSet<usize>>,
}

impl Subagents {
    pub(super) fn new(
        scene: &Scene<'_>,
        index: Arc<SubagentIndex>,
        door: RunDoor,
    ) -> Arc<Subagents> {
        Arc::new(Subagents {
            scenario: scene.scenario.clone(),
            spec: scene.spec.clone(),
            model: scene.model.clone(),
            options: scene.options.clone(),
            desk: scene.desk.clone(),
            known: scene.known.clone(),
            conversations: Mutex::new(index.all.iter().map(|_| None).collect()),
            index,
            door,
            started: Mutex::default(),
        })
    }

    /// Returns the calls of a window that wait for their subagents, and how they are run.
    pub(super) fn of_window(
        self: &Arc<Self>,
        window: Option<&str>,
    ) -> (HashSet<&str>, Option<RunAgents>) {
        let all = self.clone();
        let run: RunAgents = Box::new(move |calls, now, request| {
            let all = all.clone();
            Box::pin(async move { all.called(&calls, now, request).await })
        });
        (self.index.waited_in(window), Some(run))
    }

    async fn called(
        self: &Arc<Self>,
        calls: &[Arc<str>],
        now: Millis,
        request: Option<u64>,
    ) -> Millis {
        let mut waits = 0;
        for (i, agent) in self.index.all.iter().enumerate() {
            if agent.call.as_ref().is_some_and(|own| calls.iter().any(|id| **id == *own.id)) {
                let took = self.run(i, now, request).await;
                waits = waits.max(if agent.waits { took } else { 0 });
            }
        }
        waits
    }

    /// Runs the subagents without a call after the end of the main conversation.
    pub(super) async fn run_uncalled(self: &Arc<Self>, now: Millis) {
        let all = &self.index.all;
        for i in (0..all.len()).filter(|&i| all[i].call.is_none()) {
            self.run(i, now, None).await;
        }
    }

    /// Returns what was measured of each subagent that ran.
    pub(super) fn take(&self) -> Vec<Option<Conversation>> {
        self.conversations.lock().map(|mut all| std::mem::take(&mut *all)).unwrap_or_default()
    }

    /// Runs a subagent, unless it already ran, and returns its duration in ms.
    async fn run(self: &Arc<Self>, i: usize, now: Millis, request: Option<u64>) -> Millis {
        let Subagent { id, depth, .. } = &self.index.all[i];
        if *depth > DEEPEST || !self.started.lock().is_ok_and(|mut s| s.insert(i)) {
            return 0;
        }
        let session = window(&self.scenario.session, id);
        let model = of_subagent(&self.scenario, &self.spec, &session, &self.model, &self.options);
        let scene = Scene {
            scenario: &self.scenario,
            session: &session,
            agent: Some(id),
            spec: &self.spec,
            model: &model,
            options: &self.options,
            desk: &self.desk,
            known: self.known.clone(),
            keeps_events: false,
        };
        let start = Start { at_ms: now, by_request: request };
        let log = SharedConversation::default();
        let door = RunDoor { agent: Some(id.clone()), ..self.door.clone() };
        let engine = play(&scene, door, self.of_window(Some(id)), start, log.clone()).await;
        if let Ok(mut all) = self.conversations.lock() {
            all[i] = Some(log.take());
        }
        engine.now().saturating_sub(now)
    }
}
