//! Random sessions: any order of turns, calls, sizes, alphabets and commands that a session file
//! can contain.

use std::sync::Arc;

use ctxbench_core::block::Media;
use ctxbench_core::content::{Part, ToolCall};
use ctxbench_scenarios::Scenario;
use ctxbench_session::fact::{Fact, FactKind};
use ctxbench_session::{AssistantEntry, Entry, FileMode, Header, Session, ToolEntry, UserEntry};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub enum Alphabet {
    Prose,
    Code,
    Chinese,
    Base64,
    Json,
}

/// A text of a given size: its alphabet, its length in units of about eight bytes, and a number
/// that makes it unique.
#[derive(Clone, Copy, Debug)]
pub struct Words(pub Alphabet, pub usize, pub u32);

impl Words {
    fn text(self) -> String {
        let Words(alphabet, units, own) = self;
        let unit = |i: usize| {
            let n = (own as usize).wrapping_mul(31).wrapping_add(i * 7_919) % 9_973;
            match alphabet {
                Alphabet::Prose => format!("word{n} "),
                Alphabet::Code => format!("let x{n} = {};\n", n % 97),
                Alphabet::Chinese => format!("设定{n}。"),
                Alphabet::Base64 => format!("{:08X}", n * 40_503),
                Alphabet::Json => format!("{{\"k{n}\":{}}},", n % 89),
            }
        };
        (0..units).map(unit).collect()
    }
}

#[derive(Clone, Debug)]
pub struct Call {
    tool: &'static str,
    output: Words,
    is_error: bool,
    image: bool,
}

/// A reply; the last one of a turn has no calls.
#[derive(Clone, Debug)]
pub struct Step {
    reasoning: Option<Words>,
    text: Option<Words>,
    calls: Vec<Call>,
}

#[derive(Clone, Debug)]
pub struct Turn {
    user: Words,
    image: bool,
    steps: Vec<Step>,
    /// Event after the turn. A rewind goes half way back; every second clear is a new session.
    then: Option<Entry>,
}

/// Source of the window and the output limit.
#[derive(Clone, Copy, Debug)]
enum Limits {
    /// The session's own limits. A strategy's absolute constants may be larger.
    Given,
    /// Limits of common models, scaled down together with every absolute constant of every
    /// strategy.
    Scaled,
    /// Limits of the running model, including a separate limit on input, scaled down in the same
    /// way.
    Model,
}

#[derive(Clone, Debug)]
pub struct Plan {
    window: u64,
    max_output: u64,
    limits: Limits,
    /// Whether there are memory files and a repository map.
    memory: bool,
    /// Whether there is a file in the chat.
    file: bool,
    pub turns: Vec<Turn>,
}

fn words(most: usize) -> impl Strategy<Value = Words> {
    let alphabet = prop_oneof![
        3 => Just(Alphabet::Prose),
        3 => Just(Alphabet::Code),
        1 => Just(Alphabet::Chinese),
        1 => Just(Alphabet::Base64),
        1 => Just(Alphabet::Json)
    ];
    (alphabet, prop_oneof![4 => 1..most / 8, 1 => 1..most], any::<u32>())
        .prop_map(|(a, n, own)| Words(a, n, own))
}

fn call() -> impl Strategy<Value = Call> {
    let tool = prop_oneof![
        4 => Just("read_file"),
        4 => Just("bash"),
        4 => Just("grep"),
        4 => Just("edit_file"),
        4 => Just("web_fetch"),
        1 => Just("skill"),
        1 => Just("exit_plan_mode")
    ];
    (tool, words(900), prop::bool::weighted(0.1), prop::bool::weighted(0.05))
        .prop_map(|(tool, output, is_error, image)| Call { tool, output, is_error, image })
}

fn step() -> impl Strategy<Value = Step> {
    (
        prop::option::weighted(0.3, words(80)),
        prop::option::weighted(0.7, words(120)),
        prop::collection::vec(call(), 1..4),
    )
        .prop_map(|(reasoning, text, calls)| Step { reasoning, text, calls })
}

