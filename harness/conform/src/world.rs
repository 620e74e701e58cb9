//! Simulated environment of a strategy with a fixed list of events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::RequestView;
use crate::case::{
    Case, CaseCall, CaseEvent, CaseReply, CaseUsage, ContentForm, RefusedRequest, ReplyBlock,
    UserPart,
};
use ctxbench_core::host::{CallerAction, Host};
use ctxbench_core::prelude::*;

/// Record of a run, kept outside the world so that it can be read afterwards.
#[derive(Debug, Default)]
pub(super) struct SentRequests {
    pub(super) requests: Vec<Request>,
    /// First request or event that did not match the case.
    pub(super) fault: Option<String>,
    /// Number of unused events.
    pub(super) left: usize,
    /// `path` argument of each call that ran. Cases name calls by it.
    pub(super) tools_run: Vec<String>,
    /// Errors of requests, in order.
    pub(super) errors: Vec<ModelError>,
    /// The newest message of the model, even if the history drops it: the last reply, or a summary
    /// that the provider made in its own message.
    pub(super) last: Option<Vec<Part>>,
    /// Outcome of each turn, in order: `done` or `error`.
    pub(super) turns: Vec<&'static str>,
}

pub(super) struct ScriptWorld {
    events: VecDeque<CaseEvent>,
    script: Arc<Mutex<SentRequests>>,
    calls: Vec<CaseCall>,
    users: usize,
    cache_beside_input: bool,
    caller_acts: bool,
}

impl ScriptWorld {
    pub(super) fn new(case: &Case, view: &RequestView) -> (Self, Arc<Mutex<SentRequests>>) {
        let script = Arc::new(Mutex::new(SentRequests {
            left: case.events.len(),
            ..SentRequests::default()
        }));
        let world = ScriptWorld {
            events: case.events.clone().into(),
            script: script.clone(),
            calls: Vec::new(),
            users: 0,
            cache_beside_input: view.cache_beside_input,
            caller_acts: view.caller_acts,
        };
        (world, script)
    }

    fn with<T>(&self, f: impl FnOnce(&mut SentRequests) -> T) -> Option<T> {
        self.script.lock().ok().map(|mut s| f(&mut s))
    }

    fn fault(&self, what: String) {
        self.with(|s| s.fault.get_or_insert(what).len());
    }

    fn pop(&mut self) -> Option<CaseEvent> {
        let e = self.events.pop_front();
        let left = self.events.len();
        self.with(|s| s.left = left);
        e
    }

    fn incoming(&mut self, text: Option<String>, parts: Vec<UserPart>) -> Incoming {
        self.users += 1;
        let part = |p: UserPart| match p.url {
            None => Part::Text(p.text.unwrap_or_default().into()),
            Some(url) => Part::Image(Media {
                media_type: p.media_type.unwrap_or_else(|| "image/png".into()),
                url,
                name: p.name,
            }),
        };
        let text = text.map(|t| Part::Text(t.into()));
        let parts = text.into_iter().chain(parts.into_iter().map(part)).collect();
        Incoming { key: format!("u{}", self.users).into(), parts }
    }

