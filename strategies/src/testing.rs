//! A scripted world for tests: actions, replies and tool outputs are given, and requests are
//! recorded.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use ctxbench_core::agent;
use ctxbench_core::engine::Fixed;
use ctxbench_core::host::{Host, RewindStatus};
use ctxbench_core::model::{Counting, Model, find};
use ctxbench_core::prelude::*;

use serde_json::Value;

use crate::Spec;

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

pub fn used(answer: Answer, input: u64, output: u64) -> Answer {
    answer.map(|r| Reply { usage: Usage { input, output, ..Usage::default() }, ..r })
}

pub fn compaction(summary: &str) -> Answer {
    let parts = vec![Part::Compaction(Some(summary.into()))];
    Ok(Reply { parts, stop: StopReason::Compaction, ..Reply::default() })
}

/// Builds an image of a few bytes.
pub fn image(name: Option<&str>) -> Part {
    let (media_type, url) = ("image/png".into(), "data:image/png;base64,AAAA".into());
    Part::Image(Media { media_type, url, name: name.map(str::to_string) })
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

pub fn compact() -> Action {
    Action::Compact { instructions: None }
}

pub fn back_to(key: &str) -> Action {
    Action::Rewind { to: key.into(), mode: RewindMode::Conversation, instructions: None }
}

pub fn failure(kind: ErrorKind, status: u16, message: &str) -> Answer {
    Err(ModelError { kind, status, code: None, message: message.into() })
}

pub fn block(kind: BlockKind, message: u32, text: &str) -> Arc<Block> {
    let role = match kind {
        BlockKind::Base => Role::System,
        BlockKind::Assistant | BlockKind::Call | BlockKind::Reasoning => Role::Assistant,
        BlockKind::Output => Role::Tool,
        _ => Role::User,
    };
    Draft::text(kind, role, text).build(MessageId(message), vec![])
}

pub fn call_block(kind: BlockKind, id: &str, tool: &str, text: &str) -> Arc<Block> {
    let call = Arc::new(CallRef { id: id.into(), name: tool.into() });
    block(kind, 9, text).map_draft(|d| d.call = Some(call))
}

pub fn image_block(message: u32) -> Arc<Block> {
    let (media_type, url) = ("image/png".into(), "data:x".into());
    let media = Arc::new(Media { media_type, url, name: None });
    block(BlockKind::Image, message, "").map_draft(|d| d.media = Some(media))
}

pub fn kinds(r: &Request) -> Vec<BlockKind> {
    r.blocks.iter().map(|b| b.kind).collect()
}

pub fn cleared(r: &Request) -> usize {
    r.blocks.iter().filter(|b| b.form == BlockForm::Cleared).count()
}

pub fn texts(blocks: &[Arc<Block>]) -> Vec<&str> {
    blocks.iter().map(|b| &*b.text).collect()
}

/// Returns the blocks of a request as `kind:text`, with the first 24 characters of the text.
pub fn outline(r: &Request) -> Vec<String> {
    r.blocks.iter().map(|b| format!("{:?}:{:.24}", b.kind, b.text)).collect()
}

#[derive(Default)]
pub struct Script {
    pub actions: Vec<Action>,
    pub replies: Vec<Answer>,
    /// Answers to summary requests, foreground and background; "S" when they run out.
    pub summaries: Vec<Answer>,
    /// Outputs of tool calls in order; "out" when they run out.
    pub outputs: Vec<String>,
    pub files: Vec<&'static str>,
    pub memory: Vec<&'static str>,
    pub repo_map: Vec<&'static str>,
    looks: u32,
    scale: f64,
    model: &'static str,
}

impl Script {
    pub fn new(actions: Vec<Action>, replies: Vec<Answer>) -> Script {
        let (scale, model) = (1.0, "claude-sonnet-4-5");
        Script { actions, replies, scale, model, ..Script::default() }
    }

    /// Adds actions and the answers to their requests.
    pub fn then<const A: usize, const R: usize>(
        mut self,
        actions: [Action; A],
        replies: [Answer; R],
    ) -> Script {
        self.actions.extend(actions);
        self.replies.extend(replies);
        self
    }

    pub fn summaries(self, summaries: Vec<Answer>) -> Script {
        Script { summaries, ..self }
    }

    pub fn outputs(self, outputs: Vec<String>) -> Script {
        Script { outputs, ..self }
    }

    pub fn files(self, files: Vec<&'static str>) -> Script {
        Script { files, ..self }
    }

    pub fn memory(self, memory: Vec<&'static str>) -> Script {
        Script { memory, ..self }
    }

    pub fn repo_map(self, repo_map: Vec<&'static str>) -> Script {
        Script { repo_map, ..self }
    }

    /// Makes background requests complete after this number of looks.
    pub fn ready_after(self, looks: u32) -> Script {
        Script { looks, ..self }
    }

    /// Multiplies token constants and the model's limits.
    pub fn scaled(self, scale: f64) -> Script {
        Script { scale, ..self }
    }

    pub fn on(self, model: &'static str) -> Script {
        Script { model, ..self }
    }
}

pub struct Played {
    /// All requests in order. Background requests appear at the position at which they started.
    pub requests: Vec<Request>,
    /// Virtual time at which each request was sent, ms.
    pub sent_at: Vec<Millis>,
    pub engine: Engine,
}

impl Played {
    pub fn with_purpose(&self, purpose: Purpose) -> Vec<&Request> {
        self.requests.iter().filter(|r| r.purpose == purpose).collect()
    }

    pub fn samples(&self) -> Vec<&Request> {
        self.with_purpose(Purpose::Sample)
    }

    pub fn summaries(&self) -> Vec<&Request> {
        self.with_purpose(Purpose::Summary)
    }

    pub fn last(&self) -> &Request {
        self.requests.last().unwrap()
    }

    /// Returns the values that `of` finds in the events.
    pub fn events<'a, T>(&'a self, of: impl Fn(&'a Event) -> Option<T>) -> Vec<T> {
        self.engine.events().iter().filter_map(|e| of(&e.event)).collect()
    }

    /// Returns the mechanisms of the compactions in order.
    pub fn compactions(&self) -> Vec<&'static str> {
        self.compacted().into_iter().map(|(mechanism, _)| mechanism).collect()
    }

    /// Returns the mechanisms and phases of the compactions in order.
    pub fn compacted(&self) -> Vec<(&'static str, Phase)> {
        self.events(|e| match e {
            Event::Compaction { mechanism, phase, .. } => Some((*mechanism, *phase)),
            _ => None,
        })
    }

    /// Returns the checks that fired, with the tokens that the strategy believed.
    pub fn triggers(&self) -> Vec<(&'static str, u64)> {
        self.events(|e| match e {
            Event::Trigger { check, believed, .. } => Some((*check, *believed)),
            _ => None,
        })
    }

    /// Returns the number of times that a user had to intervene.
    pub fn interventions(&self) -> usize {
        self.events(|e| matches!(e, Event::Intervention(_)).then_some(())).len()
    }

    pub fn failures(&self) -> Vec<&str> {
        self.events(|e| if let Event::TurnFailed(t) = e { Some(t.as_str()) } else { None })
    }

    pub fn failed_compactions(&self) -> usize {
        self.events(|e| matches!(e, Event::CompactionFailed { .. }).then_some(())).len()
    }

    pub fn rewinds(&self) -> Vec<RewindStatus> {
        self.events(|e| if let Event::Rewound { status, .. } = e { Some(*status) } else { None })
    }
}

