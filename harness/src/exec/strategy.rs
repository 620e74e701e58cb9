//! A program as a [`Strategy`]: what it is asked at each moment.

use async_trait::async_trait;
use std::sync::Arc;

use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Origin};
use ctxbench_core::engine::{Engine, Event, Incoming, Task};
use ctxbench_core::request::{ModelError, Phase, Reply, Request, StopReason, Ttl, Usage};
use ctxbench_core::session::Millis;
use ctxbench_core::strategy::{Flow, PASSING_RETRIES, Strategy, Unsupported, again_if_passing};
use serde_json::{Map, Value, json};

use super::apply::Made;
use super::dialect::{self, Dialect, NAMES};
use super::limits::Limits;
use super::process::Process;
use super::protocol::{
    Admitted, Ask, Failed, Initialize, Introduction, ModelInfo, Moment, Named, Params, Reason,
    Replied, SessionInfo, Shown, UsageInfo, VERSION, Verdict, class,
};
use super::state::{State, id_of};
use super::talk::Broken;

/// What changes in a request besides what it shows.
#[derive(Default)]
pub(super) struct Wanted {
    /// Places of breakpoints; `None` = the default ones.
    pub(super) breakpoints: Option<Vec<usize>>,
    pub(super) ttl: Option<Ttl>,
    pub(super) params: Params,
}

pub(super) struct Exec {
    command: Vec<String>,
    limits: Limits,
    settings: Map<String, Value>,
    scale: f64,
    pub(super) process: Option<Process>,
    /// Calls made so far.
    pub(super) asked: u64,
    /// Why nothing more is asked of it.
    pub(super) failed: Option<String>,
    /// Why it lets this turn fail.
    pub(super) given_up: Option<String>,
    pub(super) dialect: Option<Dialect>,
    moments: Vec<Moment>,
    /// Blocks that always stand before the conversation.
    pub(super) head: usize,
    /// What the program knows.
    pub(super) state: State,
    /// Of the context, this many blocks are known to the program or will be.
    pub(super) known: usize,
    /// The last messages of the state that the program has not been told of.
    untold: usize,
    /// The context shows the state and nothing else.
    pub(super) shows_state: bool,
    /// New texts of the last answer.
    pub(super) made: Vec<Made>,
    /// A turn has begun, or the program has.
    next: Reason,
    /// Prompt of the last normal request, tokens.
    request_tokens: Option<u64>,
    last: (UsageInfo, StopReason),
    pub(super) wanted: Wanted,
    /// When the present answer is asked for.
    pub(super) phase: Phase,
    /// Requests that the program has in the background.
    pub(super) tasks: Vec<(Task, Request)>,
}

impl Exec {
    pub(super) fn new(
        command: Vec<String>,
        limits: Limits,
        settings: Map<String, Value>,
        scale: f64,
    ) -> Exec {
        Exec {
            command,
            limits,
            settings,
            scale,
            process: None,
            asked: 0,
            failed: None,
            given_up: None,
            dialect: None,
            moments: vec![],
            head: 0,
            state: State::default(),
            known: 0,
            untold: 0,
            shows_state: true,
            made: vec![],
            next: Reason::Turn,
            request_tokens: None,
            last: (UsageInfo::from(Usage::default()), StopReason::default()),
            wanted: Wanted::default(),
            phase: Phase::MidTurn,
            tasks: vec![],
        }
    }

    fn hears(&self, moment: Moment) -> bool {
        self.process.is_some() && self.moments.contains(&moment)
    }

    /// How a turn goes on that cannot.
    fn down(&self) -> Flow {
        Flow::FailTurn(self.failed.clone().unwrap_or_else(|| "the program failed".into()))
    }

    /// Starts the program and introduces the session.
    async fn start(&mut self, s: &mut Engine) -> Result<(), Broken> {
        self.end(s).await;
        match Process::start(&self.command, self.limits.clone()) {
            Ok(process) => self.process = Some(process),
            Err(why) => return Err(self.broken(s, "initialize", why).await),
        }
        let model = s.model.clone();
        let (id, agent) = s.host().session();
        let (id, agent) = (id.to_string(), agent.map(str::to_string));
        let head = &s.context.blocks()[..self.head];
        let texts: Vec<&str> = head.iter().map(|b| &*b.text).collect();
        let tools = s.fixed.tools.as_ref().map(|t| dialect::tools(t.json.get()));
        let introduction = Initialize {
            protocol: VERSION,
            model: ModelInfo {
                id: &model.name,
                provider: model.provider.word(),
                window: model.window,
                max_output: model.max_output,
            },
            scale: self.scale,
            settings: self.settings.clone(),
            session: SessionInfo {
                id: &id,
                agent: agent.as_deref(),
                tools: tools.unwrap_or_default(),
                system: texts.join("\n\n"),
            },
            dialects: NAMES.to_vec(),
        };
        let answer = self.ask::<Introduction>(s, "initialize", introduction).await?;
        let Introduction { name, version, dialect, moments } = answer;
        let Some(known) = Dialect::named(&dialect, s.sample_request()) else {
            let why = format!("`{dialect}` is no dialect; offered are {}", NAMES.join(", "));
            return Err(self.broken(s, "initialize", why).await);
        };
        self.dialect = Some(known);
        self.moments = moments;
        s.note(Event::Program { name, version });
        Ok(())
    }