fn turn() -> impl Strategy<Value = Turn> {
    let compact = |words: Option<&str>| {
        Some(Entry::Compact { instructions: words.map(str::to_string), at: None })
    };
    let rewind = Entry::Rewind { to: String::new(), mode: Default::default(), instructions: None };
    let then = prop_oneof![
        12 => Just(None),
        1 => Just(compact(None)),
        1 => Just(compact(Some("keep every file name"))),
        1 => Just(Some(Entry::Restart)),
        1 => (1_u64..8_000_000).prop_map(|ms| Some(Entry::Idle { ms })),
        1 => Just(Some(rewind)),
        1 => Just(Some(Entry::Clear))
    ];
    let last = words(150).prop_map(|w| Step { reasoning: None, text: Some(w), calls: vec![] });
    (words(300), prop::bool::weighted(0.05), prop::collection::vec(step(), 0..5), last, then)
        .prop_map(|(user, image, mut steps, last, then)| {
            steps.push(last);
            Turn { user, image, steps, then }
        })
}

/// Window and output limit of common models before they are scaled, in tokens.
const FULL_WINDOW: u64 = 200_000;
const FULL_OUTPUT: u64 = 32_000;

/// Generates any session of up to `turns` turns in a window of 8k to 32k tokens.
pub fn plan(turns: usize) -> impl Strategy<Value = Plan> {
    let window = prop_oneof![Just(8_000_u64), Just(16_000), Just(32_000)];
    let output = prop_oneof![Just(1_000_u64), Just(2_000)];
    let limits =
        prop_oneof![1 => Just(Limits::Given), 2 => Just(Limits::Scaled), 1 => Just(Limits::Model)];
    (window, output, limits, any::<bool>(), any::<bool>(), prop::collection::vec(turn(), 1..turns))
        .prop_map(|(window, max_output, limits, memory, file, turns)| Plan {
            window,
            max_output,
            limits,
            memory,
            file,
            turns,
        })
}

impl Plan {
    /// Returns the session with a fact in every user message and every third result, each needed in
    /// the last turn.
    pub fn scenario(&self) -> Scenario {
        let mut b = Builder { plan: self, entries: vec![], facts: vec![], results: 0 };
        b.fixed();
        let mut said_before = 0;
        for (n, t) in self.turns.iter().enumerate() {
            said_before = b.facts.len();
            b.turn(n, t);
        }
        let last = format!("u{}", self.turns.len() - 1);
        for f in &mut b.facts[..said_before] {
            f.needs = vec![last.clone()];
        }
        let scaled = self.window as f64 / FULL_WINDOW as f64;
        let (scale, context_window, max_output) = match self.limits {
            Limits::Given => (1.0, Some(self.window), Some(self.max_output)),
            Limits::Scaled => (scaled, Some(FULL_WINDOW), Some(FULL_OUTPUT)),
            Limits::Model => (scaled, None, None),
        };
        let id = "random".to_string();
        let header = Header { version: 1, id, context_window, max_output, ..Default::default() };
        let session = Session { header, entries: b.entries, facts: b.facts };
        Scenario { id: "random".into(), scale, session, ..Default::default() }
    }

    /// Returns the session with facts that are missing from the messages in which they should
    /// arise, but appear in later replies. This is a recording in which a strategy has forgotten
    /// facts.
    pub fn scenario_of_ghosts(&self) -> Scenario {
        let mut scenario = self.scenario();
        let facts = scenario.session.facts.clone();
        let hide = |text: &mut Arc<str>| {
            for f in &facts {
                *text = text.replace(&f.tokens[0], "(cut)").into();
            }
        };
        let hide_in = |text: &mut Option<Arc<str>>, parts: &mut Option<Vec<Part>>| {
            text.iter_mut().for_each(hide);
            for part in parts.iter_mut().flatten() {
                if let Part::Text(text) = part {
                    hide(text);
                }
            }
        };
        let all: String = facts.iter().map(|f| format!(" {}", f.tokens[0])).collect();
        for e in &mut scenario.session.entries {
            match e {
                Entry::User(u) => hide_in(&mut u.text, &mut u.parts),
                Entry::Tool(t) => hide_in(&mut t.output, &mut t.parts),
                // A reply in which a fact arises may contain it, but these facts arise in user
                // messages and results.
                Entry::Assistant(a) => {
                    let said = a.text.take().unwrap_or_default();
                    a.text = Some(format!("{said}{all}").into());
                }
                _ => {}
            }
        }
        scenario
    }
}

struct Builder<'a> {
    plan: &'a Plan,
    entries: Vec<Entry>,
    facts: Vec<Fact>,
    results: usize,
}

