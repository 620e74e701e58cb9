//! Implements [`Strategy`] with calls to a program.

use async_trait::async_trait;
use std::sync::Arc;

use ctxbench_core::Millis;
use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Origin};
use ctxbench_core::engine::Engine;
use ctxbench_core::host::{Event, Incoming, Task};
use ctxbench_core::request::{ModelError, Phase, Reply, Request, StopReason};
use ctxbench_core::strategy::{
    Flow, PASSING_RETRIES, ReplyFlow, Strategy, Unsupported, again_if_passing,
};
use ctxbench_core::usage::{Ttl, Usage};
use serde_json::{Map, Value, json};

use super::apply::NewMessage;
use super::dialect::{self, Dialect, NAMES};
use super::limits::ExecLimits;
use super::process::Process;
use super::protocol::{
    AdmitAnswer, ContextAnswer, ContextParams, ErrorAnswer, Introduction, MessageWithId, Moment,
    Reason, RequestParams, VERSION, class, usage,
};
use super::state::{ExecState, message_id};
use super::talk::Broken;

#[derive(Default)]
pub(super) struct RequestOptions {
    /// Places of breakpoints; `None` = the default ones.
    pub(super) breakpoints: Option<Vec<usize>>,
    pub(super) ttl: Option<Ttl>,
    pub(super) params: RequestParams,
}

#[derive(Default)]
pub(super) struct Exec {
    pub(super) command: Vec<String>,
    pub(super) limits: ExecLimits,
    pub(super) settings: Map<String, Value>,
    pub(super) scale: f64,
    pub(super) process: Option<Process>,
    pub(super) asked: u64,
    /// Error after which the program is not called again.
    pub(super) failed: Option<String>,
    /// Error with which the program fails this turn.
    pub(super) given_up: Option<String>,
    pub(super) dialect: Option<Dialect>,
    pub(super) moments: Vec<Moment>,
    /// Number of blocks before the conversation.
    pub(super) head: usize,
    /// The conversation as the program knows it.
    pub(super) state: ExecState,
    /// Number of blocks of the context that are in `state`.
    pub(super) known: usize,
    /// Number of messages at the end of the state that were not sent to the program.
    pub(super) unsent: usize,
    /// Whether the context shows exactly the state.
    pub(super) shows_state: bool,
    pub(super) new_messages: Vec<NewMessage>,
    pub(super) next: Reason,
    /// Prompt of the last normal request, tokens.
    pub(super) request_tokens: Option<u64>,
    /// Parameters of `reply` and `turn_end`.
    pub(super) last: Value,
    pub(super) wanted: RequestOptions,
    /// Phase of the session in which the program is asked.
    pub(super) phase: Phase,
    pub(super) tasks: Vec<(Task, Request)>,
}

impl Exec {
    fn is_subscribed(&self, moment: Moment) -> bool {
        self.process.is_some() && self.moments.contains(&moment)
    }

    fn down(&self) -> Flow {
        Flow::FailTurn(self.reason())
    }

    fn reason(&self) -> String {
        self.failed.clone().unwrap_or_else(|| "the program failed".into())
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
        let introduction = json!({
            "protocol": VERSION,
            "model": {
                "id": model.name,
                "provider": model.provider.word(),
                "window": model.window,
                "max_output": model.max_output,
            },
            "scale": self.scale,
            "settings": self.settings,
            "session": {
                "id": id,
                "agent": agent,
                "tools": tools.unwrap_or_default(),
                "system": texts.join("\n\n"),
            },
            "dialects": NAMES,
        });
        let answer = self.ask::<Introduction>(s, "initialize", introduction).await?;
        let Introduction { name, version, dialect, moments } = answer;
        let Some(known) = Dialect::named(&dialect, s.sample_request()) else {
            let why = format!("unknown dialect `{dialect}`; expected one of {}", NAMES.join(", "));
            return Err(self.broken(s, "initialize", why).await);
        };
        self.dialect = Some(known);
        self.moments = moments;
        s.note(Event::Program { name, version });
        Ok(())
    }