fn first<T>(list: &mut Vec<T>) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(0))
}

#[derive(Default)]
struct Fake {
    script: Script,
    /// Answers of background requests, each with the number of looks until it arrives.
    tasks: Vec<(u32, Answer)>,
    log: Arc<Mutex<Vec<(Millis, Request)>>>,
    now: Millis,
    idle_until: Option<Millis>,
}

impl Fake {
    fn answer(&mut self, request: &Request) -> Answer {
        self.log.lock().unwrap().push((self.now, request.clone()));
        self.now += 1_000;
        let mut reply = match request.purpose {
            Purpose::Sample => {
                first(&mut self.script.replies).unwrap_or_else(|| Err(ModelError::ended()))
            }
            Purpose::Ping => text_answer(""),
            Purpose::Edit => text_answer("edited"),
            Purpose::Summary => {
                first(&mut self.script.summaries).unwrap_or_else(|| text_answer("S"))
            }
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
        let next = first(&mut self.script.actions);
        if let Some(Action::Idle { ms }) = next {
            self.now = self.idle_until.take().unwrap_or(self.now + ms).max(self.now);
        }
        next
    }

    async fn wait_until(&mut self, at: Millis) -> bool {
        let Some(Action::Idle { ms }) = self.script.actions.first() else { return false };
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
            let text = first(&mut self.script.outputs).unwrap_or_else(|| "out".into());
            out.push(Incoming::result(c, false, text));
        }
        out
    }