impl Builder<'_> {
    fn fixed(&mut self) {
        self.entries
            .push(Entry::System { text: Words(Alphabet::Prose, 60, 1).text(), agent: None });
        if self.plan.memory {
            let rule = format!("---\npaths: src/**\n---\n{}", Words(Alphabet::Prose, 10, 5).text());
            let long: String = (0..240).map(|i| format!("- note {i}\n")).collect();
            for (path, text) in [
                ("AGENTS.md", Words(Alphabet::Prose, 40, 2).text()),
                (".claude/rules/rs.md", rule),
                ("/home/u/memory/MEMORY.md", long),
            ] {
                self.entries.push(Entry::Memory { path: path.into(), text });
            }
            self.entries.push(Entry::RepoMap { text: Words(Alphabet::Code, 400, 3).text() });
        }
        if self.plan.file {
            let text = Words(Alphabet::Code, 50, 4).text();
            self.entries.push(Entry::File {
                path: "src/lib.rs".into(),
                text,
                mode: FileMode::Editable,
            });
        }
        let tool = serde_json::json!({"name": "read_file", "description": "reads", "input_schema": {"type": "object"}});
        self.entries.push(Entry::Tools { definitions: vec![tool], agent: None });
    }

    fn fact(&mut self, arises: &str) -> String {
        let token = format!("FACT-{}", 100_000 + self.facts.len() * 37);
        let id = format!("f{}", self.facts.len());
        self.facts.push(Fact::new(id, FactKind::Value, token.clone(), arises));
        token
    }

    fn turn(&mut self, n: usize, t: &Turn) {
        let id = format!("u{n}");
        let text = format!("{} {}", self.fact(&id), t.user.text());
        let (text, parts) = content(text, t.image);
        self.entries.push(Entry::User(UserEntry { id, text, parts, ..Default::default() }));
        for (i, s) in t.steps.iter().enumerate() {
            self.step(n, i, s);
        }
        self.entries.extend(t.then.clone().map(|event| match event {
            Entry::Rewind { mode, instructions, .. } => {
                Entry::Rewind { to: format!("u{}", n / 2), mode, instructions }
            }
            Entry::Clear if n % 2 == 1 => Entry::NewSession,
            other => other,
        }));
    }

    fn step(&mut self, turn: usize, at: usize, s: &Step) {
        let call = |i: usize| format!("c{turn}_{at}_{i}");
        let calls = s.calls.iter().enumerate().map(|(i, c)| ToolCall {
            id: call(i).into(),
            name: c.tool.into(),
            arguments: match c.tool {
                "skill" => format!("{{\"skill\":\"review-{turn}\"}}"),
                "exit_plan_mode" => format!("{{\"plan\":\"first {turn}, then {at}\"}}"),
                _ => format!("{{\"path\":\"src/{}/{turn}.rs\"}}", i + at),
            }
            .into(),
        });
        let text: Option<Arc<str>> = s.text.map(|w| w.text().into());
        self.entries.push(Entry::Assistant(AssistantEntry {
            id: format!("a{turn}_{at}"),
            text: text.or_else(|| s.calls.is_empty().then(|| "done".into())),
            reasoning: s.reasoning.map(|w| w.text().into()),
            calls: calls.collect(),
            ..Default::default()
        }));
        for (i, c) in s.calls.iter().enumerate() {
            self.results += 1;
            let id = call(i);
            let mut text = c.output.text();
            if self.results.is_multiple_of(3) {
                text = format!("{} {text}", self.fact(&id));
            }
            let (call_id, is_error) = (id, c.is_error.then_some(true));
            let (output, parts) = content(text, c.image);
            let result = ToolEntry { call_id, is_error, output, parts, ..Default::default() };
            self.entries.push(Entry::Tool(result));
        }
    }
}

/// Returns a text as such, or in parts with an image.
fn content(text: String, with_image: bool) -> (Option<Arc<str>>, Option<Vec<Part>>) {
    if !with_image {
        return (Some(text.into()), None);
    }
    let image = Media {
        media_type: "image/png".into(),
        url: "data:image/png;base64,iVBORw0KGgo=".into(),
        name: Some("shot.png".into()),
    };
    (None, Some(vec![Part::Text(text.into()), Part::Image(image)]))
}
