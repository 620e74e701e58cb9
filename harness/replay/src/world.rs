//! The simulated world of a replay. Replies and tool results come from the session, independent of
//! what the context shows. Time is virtual.

use std::collections::HashMap;
use std::pin::Pin;

use ctxbench_core::compaction::tools::is_edit;
use ctxbench_core::host::TimedEvent;
use ctxbench_core::prelude::*;
use ctxbench_core::{Host, Model};

use super::observer::{AnswerSource, Observer};
use super::path::{Move, Path, PathStep, THINK_MS, TOOLS_MS};
use super::recording::text_of;
use crate::scene::Scene;
use crate::watch::RunDoor;
use ctxbench_mock::summarise::SummaryDesk;
use ctxbench_mock::{Door, PlannedReply};
use ctxbench_scenarios::{FaultOn, ProviderFault};

/// Text of a reply after the end of the recorded path.
pub const NEUTRAL: &str = "Understood; nothing is left to do in this turn.";

/// Maximum number of consecutive failed turns without a recorded step. Then the run ends.
pub const MAX_FAILURES: u32 = 3;

/// Text of the user after a turn that ended too early.
pub const GO_ON: &str = "Please go on.";

/// Runs the subagents that these calls of a request's reply start, and returns how long the caller
/// waits, ms.
pub(super) type RunAgents =
    Box<dyn Fn(Vec<Arc<str>>, Millis, Option<u64>) -> BoxFuture<Millis> + Send + Sync>;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub(super) struct ReplayWorld {
    moves: std::vec::IntoIter<Move>,
    /// Remaining replies of the current turn. The next one is last.
    steps: Vec<PathStep>,
    door: RunDoor,
    observer: Observer,
    now: Millis,
    /// Time of the next event, if it was already requested.
    due: Option<Millis>,
    /// Whether the current turn failed, so that the user asks again.
    failed: bool,
    failures: u32,
    rereads: bool,
    faults: Vec<ProviderFault>,
    desk: SummaryDesk,
    /// Number of requests so far that faults count, by kind.
    counted: HashMap<FaultOn, u64>,
    /// Next recorded reply: a step of the session, or one beyond it.
    asked: Option<AnswerSource>,
    /// Background requests: when each is done, and its result.
    tasks: Vec<(Millis, Result<Reply, ModelError>)>,
    /// Results of the calls in flight.
    results: Vec<Incoming>,
    tools_ms: Millis,
    over: bool,
    /// Messages of recorded replies.
    replies: HashMap<Arc<str>, MessageId>,
    newest_reply: Arc<str>,
    subagents: Option<RunAgents>,
    id: String,
}

impl ReplayWorld {
    /// Creates the world of a conversation that starts at `now` ms. Only the main conversation has
    /// the scenario's faults.
    pub(super) fn new(
        scene: &Scene<'_>,
        path: Path,
        door: RunDoor,
        observer: Observer,
        subagents: Option<RunAgents>,
        now: Millis,
    ) -> Self {
        let faults = scene.agent.is_none().then(|| scene.scenario.faults.clone());
        ReplayWorld {
            moves: path.moves.into_iter(),
            steps: Vec::new(),
            door,
            observer,
            now,
            due: None,
            failed: false,
            failures: 0,
            rereads: scene.options.rereads,
            faults: faults.unwrap_or_default(),
            desk: scene.desk.clone(),
            counted: HashMap::new(),
            asked: None,
            tasks: Vec::new(),
            results: Vec::new(),
            tools_ms: 0,
            over: false,
            replies: HashMap::new(),
            newest_reply: "".into(),
            subagents,
            id: scene.session.header.id.clone(),
        }
    }

    /// Returns the time of the next event. The time is fixed by the first call, so that work done
    /// while waiting does not delay the event.
    fn due(&mut self) -> Option<Millis> {
        if self.due.is_none() {
            let gap = match self.moves.as_slice().first() {
                _ if self.over => None,
                _ if self.failed && !self.steps.is_empty() => Some(THINK_MS),
                Some(Move { gap_ms, action: Action::Idle { ms }, .. }) => {
                    Some(gap_ms.saturating_add(*ms))
                }
                Some(m) => Some(m.gap_ms),
                None => None,
            };
            self.due = gap.map(|g| self.now.saturating_add(g));
        }
        self.due
    }

    /// Returns the answer to a normal request: the next recorded reply, a re-read before it, or a
    /// neutral text after the last one.
    fn plan(&mut self, request: &Request) -> (PlannedReply, AnswerSource) {
        let Some(step) = self.steps.last().cloned() else {
            let neutral = vec![Part::Text(NEUTRAL.into())];
            return (PlannedReply::with_parts(neutral), AnswerSource::Neutral);
        };
        if self.rereads
            && let Some(again) = self.observer.recall.lost_at(&step.key, request)
        {
            let source = AnswerSource::Reread { before: step.key, result: Box::new(again.result) };
            return (PlannedReply::with_parts(vec![Part::Call(again.call)]), source);
        }
        (PlannedReply::of_size(step.parts, step.output), AnswerSource::Step(step.key))
    }