    async fn spawn(&mut self, request: &Request) -> Task {
        let answer = self.answer(request);
        self.tasks.push((self.script.looks, answer));
        Task(self.tasks.len() as u64 - 1)
    }

    async fn collect(&mut self, task: Task, wait: bool) -> Option<Answer> {
        let (looks, answer) = self.tasks.get_mut(task.0 as usize)?;
        if *looks > 0 && !wait {
            *looks -= 1;
            return None;
        }
        Some(answer.clone())
    }

    fn now(&self) -> Millis {
        self.now
    }
}

/// Plays a script with a strategy given as on the command line.
pub fn play(spec: &str, script: Script) -> Played {
    let fixed = |kind, texts: &[&str]| texts.iter().map(|t| block(kind, 0, t)).collect();
    let fixed = Fixed {
        base: fixed(BlockKind::Base, &["base"]),
        context: fixed(BlockKind::Context, &script.memory),
        repo_map: fixed(BlockKind::RepoMap, &script.repo_map),
        files: fixed(BlockKind::File, &script.files),
        ..Fixed::default()
    };
    let scale = script.scale;
    // Sizes in scripts count o200k tokens.
    let model = Model { counting: Counting::O200K, ..find(script.model).unwrap().scaled(scale) };
    let window = model.window;
    let world = Fake { script, ..Fake::default() };
    let log = world.log.clone();
    let mut engine = Engine::new(Arc::new(model), Box::new(world));
    engine.fixed = fixed;
    let mut strategy = Spec::parse(spec).unwrap().build(scale, window);
    block_on(agent::run(&mut engine, &mut *strategy));
    let (sent_at, requests) = log.lock().unwrap().iter().cloned().unzip();
    Played { requests, sent_at, engine }
}

/// Replaces every recipe of a text by the text: `repeat` with `times`, `lines_from`, `concat` and
/// `slice` (CONTRIBUTING.md).
fn expand(v: &mut Value) {
    match v {
        Value::Array(list) => list.iter_mut().for_each(expand),
        Value::Object(members) => members.values_mut().for_each(expand),
        _ => return,
    }
    let number = |v: &Value, name: &str| v[name].as_u64().map(|n| n as usize);
    let text = |v: &Value, name: &str| v[name].as_str().map(str::to_string);
    let made = if let Some(times) = number(v, "times") {
        text(v, "repeat").map(|t| t.repeat(times))
    } else if let (Some(from), Some(to)) = (number(v, "start"), number(v, "end")) {
        text(v, "slice").map(|t| t[from..to].to_string())
    } else if let Some(lines) = v.get("lines_from") {
        let (from, to) = (number(lines, "from").unwrap(), number(lines, "to").unwrap());
        let format = text(lines, "format").unwrap();
        let line = |n: usize| {
            let padded = format.replace("{n4}", &format!("{n:04}"));
            padded.replace("{n5}", &format!("{n:05}")).replace("{n}", &n.to_string())
        };
        let all: Vec<String> = (from..=to).map(line).collect();
        Some(all.join(&text(lines, "sep").unwrap_or_default()))
    } else {
        let parts = v["concat"].as_array();
        parts.map(|all| all.iter().filter_map(Value::as_str).collect())
    };
    if let Some(text) = made {
        *v = text.into();
    }
}

/// Returns a file of `tests/data/functions`: recorded results of one function of a program, with
/// every recipe replaced by its text.
pub fn recorded(file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/functions").join(file);
    let mut all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    expand(&mut all);
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
