//! A scripted world for tests: actions, replies and tool outputs are given, and requests are
//! recorded.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use ctxbench_core::agent;
use ctxbench_core::block::{Block, BlockKind, Draft, MessageId, Role};
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::engine::{Action, Engine, Event, Host, Incoming, Task};
use ctxbench_core::model::{Counting, Model, find};
use ctxbench_core::request::{
    ErrorKind, ModelError, Purpose, Reply, Request, StopReason, Tools, Usage,
};
use ctxbench_core::session::{Millis, RewindMode};

use serde_json::Value;

use crate::Spec;
use crate::conform::prepare;

/// A model's reply or failure.
pub type Answer = Result<Reply, ModelError>;

/// Runs a future that never waits.
pub fn block_on<F: Future>(f: F) -> F::Output {
    let mut f = std::pin::pin!(f);
    loop {
        if let Poll::Ready(out) = f.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return out;
        }
    }
}

pub fn text_answer(text: &str) -> Answer {
    Ok(Reply { parts: vec![Part::Text(text.into())], ..Reply::default() })
}

/// Builds a reply with a text and one call; the script's `outputs` answer the call.
pub fn calls(text: &str, id: &str, name: &str, arguments: &str) -> Answer {
    let call =
        Part::Call(ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() });
    Ok(Reply {
        parts: vec![Part::Text(text.into()), call],
        stop: StopReason::ToolUse,
        ..Reply::default()
    })
}

/// Builds a refusal of a prompt of `size` tokens.
pub fn too_long(size: u64, window: u64) -> Answer {
    let message = format!("prompt is too long: {size} tokens > {window} maximum");
    Err(ModelError { kind: ErrorKind::Overflow, status: 400, code: None, message })
}

pub fn user(key: &str, text: &str) -> Action {
    Action::User(Incoming { key: key.into(), parts: vec![Part::Text(text.into())] })
}

/// Rewinds the conversation to a message.
pub fn back_to(key: &str) -> Action {
    Action::Rewind { to: key.into(), mode: RewindMode::Conversation, instructions: None }
}

/// The script of a session.
#[derive(Default)]
pub struct Script {
    /// User actions in order.
    pub actions: Vec<Action>,
    /// Answers to normal requests.
    pub replies: Vec<Answer>,
    /// Answers to summary requests, foreground and background; "S" when they run out.
    pub summaries: Vec<Answer>,
    /// Outputs of tool calls in order; "out" when they run out.
    pub outputs: Vec<String>,
    pub files: Vec<&'static str>,
    pub memory: Vec<&'static str>,
    /// Repository map.
    pub repo_map: Vec<&'static str>,
}

/// Result of a script.
pub struct Played {
    /// All requests in order. Background requests appear at the position at which they started.
    pub requests: Vec<Request>,
    /// Virtual time at which each request was sent, ms.
    pub sent_at: Vec<Millis>,
    /// The engine after the last action.
    pub engine: Engine,
}

impl Played {
    /// Returns the requests with a purpose.
    pub fn with_purpose(&self, purpose: Purpose) -> Vec<&Request> {
        self.requests.iter().filter(|r| r.purpose == purpose).collect()
    }

    /// Returns the blocks of a request as `kind:text`, with the text cut to its first 24
    /// characters.
    pub fn outline(r: &Request) -> Vec<String> {
        let name = |b: &Block| format!("{:?}", b.kind);
        r.blocks
            .iter()
            .map(|b| format!("{}:{}", name(b), b.text.chars().take(24).collect::<String>()))
            .collect()
    }

    /// Returns the mechanisms of the compactions in order.
    pub fn compactions(&self) -> Vec<&'static str> {
        let mechanism = |e: &Event| match e {
            Event::Compaction { mechanism, .. } => Some(*mechanism),
            _ => None,
        };
        self.engine.events.iter().filter_map(|s| mechanism(&s.event)).collect()
    }

    /// Returns the number of times that a user had to intervene.
    pub fn interventions(&self) -> usize {
        self.engine.events.iter().filter(|s| matches!(s.event, Event::Intervention(_))).count()
    }

    /// Returns the errors of failed turns.
    pub fn failures(&self) -> Vec<&str> {
        let mut out = Vec::new();
        for e in &self.engine.events {
            if let Event::TurnFailed(t) = &e.event {
                out.push(t.as_str());
            }
        }
        out
    }
}

struct Fake {
    actions: VecDeque<Action>,
    replies: VecDeque<Answer>,
    summaries: VecDeque<Answer>,
    outputs: VecDeque<String>,
    tasks: Vec<Answer>,
    log: Arc<Mutex<Vec<(Millis, Request)>>>,
    now: Millis,
    /// End of the current idle time.
    idle_until: Option<Millis>,
}