    /// Returns the answer to a request that is not the agent's own work.
    fn side_work(&self, purpose: Purpose) -> PlannedReply {
        match purpose {
            Purpose::Summary => PlannedReply::Summarise,
            Purpose::Edit => PlannedReply::with_parts(vec![Part::Text(self.edits().into())]),
            Purpose::Sample | Purpose::Ping => {
                PlannedReply::Say { parts: vec![], stop: StopReason::MaxTokens, output: 0 }
            }
        }
    }

    /// Returns the reply of an editor model: the edits of the newest recorded reply in order, or a
    /// statement that nothing has to be changed.
    fn edits(&self) -> String {
        let given = match (&self.asked, self.steps.last()) {
            (Some(AnswerSource::Step(key)), Some(step)) if step.key == *key => &step.parts[..],
            _ => &[],
        };
        let edit = |p: &Part| match p {
            Part::Call(c) if is_edit(&c.name) => Some(format!("{} {}", c.name, c.arguments)),
            _ => None,
        };
        let edits: Vec<String> = given.iter().filter_map(edit).collect();
        if edits.is_empty() { "Nothing to change.".into() } else { edits.join("\n") }
    }

    /// Returns the answer of a fault of the scenario, and the time until a refusal in ms.
    fn disturbed(&mut self, purpose: Purpose) -> Option<(PlannedReply, Millis)> {
        let on = match purpose {
            Purpose::Sample => FaultOn::Sample,
            Purpose::Summary => FaultOn::Summary,
            Purpose::Ping | Purpose::Edit => return None,
        };
        let n = self.counted.entry(on).or_default();
        *n += 1;
        let fault = self.faults.iter().find(|f| f.hits(on, *n))?;
        let plan = match fault.status {
            Some(status) => {
                let message =
                    fault.message.clone().unwrap_or_else(|| "the provider failed".to_string());
                PlannedReply::Refuse { status, code: fault.code.clone(), message }
            }
            None => {
                let text = fault.tokens.map(text_of).or(fault.text.clone());
                let text = text.filter(|text| !text.is_empty());
                PlannedReply::with_parts(
                    text.map(|text| Part::Text(text.into())).into_iter().collect(),
                )
            }
        };
        Some((plan, fault.after_ms))
    }

    /// Returns the answer to a request: the planned one, or that of a fault. A fault that replaces
    /// a recorded reply does not belong to the recorded path.
    fn answer(
        &mut self,
        purpose: Purpose,
        plan: PlannedReply,
        asked: AnswerSource,
    ) -> (PlannedReply, AnswerSource, Millis) {
        match self.disturbed(purpose) {
            None => (plan, asked, 0),
            Some((plan @ PlannedReply::Say { .. }, late_ms)) if purpose == Purpose::Sample => {
                (plan, AnswerSource::Neutral, late_ms)
            }
            Some((plan, late_ms)) => (plan, asked, late_ms),
        }
    }

    /// Sends a request. If a summary is missing, the run ends; this is not a failure of the
    /// provider.
    async fn ask(&mut self, request: &Request, plan: PlannedReply) -> Result<Reply, ModelError> {
        let result = self.door.send(request, plan, self.now).await;
        match self.desk.trouble() {
            None => result,
            Some(why) => {
                self.over = true;
                Err(ModelError { message: why, ..ModelError::ended() })
            }
        }
    }
}

#[async_trait]
impl Host for ReplayWorld {
    async fn next(&mut self) -> Option<Action> {
        if self.over {
            return None;
        }
        // Work done while waiting may have taken longer than the wait.
        let arrives = self.due().unwrap_or(0).max(self.now);
        self.due = None;
        // The turn failed or ended too early, so the user asks to continue.
        let failed = std::mem::take(&mut self.failed);
        if !self.steps.is_empty() {
            self.failures += u32::from(!failed);
            if self.failures >= MAX_FAILURES {
                self.over = true;
                return None;
            }
            self.now = arrives;
            let mut log = self.observer.log.lock();
            log.asked_to_go_on += 1;
            let key = format!("intervention-{}", log.asked_to_go_on).into();
            return Some(Action::User(Incoming { key, parts: vec![Part::Text(GO_ON.into())] }));
        }
        let m = self.moves.next()?;
        self.now = arrives;
        self.observer.moved(&m);
        self.steps = m.steps;
        self.steps.reverse();
        Some(m.action)
    }

    fn model(&self) -> Option<Arc<Model>> {
        self.steps.last()?.model.clone()
    }

    async fn wait_until(&mut self, at: Millis) -> bool {
        let first = self.due().is_some_and(|due| at < due);
        if first {
            self.now = self.now.max(at);
        }
        first
    }