    async fn end(&mut self, s: &mut Engine) {
        let Some(mut process) = self.process.take() else { return };
        for (task, _) in self.tasks.drain(..) {
            s.cancel(task);
        }
        process.shut_down(self.asked + 1).await;
    }

    /// Adds the new blocks of the context to the state.
    fn absorb(&mut self, s: &Engine) -> Result<(), String> {
        let new = &s.context.blocks()[self.known..];
        if let (Some(dialect), false) = (&self.dialect, new.is_empty()) {
            self.unsent += self.state.absorb(dialect, new)?;
            self.known = s.context.blocks().len();
        }
        Ok(())
    }

    pub(super) fn show_state(&mut self, s: &mut Engine) -> Result<(), String> {
        if !self.shows_state {
            let head = s.context.blocks()[..self.head].to_vec();
            let blocks = head.into_iter().chain(self.state.blocks()).collect();
            s.set_view(blocks).map_err(|e| e.to_string())?;
            self.known = s.context.blocks().len();
            self.shows_state = true;
        }
        Ok(())
    }

    /// Restarts the program and sends it the whole state.
    async fn start_again(&mut self, s: &mut Engine, why: Reason) -> Result<(), Broken> {
        let ready = self.absorb(s).and_then(|()| self.show_state(s));
        if let Err(why) = ready {
            return Err(self.broken(s, "context", why).await);
        }
        self.start(s).await?;
        self.unsent = self.state.entries().len();
        self.new_messages.clear();
        self.next = why;
        Ok(())
    }

    /// Calls `context`. Returns whether the context lost or changed blocks.
    async fn consult(
        &mut self,
        s: &mut Engine,
        reason: Reason,
        more: ContextParams<'_>,
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
        let added: Vec<MessageWithId> = entries[entries.len() - self.unsent..]
            .iter()
            .map(super::state::StateEntry::with_id)
            .collect();
        self.unsent = 0;
        let ask = ContextParams {
            reason,
            now: s.now(),
            added,
            new_ids: self.new_messages.iter().map(|m| m.entry.id.clone()).collect(),
            usage: s.last_usage().map(|u| usage(&u)),
            request_tokens: self.request_tokens,
            ..more
        };
        let shown: ContextAnswer = self.ask(s, "context", ask).await?;
        match self.apply(s, shown) {
            Ok(changed) => Ok(changed),
            Err(why) => Err(self.broken(s, "context", why).await),
        }
    }

    /// Sends an event and ignores the answer.
    async fn notify(&mut self, s: &mut Engine, method: &'static str, params: Value) {
        // An error has been recorded and ends the next call.
        let _ = self.ask::<Map<String, Value>>(s, method, params).await;
    }
}