impl Fake {
    fn answer(&mut self, request: &Request) -> Answer {
        self.log.lock().unwrap().push((self.now, request.clone()));
        self.now += 1_000;
        let mut reply = match request.purpose {
            Purpose::Sample => self.replies.pop_front().unwrap_or_else(|| Err(ModelError::ended())),
            Purpose::Ping => text_answer(""),
            Purpose::Edit => text_answer("edited"),
            Purpose::Summary => self.summaries.pop_front().unwrap_or_else(|| text_answer("S")),
        }?;
        if reply.usage == Usage::default() {
            reply.usage = Usage { input: request.tokens(), output: 10, ..Usage::default() };
        }
        reply.billed = reply.usage;
        Ok(reply)
    }
}

#[async_trait]
impl Host for Fake {
    async fn next(&mut self) -> Option<Action> {
        let next = self.actions.pop_front();
        if let Some(Action::Idle { ms }) = next {
            self.now = self.idle_until.take().unwrap_or(self.now + ms).max(self.now);
        }
        next
    }

    async fn wait_until(&mut self, at: Millis) -> bool {
        let Some(Action::Idle { ms }) = self.actions.front() else { return false };
        let first = at < *self.idle_until.get_or_insert(self.now + ms);
        if first {
            self.now = self.now.max(at);
        }
        first
    }

    async fn send(&mut self, request: &Request) -> Answer {
        self.answer(request)
    }

    async fn run(&mut self, calls: &[ToolCall]) -> Vec<Incoming> {
        let mut out = Vec::new();
        for c in calls {
            let text = self.outputs.pop_front().unwrap_or_else(|| "out".into());
            out.push(Incoming::result(c, false, text));
        }
        out
    }

    async fn spawn(&mut self, request: &Request) -> Task {
        let answer = self.answer(request);
        self.tasks.push(answer);
        Task(self.tasks.len() as u64 - 1)
    }

    async fn collect(&mut self, task: Task, _wait: bool) -> Option<Answer> {
        self.tasks.get(task.0 as usize).cloned()
    }

    fn now(&self) -> Millis {
        self.now
    }
}

/// Plays a script with a strategy given as on the command line. Token constants are multiplied by
/// `scale`.
pub fn play(spec: &str, scale: f64, script: Script) -> Played {
    play_on("claude-sonnet-4-5", spec, scale, script)
}

/// Plays a script with a given model of the catalogue.
pub fn play_on(model: &str, spec: &str, scale: f64, script: Script) -> Played {
    let log = Arc::new(Mutex::new(Vec::new()));
    let world = Fake {
        actions: script.actions.into(),
        replies: script.replies.into(),
        summaries: script.summaries.into(),
        outputs: script.outputs.into(),
        tasks: Vec::new(),
        log: log.clone(),
        now: 0,
        idle_until: None,
    };
    // Sizes in scripts count o200k tokens.
    let model = Model { counting: Counting::O200K, ..find(model).unwrap().scaled(scale) };
    let window = model.window;
    let mut engine = Engine::new(Arc::new(model), Box::new(world));
    let block = |kind, role, text: &str| Draft::text(kind, role, text).build(MessageId(0), vec![]);
    engine.fixed.base = vec![block(BlockKind::Base, Role::System, "base")];
    engine.fixed.context =
        script.memory.iter().map(|t| block(BlockKind::Context, Role::User, t)).collect();
    engine.fixed.repo_map =
        script.repo_map.iter().map(|t| block(BlockKind::RepoMap, Role::User, t)).collect();
    engine.fixed.files =
        script.files.iter().map(|t| block(BlockKind::File, Role::User, t)).collect();
    engine.fixed.tools = Tools::new(&[]);
    let mut strategy = Spec::parse(spec).unwrap().build(scale, window);
    block_on(agent::run(&mut engine, &mut *strategy));
    let (sent_at, requests) = log.lock().unwrap().iter().cloned().unzip();
    Played { requests, sent_at, engine }
}

/// Returns a file of `tests/data/functions`: recorded results of one function of a program, with
/// every recipe replaced by its text.
pub fn recorded(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/functions").join(file);
    let mut all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    prepare(&mut all).unwrap();
    all
}

/// Checks that a function returns every recorded result of a file.
pub fn check(file: &str, function: impl Fn(&Value) -> Value) {
    let all = recorded(file);
    let cases = all["cases"].as_array().unwrap();
    assert!(!cases.is_empty(), "{file}");
    for case in cases {
        assert_eq!(function(&case["input"]), case["expected"], "{file}: {}", case["name"]);
    }
}
