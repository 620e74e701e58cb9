//! Implements [`Strategy`] with calls to a program.

use ctxbench_core::Model;
use ctxbench_core::model::Prices;
use ctxbench_core::prelude::*;
use ctxbench_core::strategy::PASSING_RETRIES;
use ctxbench_core::usage::Ttl;
use serde_json::{Map, Value, json};

use super::dialect::{self, Dialect, NAMES};
use super::process::Process;
use super::protocol::{
    AdmitAnswer, ContextAnswer, ContextParams, ErrorAnswer, Introduction, Moment, Reason, VERSION,
    class, usage,
};
use super::state::{Exec, ExecState, RequestOptions, message_id};
use super::talk::Broken;

/// Returns the prices in USD per million tokens, or null if they are unknown.
fn prices(model: &Model) -> Value {
    let Prices { input, read, write_5m, write_1h, output, .. } = model.prices;
    let known = json!({
        "input": input,
        "cache_read": read,
        "cache_write_5m": write_5m,
        "cache_write_1h": write_1h,
        "output": output,
    });
    if model.is_priced() { known } else { Value::Null }
}

/// Returns the lifetimes of cache entries after their last use, and the smallest prompt that is cached.
fn cache(model: &Model) -> Value {
    json!({
        "lifetime_5m_ms": model.cache.lifetime(Ttl::FiveMinutes),
        "lifetime_1h_ms": model.cache.lifetime(Ttl::OneHour),
        "min_tokens": model.cache.minimum,
    })
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
        let process = Process::start(&self.command, self.limits.timeout);
        self.process = Some(self.checked(s, "initialize", process).await?);
        let model = s.model.clone();
        let (id, agent) = s.host().session();
        let (id, agent) = (id.to_string(), agent.map(str::to_string));
        let texts: Vec<&str> = s.fixed.blocks().map(|b| &*b.text).collect();
        let tools = s.fixed.tools.as_ref().map(|t| dialect::tools(t.json.get()));
        let introduction = json!({
            "protocol": VERSION,
            "model": {
                "id": model.name,
                "provider": model.provider,
                "window": model.window,
                "max_output": model.max_output,
                "prices": prices(&model),
                "cache": cache(&model),
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
        let Introduction { name, version, dialect, moments, join_results } = answer;
        let known = Dialect::named(&dialect, s.sample_request(), join_results).ok_or_else(|| {
            format!("unknown dialect `{dialect}`; expected one of {}", NAMES.join(", "))
        });
        self.dialect = Some(self.checked(s, "initialize", known).await?);
        self.moments = moments;
        s.note(Event::Program { name, version });
        Ok(())
    }

    async fn end(&mut self, s: &mut Engine) {
        let Some(mut process) = self.process.take() else { return };
        for (task, ..) in self.tasks.drain(..) {
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
        self.checked(s, "context", ready).await?;
        self.start(s).await?;
        self.unsent = self.state.messages().len();
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
            Reason::Idle | Reason::AfterTurn => Phase::PostTurn,
            Reason::Resume => Phase::PreTurn,
            Reason::Turn | Reason::Step | Reason::Overflow => Phase::MidTurn,
        };
        let absorbed = self.absorb(s);
        self.checked(s, "context", absorbed).await?;
        let messages = self.state.messages();
        let added = messages[messages.len() - self.unsent..].to_vec();
        self.unsent = 0;
        let ask = ContextParams {
            reason,
            now: s.now(),
            added,
            new_ids: self.new_messages.iter().map(|m| m.id.clone()).collect(),
            usage: s.last_usage().map(|u| usage(&u)),
            request_tokens: self.request_tokens,
            ..more
        };
        let shown: ContextAnswer = self.ask(s, "context", ask).await?;
        let changed = self.apply(s, shown);
        self.checked(s, "context", changed).await
    }

    /// Sends an event. The answer must be empty, lest a change in it is lost.
    async fn notify(&mut self, s: &mut Engine, method: &'static str, params: Value) {
        let Ok(answer) = self.ask::<Map<String, Value>>(s, method, params).await else { return };
        let empty = answer.keys().next().map_or(Ok(()), |field| {
            let hint = "expected {}; the moment `after_turn` can change the state after a turn";
            Err(format!("unknown field `{field}`; {hint}"))
        });
        // An error has been recorded and ends the next call.
        let _ = self.checked(s, method, empty).await;
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
        self.admitted(s, id, block).await.unwrap_or(raw)
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
        let more = ContextParams { attempt: Some(attempt), ..Default::default() };
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
        if self.is_subscribed(Moment::AfterTurn) {
            let _ = self.consult(s, Reason::AfterTurn, ContextParams::default()).await;
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
        let more = ContextParams { instructions, ..Default::default() };
        let _ = self.consult(s, Reason::Manual, more).await;
        Ok(())
    }

    async fn on_rewind(&mut self, s: &mut Engine, to: MessageId) {
        if self.failed.is_some() {
            return s.truncate_after(to);
        }
        let ready = self.absorb(s).and_then(|()| self.show_state(s));
        if self.checked(s, "rewind", ready).await.is_err() {
            return;
        }
        s.truncate_after(to);
        let unsent = self.state.messages().len() - self.unsent;
        let sent_ids: Vec<Arc<str>> =
            self.state.messages()[..unsent].iter().map(|e| e.id.clone()).collect();
        let left = self.state.retained_in(&s.context.blocks()[self.head..]);
        let still_sent = sent_ids.iter().filter(|id| left.get(id).is_some()).count();
        self.unsent = left.messages().len() - still_sent;
        self.state = left;
        self.known = s.context.blocks().len();
        if self.is_subscribed(Moment::Rewind) {
            let to = self.state.messages().last().map(|e| e.id.clone());
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
        let encoded = dialect.messages(std::slice::from_ref(&block)).ok()?;
        let (message, blocks) = encoded.into_iter().next()?;
        let call = s.context.blocks().iter().rev().find_map(|b| call_of(b, &block));
        let params = json!({"id": message_id(id, 0), "message": message, "call": call});
        let answer: AdmitAnswer = self.ask(s, "admit", params).await.ok()?;
        let admitted = answer.message?;
        let read = self.dialect.as_ref()?.with_text(&blocks, &admitted);
        let draft = read.and_then(|blocks| match &blocks[..] {
            [one] if one.kind == BlockKind::Output => Ok(Draft::clone(one)),
            _ => Err("the message of the answer is not the result of this call".to_string()),
        });
        self.checked(s, "admit", draft).await.ok()
    }
}

/// Returns the call that an output answers, if `block` is it.
fn call_of(block: &Block, output: &Block) -> Option<Value> {
    let (call, of) = (block.call.as_ref()?, output.call.as_ref()?);
    let is_it = block.kind == BlockKind::Call && call.id == of.id;
    let arguments = || match serde_json::from_str(&block.text) {
        Ok(object @ Value::Object(_)) => object,
        // The input of a free-form tool.
        _ => json!({"input": &*block.text}),
    };
    is_it.then(|| json!({"name": &*call.name, "arguments": arguments()}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctxbench_core::block::{CallRef, Role};

    #[test]
    fn arguments_of_a_call_are_an_object() {
        let block = |kind, id: &str, text: &str| {
            let call = CallRef { id: id.into(), name: "patch".into() };
            let draft = Draft { call: Some(Arc::new(call)), ..Draft::text(kind, Role::User, text) };
            draft.build(MessageId(0), vec![])
        };
        let output = block(BlockKind::Output, "c1", "done");
        let of = |id, text| call_of(&block(BlockKind::Call, id, text), &output);
        assert_eq!(of("c1", r#"{"a":1}"#), Some(json!({"name": "patch", "arguments": {"a": 1}})));
        assert_eq!(of("c1", "+ x"), Some(json!({"name": "patch", "arguments": {"input": "+ x"}})));
        assert_eq!(of("c2", "{}"), None);
        assert_eq!(call_of(&output, &output), None);
    }
}