#[async_trait]
impl Strategy for Exec {
    async fn on_start(&mut self, s: &mut Engine) {
        s.show_fixed();
        self.head = s.context.blocks().len();
        self.known = self.head;
        self.state = ExecState::default();
        (self.unsent, self.shows_state, self.next) = (0, true, Reason::Turn);
        self.new_messages.clear();
        self.wanted = RequestOptions::default();
        let stop = StopReason::default();
        self.last = json!({"usage": usage(&Usage::default()), "stop_reason": stop});
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
        if raw.kind != BlockKind::Output || !self.is_subscribed(Moment::Admit) {
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
        match self.consult(s, reason, ContextParams::default()).await {
            Ok(_) => self.given_up.take().map_or(Flow::Proceed, Flow::FailTurn),
            Err(Broken) => self.down(),
        }
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        let RequestOptions { breakpoints, ttl, params } = &self.wanted;
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

    async fn on_reply(&mut self, s: &mut Engine, reply: &Reply) -> ReplyFlow {
        self.last = json!({"usage": usage(&reply.usage), "stop_reason": reply.stop});
        self.request_tokens = Some(reply.usage.prompt());
        if self.is_subscribed(Moment::Reply) {
            self.notify(s, "reply", self.last.clone()).await;
        }
        match self.failed {
            Some(_) => ReplyFlow::FailTurn(self.reason()),
            None => ReplyFlow::Proceed,
        }
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        if e.is_overflow() {
            self.request_tokens = Some(s.billed_tokens());
        }
        if self.is_subscribed(Moment::Error) {
            let (class, status) = (class(e.kind), e.status);
            let params = json!({
                "class": class, "status": status, "message": e.message, "attempt": attempt,
            });
            match self.ask::<ErrorAnswer>(s, "error", params).await {
                Err(Broken) => return self.down(),
                Ok(ErrorAnswer { fail: Some(why), .. }) => return Flow::FailTurn(why),
                Ok(ErrorAnswer { again: true, .. }) => return Flow::Again,
                Ok(_) => {}
            }
        }
        if !e.is_overflow() {
            return again_if_passing(e, attempt, PASSING_RETRIES);
        }
        let more = ContextParams { attempt: Some(attempt), ..ContextParams::default() };
        match self.consult(s, Reason::Overflow, more).await {
            Ok(true) => Flow::Again,
            Ok(false) => Flow::FailTurn(self.given_up.take().unwrap_or_else(|| e.to_string())),
            Err(Broken) => self.down(),
        }
    }

    async fn after_turn(&mut self, s: &mut Engine) {
        if self.is_subscribed(Moment::TurnEnd) {
            self.notify(s, "turn_end", self.last.clone()).await;
        }
    }

    async fn on_idle(&mut self, s: &mut Engine, gap_ms: Millis) {
        if self.is_subscribed(Moment::Idle) {
            let more = ContextParams { idle_ms: Some(gap_ms), ..ContextParams::default() };
            let _ = self.consult(s, Reason::Idle, more).await;
        }
    }

    async fn compact(
        &mut self,
        s: &mut Engine,
        instructions: Option<&str>,
    ) -> Result<(), Unsupported> {
        if !self.is_subscribed(Moment::Manual) {
            return Err(Unsupported);
        }
        let _ = self
            .consult(s, Reason::Manual, ContextParams { instructions, ..ContextParams::default() })
            .await;
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
        let unsent = self.state.entries().len() - self.unsent;
        let sent_ids: Vec<Arc<str>> =
            self.state.entries()[..unsent].iter().map(|e| e.id.clone()).collect();
        let left = self.state.retained_in(&s.context.blocks()[self.head..]);
        let still_sent = sent_ids.iter().filter(|id| left.get(id).is_some()).count();
        self.unsent = left.entries().len() - still_sent;
        self.state = left;
        self.known = s.context.blocks().len();
        if self.is_subscribed(Moment::Rewind) {
            let to = self.state.entries().last().map(|e| e.id.clone());
            self.notify(s, "rewind", json!({"to": to})).await;
        } else {
            let _ = self.start_again(s, Reason::Resume).await;
        }
    }

    async fn on_end(&mut self, s: &mut Engine) {
        self.end(s).await;
    }
}

impl Exec {
    /// Returns the tool result as the program admits it. `None` leaves it unchanged.
    async fn admitted(
        &mut self,
        s: &mut Engine,
        id: MessageId,
        block: Arc<Block>,
    ) -> Option<Draft> {
        let dialect = self.dialect.as_ref()?;
        let message = dialect.messages(std::slice::from_ref(&block)).ok()?.into_iter().next()?;
        let params = json!({"id": message_id(id, 0), "message": message.json});
        let answer: AdmitAnswer = self.ask(s, "admit", params).await.ok()?;
        let admitted = answer.message?;
        let dialect = self.dialect.as_ref()?;
        match dialect.with_text(&message, &admitted) {
            Ok(blocks) => match &blocks[..] {
                [one] if one.kind == BlockKind::Output => Some(Draft::clone(one)),
                _ => {
                    let why = "the message of the answer is not the result of this call";
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
