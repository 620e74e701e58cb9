//! Simulated environment of a strategy with a fixed list of events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctxbench_core::block::Media;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::engine::{Action, CallerAction, Host, Incoming, Task};
use ctxbench_core::request::{ErrorKind, ModelError, Purpose, Reply, Request, StopReason, Usage};
use ctxbench_core::session::Millis;
use ctxbench_strategies::conform::SetUp;
use ctxbench_strategies::conform::text::expand;
use serde_json::Value;

use super::case::{Case, CaseError};

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
    events: VecDeque<Value>,
    script: Arc<Mutex<SentRequests>>,
    calls: Vec<Value>,
    users: usize,
    cache_beside_input: bool,
    caller_acts: bool,
}

impl ScriptWorld {
    pub(super) fn new(case: &Case, set_up: &SetUp) -> (Self, Arc<Mutex<SentRequests>>) {
        let script = Arc::new(Mutex::new(SentRequests {
            left: case.events.len(),
            ..SentRequests::default()
        }));
        let world = ScriptWorld {
            events: case.events.clone().into(),
            script: script.clone(),
            calls: Vec::new(),
            users: 0,
            cache_beside_input: set_up.cache_beside_input,
            caller_acts: set_up.caller_acts,
        };
        (world, script)
    }

    fn with<T>(&self, f: impl FnOnce(&mut SentRequests) -> T) -> Option<T> {
        self.script.lock().ok().map(|mut s| f(&mut s))
    }

    fn fault(&self, what: String) {
        self.with(|s| s.fault.get_or_insert(what).len());
    }

    fn pop(&mut self) -> Option<Value> {
        let e = self.events.pop_front();
        let left = self.events.len();
        self.with(|s| s.left = left);
        e
    }

    fn incoming(&mut self, e: &Value) -> Result<Incoming, CaseError> {
        self.users += 1;
        let mut parts = Vec::new();
        match e.get("parts").and_then(Value::as_array) {
            None => parts.push(Part::Text(expand(&e["text"])?.into())),
            Some(list) => {
                for p in list {
                    parts.push(match p.get("url") {
                        None => Part::Text(expand(&p["text"])?.into()),
                        Some(url) => Part::Image(Media {
                            media_type: ["media", "mime", "media_type"]
                                .iter()
                                .find_map(|k| p.get(*k)?.as_str())
                                .unwrap_or("image/png")
                                .to_string(),
                            url: expand(url)?,
                            name: ["filename", "name"]
                                .iter()
                                .find_map(|k| p.get(*k)?.as_str())
                                .map(str::to_string),
                        }),
                    });
                }
            }
        }
        Ok(Incoming { key: format!("u{}", self.users).into(), parts })
    }

    fn reply(&mut self, e: &Value) -> Result<Reply, CaseError> {
        let mut parts = Vec::new();
        if let Some(r) = e.get("reasoning") {
            let text = r.get("text").map(expand).transpose()?.unwrap_or_default();
            let encrypted = r.get("encrypted").map(expand).transpose()?.map(Arc::from);
            parts.push(Part::Reasoning { text: text.into(), encrypted });
        }
        for c in [e.get("compaction"), e.get("opaque")].into_iter().flatten() {
            let text = if c.is_null() { None } else { Some(expand(c)?.into()) };
            parts.push(Part::Compaction(text));
        }
        for b in e.get("blocks").and_then(Value::as_array).into_iter().flatten() {
            match b["type"].as_str() {
                Some("text") => parts.push(Part::Text(expand(&b["text"])?.into())),
                Some("compaction") => {
                    let content =
                        b.get("content").filter(|c| !c.is_null()).map(expand).transpose()?;
                    parts.push(Part::Compaction(content.map(Arc::from)));
                }
                Some("thinking") => parts.push(Part::Reasoning {
                    text: expand(&b["thinking"])?.into(),
                    encrypted: None,
                }),
                Some("redacted_thinking") => parts.push(Part::Reasoning {
                    text: "".into(),
                    encrypted: Some(expand(&b["data"])?.into()),
                }),
                Some("tool_use") => {
                    let word = |k: &str| b[k].as_str().unwrap_or_default();
                    let input = b["input"].to_string();
                    parts.push(Part::Call(ToolCall::new(word("id"), word("name"), input)));
                }
                other => {
                    return Err(CaseError::Unknown {
                        what: "block type",
                        name: other.unwrap_or("").to_string(),
                    });
                }
            }
        }
        if let Some(t) = e.get("text").filter(|t| !t.is_null()) {
            parts.push(Part::Text(expand(t)?.into()));
        }
        let calls = e.get("calls").and_then(Value::as_array).cloned().unwrap_or_default();
        for c in &calls {
            let text = |k: &str| c.get(k).map(expand).transpose().map(Option::unwrap_or_default);
            parts.push(Part::Call(ToolCall {
                id: text("id")?.into(),
                name: text("name")?.into(),
                arguments: text("arguments")?.into(),
            }));
        }
        let stop = match e.get("stop_reason").and_then(Value::as_str) {
            Some("refusal") => StopReason::Refusal,
            Some("max_tokens" | "length") => StopReason::MaxTokens,
            Some("compaction") => StopReason::Compaction,
            Some("pause_turn") => StopReason::PauseTurn,
            Some("tool_use") => StopReason::ToolUse,
            Some("stop_sequence") => StopReason::StopSequence,
            Some("model_context_window_exceeded") => StopReason::WindowExceeded,
            // Otherwise calls run regardless of the stop reason.
            Some(_) if self.caller_acts => StopReason::EndTurn,
            _ if !calls.is_empty() => StopReason::ToolUse,
            _ => StopReason::EndTurn,
        };
        if e["type"] == "reply" {
            self.calls = calls;
        }
        let usage = self.usage(&e["usage"]);
        let id = e.get("id").and_then(Value::as_str).map(Arc::from);
        Ok(Reply { id, parts, usage, billed: usage, stop, ..Reply::default() })
    }