    async fn send(&mut self, request: &Request) -> Result<Reply, ModelError> {
        if let Some(why) = self.desk.trouble() {
            return Err(ModelError { message: why, ..ModelError::ended() });
        }
        if self.observer.livelocked() {
            self.over = true;
            return Err(ModelError { message: "no progress".into(), ..ModelError::ended() });
        }
        let (plan, asked) = match request.purpose {
            Purpose::Sample => self.plan(request),
            other => (self.side_work(other), AnswerSource::Aside),
        };
        let (plan, asked, late_ms) = self.answer(request.purpose, plan, asked);
        let result = self.ask(request, plan).await;
        if result.as_ref().is_err_and(|e| e.kind == ErrorKind::SessionEnd) {
            // The request was not sent, because of a spend limit or a missing summary. No event is
            // logged, and the user does not ask to continue.
            self.over = true;
            return result;
        }
        // After its compaction, the provider has not sent the recorded reply yet.
        let paused = request.purpose == Purpose::Sample
            && result.as_ref().is_ok_and(|r| r.stop == StopReason::Compaction);
        let asked = if paused { AnswerSource::Paused } else { asked };
        let (started, took) = (self.now, result.as_ref().map_or(late_ms, |r| r.latency_ms));
        self.now = self.now.saturating_add(took);
        self.observer.request(request, &result, &asked, (started, took), true);
        if request.purpose == Purpose::Sample && result.is_ok() {
            self.asked = Some(asked);
        }
        result
    }

    async fn count(&mut self, request: &Request) -> Option<u64> {
        self.door.count(request).await
    }

    async fn run(&mut self, _calls: &[ToolCall]) -> Vec<Incoming> {
        let tools_ms = std::mem::take(&mut self.tools_ms);
        let results = std::mem::take(&mut self.results);
        let waited = match &self.subagents {
            Some(subagents) => {
                let calls = results.iter().map(|r| r.key.clone()).collect();
                subagents(calls, self.now, self.observer.newest_sample).await
            }
            None => 0,
        };
        // The calls of a reply run in parallel.
        self.now = self.now.saturating_add(tools_ms.max(waited));
        results
    }

    fn on_reply(&mut self, message: MessageId) {
        match self.asked.take() {
            Some(AnswerSource::Step(key)) => {
                self.failures = 0;
                self.replies.insert(key.clone(), message);
                self.newest_reply = key.clone();
                if let Some(step) = self.steps.pop() {
                    self.tools_ms = step.tools_ms;
                    self.results = step.results;
                }
                self.observer.recorded(&key, message);
            }
            Some(AnswerSource::Reread { result, .. }) => {
                self.tools_ms = TOOLS_MS;
                self.results = vec![*result];
                self.observer.recorded("", message);
            }
            _ => self.observer.recorded("", message),
        }
    }

    fn on_view(&mut self, key: &str, blocks: &[Arc<Block>]) {
        let key = if key.is_empty() { &*self.newest_reply } else { key };
        self.observer.rewinds.record_view(key, blocks);
    }

    fn message(&self, key: &str) -> Option<MessageId> {
        self.replies.get(key).copied()
    }

    fn turn_continues(&self) -> bool {
        !self.steps.is_empty()
    }

    fn turn_failed(&mut self, reason: &str) {
        self.failed = true;
        self.failures += 1;
        self.observer.log.lock().turn_failed = Some(reason.into());
    }

    async fn spawn(&mut self, request: &Request) -> Task {
        let plan = self.side_work(request.purpose);
        let (plan, asked, late_ms) = self.answer(request.purpose, plan, AnswerSource::Aside);
        let result = self.ask(request, plan).await;
        let took = result.as_ref().map_or(late_ms, |r| r.latency_ms);
        let done_at = self.now.saturating_add(took);
        self.observer.request(request, &result, &asked, (self.now, took), false);
        self.tasks.push((done_at, result));
        Task(self.tasks.len() as u64 - 1)
    }

    async fn collect(&mut self, task: Task, wait: bool) -> Option<Result<Reply, ModelError>> {
        let (done_at, result) = self.tasks.get_mut(task.0 as usize)?;
        let done_at = *done_at;
        if done_at > self.now {
            if !wait {
                return None;
            }
            let waited = done_at - self.now;
            self.now = done_at;
            self.observer.log.lock().blocked(waited, 0);
        }
        Some(std::mem::replace(result, Err(ModelError::ended())))
    }

    fn on_event(&mut self, event: &Arc<TimedEvent>) {
        // After a fatal failure, the user does not ask to continue.
        self.over |= matches!(event.event, Event::StrategyFailed(_));
        self.observer.noted(event);
    }

    fn session(&self) -> (&str, Option<&str>) {
        (&self.id, self.observer.agent.as_deref())
    }

    fn now(&self) -> Millis {
        self.now
    }
}