    fn reply(&self, r: &CaseReply) -> Reply {
        let reasoning = |text: &str, encrypted: Option<&str>| Part::Reasoning {
            text: text.into(),
            encrypted: encrypted.map(Arc::from),
        };
        let call = |id: &str, name: &str, arguments: String| {
            Part::Call(ToolCall::new(id, name, arguments))
        };
        let block = |b: &ReplyBlock| match b {
            ReplyBlock::Text { text } => Part::Text(text.as_str().into()),
            ReplyBlock::Compaction { content } => {
                Part::Compaction(content.as_deref().map(Arc::from))
            }
            ReplyBlock::Thinking { thinking, .. } => reasoning(thinking, None),
            ReplyBlock::RedactedThinking { data } => reasoning("", Some(data)),
            ReplyBlock::ToolUse { id, name, input } => {
                call(id, name, serde_json::Value::Object(input.clone()).to_string())
            }
        };
        let mut parts = Vec::new();
        parts.extend(r.reasoning.iter().map(|r| reasoning(&r.text, r.encrypted.as_deref())));
        parts.extend(r.opaque.iter().map(|c| Part::Compaction(Some(c.as_str().into()))));
        parts.extend(r.blocks.iter().map(block));
        parts.extend(r.text.iter().map(|t| Part::Text(t.as_str().into())));
        parts.extend(r.calls.iter().map(|c| call(&c.id, &c.name, c.arguments.clone())));
        let stop = match r.stop_reason.as_deref() {
            Some("refusal") => StopReason::Refusal,
            Some("max_tokens" | "length") => StopReason::MaxTokens,
            Some("compaction") => StopReason::Compaction,
            Some("pause_turn") => StopReason::PauseTurn,
            Some("tool_use") => StopReason::ToolUse,
            Some("stop_sequence") => StopReason::StopSequence,
            Some("model_context_window_exceeded") => StopReason::WindowExceeded,
            // Otherwise calls run regardless of the stop reason.
            Some(_) if self.caller_acts => StopReason::EndTurn,
            _ if !r.calls.is_empty() => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        let usage = r.usage.as_ref().map(|u| self.usage(u)).unwrap_or_default();
        let id = r.id.as_deref().map(Arc::from);
        Reply { id, parts, usage, billed: usage, stop, ..Reply::default() }
    }

    fn usage(&self, u: &CaseUsage) -> Usage {
        let beside = |n: Option<u64>| n.filter(|_| self.cache_beside_input).unwrap_or(0);
        Usage {
            input: u.input_tokens.unwrap_or(0),
            output: u.output_tokens.unwrap_or(0),
            cache_read: beside(u.cache_read_input_tokens),
            cache_write: beside(u.cache_creation_input_tokens),
            reported_total: u.total_tokens,
            ..Usage::default()
        }
    }
}

fn name(event: &CaseEvent) -> String {
    serde_json::json!(event)["type"].as_str().unwrap_or_default().to_string()
}

fn model_error(e: &RefusedRequest) -> ModelError {
    let status = e.status.unwrap_or(0);
    let kind = match e.code.as_deref() {
        Some("context_length_exceeded") => ErrorKind::Overflow,
        Some("stream_ended_early") => ErrorKind::Stream,
        _ if status == 413 => ErrorKind::Overflow,
        _ if status == 429 => ErrorKind::RateLimited,
        _ if (400..500).contains(&status) => ErrorKind::Invalid,
        _ => ErrorKind::Server,
    };
    let message = e.message.clone().unwrap_or_default();
    ModelError { kind, status, code: e.code.clone(), message }
}

#[async_trait]
impl Host for ScriptWorld {
    async fn next(&mut self) -> Option<Action> {
        if self.with(|s| s.fault.is_some()) != Some(false) {
            return None;
        }
        match self.pop()? {
            CaseEvent::User { text, parts } => {
                self.with(|s| s.turns.push("done"));
                Some(Action::User(self.incoming(text, parts)))
            }
            CaseEvent::Compact { instructions } => Some(Action::Compact { instructions }),
            CaseEvent::Restart {} => Some(Action::Restart),
            CaseEvent::Kill {} => Some(Action::Idle { ms: 0 }),
            other => {
                let name = name(&other);
                self.fault(format!(
                    "event `{name}` is left over: no request was made that it answers"
                ));
                None
            }
        }
    }

    async fn send(&mut self, request: &Request) -> Result<Reply, ModelError> {
        self.with(|s| s.requests.push(request.clone()));
        let summary = request.purpose == Purpose::Summary;
        let on = if summary { "summary" } else { "sample" };
        let Some(front) = self.events.front() else {
            self.fault(format!("a {on} request got no answer: the events have run out"));
            return Err(ModelError::ended());
        };
        let reply = match front {
            CaseEvent::Error(e) if (e.on == Purpose::Summary) == summary => Err(model_error(e)),
            CaseEvent::SummaryReply(r) if summary => Ok(r.clone()),
            CaseEvent::Reply(r) if !summary => Ok(r.clone()),
            other => {
                self.fault(format!("a {on} request met the event `{}`", name(other)));
                return Err(ModelError::ended());
            }
        };
        self.pop();
        let given = match reply {
            Ok(given) => given,
            Err(e) => {
                self.with(|s| s.errors.push(e.clone()));
                return Err(e);
            }
        };
        let reply = self.reply(&given);
        if !summary {
            self.calls = given.calls;
        }
        if !summary || reply.compaction().is_some_and(|c| !c.is_empty()) {
            self.with(|s| s.last = Some(reply.parts.clone()));
        }
        Ok(reply)
    }

    async fn caller(&mut self) -> Option<CallerAction> {
        match self.events.front()? {
            CaseEvent::CallerAppend { form } => {
                let plain = *form == ContentForm::Blocks;
                self.pop();
                Some(CallerAction::Append { plain })
            }
            CaseEvent::Compact { instructions } if self.caller_acts => {
                let instructions = instructions.as_deref().map(Arc::from);
                self.pop();
                Some(CallerAction::Compact { instructions })
            }
            _ => None,
        }
    }

    async fn run(&mut self, calls: &[ToolCall]) -> Vec<Incoming> {
        let mut out = Vec::new();
        for c in calls {
            let path = text_argument(&c.arguments, &["path"]);
            self.with(|s| s.tools_run.push(path.unwrap_or_default()));
            let given = self.calls.iter().find(|g| *g.id == *c.id);
            out.push(match given.and_then(|g| Some((g.is_error, g.output.clone()?))) {
                Some((is_error, output)) => Incoming::result(c, is_error, output),
                None => Incoming { key: c.id.clone(), parts: vec![] },
            });
        }
        out
    }

    fn turn_failed(&mut self, _reason: &str) {
        self.with(|s| s.turns.last_mut().map(|t| *t = "error"));
    }

    async fn spawn(&mut self, _request: &Request) -> Task {
        self.fault("a request outside the conversation, which no recorded program makes".into());
        Task(0)
    }

    async fn collect(&mut self, _task: Task, _wait: bool) -> Option<Result<Reply, ModelError>> {
        None
    }

    fn now(&self) -> Millis {
        0
    }
}