    /// Ends the program, if one runs.
    async fn end(&mut self, s: &mut Engine) {
        let Some(mut process) = self.process.take() else { return };
        for (task, _) in self.tasks.drain(..) {
            s.cancel(task);
        }
        process.shut_down(self.asked + 1).await;
    }

    /// Takes in what has entered the context since the program was last asked.
    fn absorb(&mut self, s: &Engine) -> Result<(), String> {
        let new = &s.context.blocks()[self.known..];
        if let (Some(dialect), false) = (&self.dialect, new.is_empty()) {
            self.untold += self.state.absorb(dialect, new)?;
            self.known = s.context.blocks().len();
        }
        Ok(())
    }

    /// Shows the state and nothing else.
    pub(super) fn show_state(&mut self, s: &mut Engine) -> Result<(), String> {
        if !self.shows_state {
            let head = s.context.blocks()[..self.head].to_vec();
            let blocks = head.into_iter().chain(self.state.blocks()).collect();
            s.context.set(blocks).map_err(|e| e.to_string())?;
            self.known = s.context.blocks().len();
            self.shows_state = true;
        }
        Ok(())
    }

    /// The program is started anew and told of all that is left.
    async fn start_again(&mut self, s: &mut Engine, why: Reason) -> Result<(), Broken> {
        let ready = self.absorb(s).and_then(|()| self.show_state(s));
        if let Err(why) = ready {
            return Err(self.broken(s, "context", why).await);
        }
        self.start(s).await?;
        self.untold = self.state.entries().len();
        self.made.clear();
        self.next = why;
        Ok(())
    }

    /// Asks what is to be shown. Returns whether what is shown has become less or other.
    async fn consult(
        &mut self,
        s: &mut Engine,
        reason: Reason,
        more: Ask<'_>,
    ) -> Result<bool, Broken> {
        self.phase = match reason {
            Reason::Manual => Phase::StandaloneTurn,
            Reason::Idle => Phase::PostTurn,
            Reason::Resume => Phase::PreTurn,
            Reason::Turn | Reason::Step | Reason::Overflow => Phase::MidTurn,
        };
        if let Err(why) = self.absorb(s) {
            return Err(self.broken(s, "context", why).await);
        }
        let entries = self.state.entries();
        let added: Vec<Named> =
            entries[entries.len() - self.untold..].iter().map(super::state::Entry::named).collect();
        self.untold = 0;
        let ask = Ask {
            reason,
            now: s.now(),
            added,
            new_ids: self.made.iter().map(|m| m.id.clone()).collect(),
            usage: s.last_usage.map(UsageInfo::from),
            request_tokens: self.request_tokens,
            ..more
        };
        let shown: Shown = self.ask(s, "context", ask).await?;
        match self.apply(s, shown) {
            Ok(changed) => Ok(changed),
            Err(why) => Err(self.broken(s, "context", why).await),
        }
    }

    /// Without an answer that matters.
    async fn tell(&mut self, s: &mut Engine, method: &'static str, params: Value) {
        // What fails has been noted, and the next question finds out.
        let _ = self.ask::<Map<String, Value>>(s, method, params).await;
    }
}

/// What a question says besides what all say.
fn plain() -> Ask<'static> {
    Ask {
        reason: Reason::Step,
        now: 0,
        added: vec![],
        new_ids: vec![],
        usage: None,
        request_tokens: None,
        instructions: None,
        idle_ms: None,
        attempt: None,
    }
}

#[async_trait]
impl Strategy for Exec {
    async fn on_start(&mut self, s: &mut Engine) {
        s.show_fixed();
        self.head = s.context.blocks().len();
        self.known = self.head;
        self.state = State::default();
        (self.untold, self.shows_state, self.next) = (0, true, Reason::Turn);
        self.made.clear();
        self.wanted = Wanted::default();
        let _ = self.start(s).await;
    }

    async fn on_restart(&mut self, s: &mut Engine) {
        if self.failed.is_none() {
            let _ = self.start_again(s, Reason::Resume).await;
        }
    }

    async fn on_user(&mut self, _s: &mut Engine, _msg: &Incoming) -> Flow {
        if self.failed.is_some() {
            return self.down();
        }
        if self.next != Reason::Resume {
            self.next = Reason::Turn;
        }
        Flow::Proceed
    }