    fn usage(&self, u: &Value) -> Usage {
        let n = |names: &[&str]| names.iter().find_map(|k| u.get(*k)?.as_u64()).unwrap_or(0);
        let beside = |name| if self.cache_beside_input { n(&[name]) } else { 0 };
        Usage {
            input: n(&["input_tokens", "prompt_tokens"]),
            output: n(&["output_tokens", "completion_tokens"]),
            cache_read: beside("cache_read_input_tokens"),
            cache_write: beside("cache_creation_input_tokens"),
            reported_total: u.get("total_tokens").and_then(Value::as_u64),
            ..Usage::default()
        }
    }
}

fn model_error(e: &Value) -> ModelError {
    let status = e.get("status").and_then(Value::as_u64).unwrap_or(0) as u16;
    let code = e.get("code").and_then(Value::as_str).map(str::to_string);
    let message =
        e.get("message").or(e.get("text")).and_then(Value::as_str).unwrap_or_default().to_string();
    let kind = match code.as_deref() {
        Some("context_length_exceeded") => ErrorKind::Overflow,
        Some("stream_ended_early") => ErrorKind::Stream,
        _ if status == 413 => ErrorKind::Overflow,
        _ if status == 429 => ErrorKind::RateLimited,
        _ if (400..500).contains(&status) => ErrorKind::Invalid,
        _ => ErrorKind::Server,
    };
    ModelError { kind, status, code, message }
}

#[async_trait]
impl Host for ScriptWorld {
    async fn next(&mut self) -> Option<Action> {
        if self.with(|s| s.fault.is_some()) != Some(false) {
            return None;
        }
        let e = self.pop()?;
        match e["type"].as_str().unwrap_or("") {
            "user" => match self.incoming(&e) {
                Ok(msg) => {
                    self.with(|s| s.turns.push("done"));
                    Some(Action::User(msg))
                }
                Err(err) => {
                    self.fault(err.to_string());
                    None
                }
            },
            "compact" => {
                let words = e.get("focus").or(e.get("instructions")).filter(|i| !i.is_null());
                match words.map(expand).transpose() {
                    Ok(instructions) => Some(Action::Compact { instructions }),
                    Err(err) => {
                        self.fault(err.to_string());
                        None
                    }
                }
            }
            "restart" => Some(Action::Restart),
            "kill" => Some(Action::Idle { ms: 0 }),
            other => {
                self.fault(format!(
                    "event `{other}` is left over: no request was made that it answers"
                ));
                None
            }
        }
    }

    async fn send(&mut self, request: &Request) -> Result<Reply, ModelError> {
        self.with(|s| s.requests.push(request.clone()));
        let (want, on) = match request.purpose {
            Purpose::Summary => ("summary_reply", "summary"),
            _ => ("reply", "sample"),
        };
        let Some(front) = self.events.front() else {
            self.fault(format!("a {on} request got no answer: the events have run out"));
            return Err(ModelError::ended());
        };
        match front["type"].as_str().unwrap_or("") {
            t if t == want => {}
            "error" if front["on"] == on => {}
            other => {
                self.fault(format!("a {on} request met the event `{other}`"));
                return Err(ModelError::ended());
            }
        }
        let e = self.pop().unwrap_or_default();
        if e["type"] == "error" {
            let error = model_error(&e);
            self.with(|s| s.errors.push(error.clone()));
            return Err(error);
        }
        let reply = self.reply(&e).map_err(|err| {
            self.fault(err.to_string());
            ModelError::ended()
        })?;
        if request.purpose != Purpose::Summary || reply.compaction().is_some_and(|c| !c.is_empty())
        {
            self.with(|s| s.last = Some(reply.parts.clone()));
        }
        Ok(reply)
    }

    async fn caller(&mut self) -> Option<CallerAction> {
        let kind = self.events.front()?["type"].as_str()?;
        if kind != "caller_append" && !(kind == "compact" && self.caller_acts) {
            return None;
        }
        let e = self.pop()?;
        if e["type"] == "compact" {
            let instructions = e.get("instructions").filter(|i| !i.is_null()).map(expand);
            return match instructions.transpose() {
                Ok(instructions) => {
                    Some(CallerAction::Compact { instructions: instructions.map(Arc::from) })
                }
                Err(err) => {
                    self.fault(err.to_string());
                    None
                }
            };
        }
        Some(CallerAction::Append { plain: e["form"] == "blocks" })
    }

    async fn run(&mut self, calls: &[ToolCall]) -> Vec<Incoming> {
        let mut out = Vec::new();
        for c in calls {
            let given = self.calls.iter().find(|g| g["id"] == *c.id);
            let output = given.and_then(|g| g.get("output")).filter(|o| !o.is_null()).map(expand);
            let output = output.transpose().unwrap_or_else(|e| {
                self.fault(e.to_string());
                None
            });
            let path = serde_json::from_str::<Value>(&c.arguments)
                .ok()
                .and_then(|a| a["path"].as_str().map(str::to_string));
            self.with(|s| s.tools_run.push(path.unwrap_or_default()));
            let is_error = given.is_some_and(|g| g["is_error"] == true);
            out.push(match output {
                Some(output) => Incoming::result(c, is_error, output),
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