    async fn on_result(&mut self, s: &mut Engine, id: MessageId, raw: Draft) -> Draft {
        if raw.kind != BlockKind::Output || !self.hears(Moment::Admit) {
            return raw;
        }
        let block = raw.clone().build(id, vec![Origin { message: id, part: 0 }]);
        match self.admitted(s, id, block).await {
            Some(text) => text,
            None => raw,
        }
    }

    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        if self.failed.is_some() {
            return self.down();
        }
        let reason = std::mem::replace(&mut self.next, Reason::Step);
        match self.consult(s, reason, plain()).await {
            Ok(_) => self.given_up.take().map_or(Flow::Proceed, Flow::FailTurn),
            Err(Broken) => self.down(),
        }
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        let Wanted { breakpoints, ttl, params } = &self.wanted;
        if let Some(places) = breakpoints {
            r.breakpoints.clone_from(places);
        }
        r.ttl = ttl.unwrap_or(r.ttl);
        r.max_tokens = params.max_tokens.or(r.max_tokens);
        if let Some(effort) = &params.effort {
            r.params.insert("effort".into(), effort.clone());
        }
        r
    }

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> Flow {
        self.last = (reply.usage.into(), reply.stop);
        self.request_tokens = Some(reply.usage.prompt());
        if self.hears(Moment::Reply) {
            let params = json!(Replied { usage: self.last.0, stop_reason: self.last.1 });
            self.tell(s, "reply", params).await;
        }
        if self.failed.is_some() { self.down() } else { Flow::Proceed }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if e.is_overflow() {
            self.request_tokens = Some(s.billed_tokens());
        }
        if self.hears(Moment::Error) {
            let params =
                Failed { class: class(e.kind), status: e.status, message: &e.message, attempt };
            match self.ask::<Verdict>(s, "error", params).await {
                Err(Broken) => return self.down(),
                Ok(Verdict { fail: Some(why), .. }) => return Flow::FailTurn(why),
                Ok(Verdict { again: true, .. }) => return Flow::Again,
                Ok(_) => {}
            }
        }
        if !e.is_overflow() {
            return again_if_passing(e, attempt, PASSING_RETRIES);
        }
        let more = Ask { attempt: Some(attempt), ..plain() };
        match self.consult(s, Reason::Overflow, more).await {
            Ok(true) => Flow::Again,
            Ok(false) => Flow::FailTurn(self.given_up.take().unwrap_or_else(|| e.to_string())),
            Err(Broken) => self.down(),
        }
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        if self.hears(Moment::TurnEnd) {
            let params = json!(Replied { usage: self.last.0, stop_reason: self.last.1 });
            self.tell(s, "turn_end", params).await;
        }
    }

    async fn on_idle(&mut self, s: &mut Engine, gap_ms: Millis) {
        if self.hears(Moment::Idle) {
            let more = Ask { idle_ms: Some(gap_ms), ..plain() };
            let _ = self.consult(s, Reason::Idle, more).await;
        }
    }

    async fn compact(
        &mut self,
        s: &mut Engine,
        instructions: Option<&str>,
    ) -> Result<(), Unsupported> {
        if !self.hears(Moment::Manual) {
            return Err(Unsupported);
        }
        let _ = self.consult(s, Reason::Manual, Ask { instructions, ..plain() }).await;
        Ok(())
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        if self.failed.is_some() {
            return s.truncate_after(to);
        }
        let ready = self.absorb(s).and_then(|()| self.show_state(s));
        if let Err(why) = ready {
            self.broken(s, "rewind", why).await;
            return;
        }
        s.truncate_after(to);
        let untold = self.state.entries().len() - self.untold;
        let told: Vec<Arc<str>> =
            self.state.entries()[..untold].iter().map(|e| e.id.clone()).collect();
        let left = self.state.standing_in(&s.context.blocks()[self.head..]);
        let still = told.iter().filter(|id| left.get(id).is_some()).count();
        self.untold = left.entries().len() - still;
        self.state = left;
        self.known = s.context.blocks().len();
        if self.hears(Moment::Rewind) {
            let to = self.state.entries().last().map(|e| e.id.clone());
            self.tell(s, "rewind", json!({"to": to})).await;
        } else {
            let _ = self.start_again(s, Reason::Resume).await;
        }
    }

    async fn on_end(&mut self, s: &mut Engine) {
        self.end(s).await;
    }
}

impl Exec {
    /// A tool result as the program lets it in; `None` = as it is, or the program failed.
    async fn admitted(
        &mut self,
        s: &mut Engine,
        id: MessageId,
        block: Arc<Block>,
    ) -> Option<Draft> {
        let dialect = self.dialect.as_ref()?;
        let message = dialect.messages(std::slice::from_ref(&block)).ok()?.into_iter().next()?;
        let params = json!({"id": id_of(id, 0), "message": message.json});
        let answer: Admitted = self.ask(s, "admit", params).await.ok()?;
        let admitted = answer.message?;
        let dialect = self.dialect.as_ref()?;
        match dialect.with_text(&message, &admitted) {
            Ok(blocks) => match &blocks[..] {
                [one] if one.kind == BlockKind::Output => Some(Draft::clone(one)),
                _ => {
                    let why = "the message in its answer is not the result of the same call";
                    self.broken(s, "admit", why.to_string()).await;
                    None
                }
            },
            Err(why) => {
                self.broken(s, "admit", why).await;
                None
            }
        }
    }
}
