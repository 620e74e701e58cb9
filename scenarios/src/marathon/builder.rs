//! Plays the story against the virtual repository and writes the session line by line.

use super::facts::FactList;
use super::json::{Object, array};
use super::rng::Rng;
use super::script::{Block, Call};
use super::vfs::Vfs;
use super::{outputs, tools};
use std::collections::BTreeMap;

pub struct Builder {
    vfs: Vfs,
    lines: Vec<String>,
    clock_ms: u64,
    users: usize,
    steps: usize,
    calls: usize,
    labels: BTreeMap<String, String>,
    last_id: String,
    facts: FactList,
}

impl Builder {
    pub fn new() -> Self {
        Self {
            vfs: Vfs::new(),
            lines: Vec::new(),
            clock_ms: 0,
            users: 0,
            steps: 0,
            calls: 0,
            labels: BTreeMap::new(),
            last_id: String::new(),
            facts: FactList::default(),
        }
    }

    pub fn line(&mut self, object: Object) {
        self.lines.push(object.end());
    }

    pub fn play(&mut self, blocks: Vec<Block>) {
        let mut blocks = blocks.into_iter().peekable();
        while let Some(block) = blocks.next() {
            match block {
                Block::User { think_ms, label, text } => self.user(think_ms, label, &text),
                Block::Say { label, text } => {
                    let id = self.begin_step(label);
                    let mut calls = Vec::new();
                    let mut notes = Vec::new();
                    // Facts between calls belong to the message before them.
                    while let Some(next) =
                        blocks.next_if(|next| matches!(next, Block::Call(_) | Block::Fact(_)))
                    {
                        match next {
                            Block::Call(call) => calls.push(call),
                            Block::Fact(note) => notes.push((calls.len(), note)),
                            _ => {}
                        }
                    }
                    let first_call = self.calls;
                    self.step(&id, &text, &calls);
                    for (after, note) in notes {
                        let arises = match after {
                            0 => id.clone(),
                            n => format!("c{}", first_call + n),
                        };
                        self.facts.add(note, arises);
                    }
                }
                Block::Fact(note) => self.facts.add(note, self.last_id.clone()),
                Block::Call(call) => panic!("a call follows an assistant text: {}", call.args),
            }
        }
    }

    fn name(&mut self, label: Option<&String>, id: &str) {
        if let Some(label) = label {
            let old = self.labels.insert(label.clone(), id.to_owned());
            assert!(old.is_none(), "labels are unique: {label}");
        }
    }

    fn user(&mut self, think_ms: u64, label: Option<String>, text: &str) {
        self.users += 1;
        if self.users > 1 {
            let mut rng = Rng::named(&format!("think {}", self.users));
            self.clock_ms += if think_ms > 0 { think_ms } else { rng.range(150_000, 238_000) };
        }
        let id = format!("u{}", self.users);
        self.name(label.as_ref(), &id);
        let text = self.with_pastes(text, &id);
        let line = Object::new().with("type", "user").with("id", id.as_str());
        self.line(line.with("text", text).with("at", self.clock_ms));
        self.last_id = id;
    }

    fn begin_step(&mut self, label: Option<String>) -> String {
        self.steps += 1;
        let id = format!("a{}", self.steps);
        self.name(label.as_ref(), &id);
        id
    }

    fn step(&mut self, id: &str, text: &str, calls: &[Call]) {
        let mut rng = Rng::named(&format!("step {id}"));
        self.clock_ms += rng.range(14_000, 56_000);
        let text = self.with_line_numbers(text);
        let mut line = Object::new().with("type", "assistant").with("id", id).with("text", text);
        let prepared: Vec<_> = calls.iter().map(|call| tools::prepare(call, &self.vfs)).collect();
        if !calls.is_empty() {
            let list: Vec<String> = calls
                .iter()
                .zip(&prepared)
                .enumerate()
                .map(|(index, (call, prepared))| {
                    Object::new()
                        .with("id", format!("c{}", self.calls + index + 1))
                        .with("name", tools::tool_name(&call.tool))
                        .with("arguments", prepared.arguments.as_str())
                        .end()
                })
                .collect();
            line = line.with_raw("calls", &array(&list));
        }
        self.line(line.with("at", self.clock_ms));
        self.last_id = id.to_owned();
        for (call, prepared) in calls.iter().zip(&prepared) {
            self.result(call, prepared);
        }
    }

    fn result(&mut self, call: &Call, prepared: &tools::Prepared) {
        self.calls += 1;
        let id = format!("c{}", self.calls);
        let mut rng = Rng::named(&format!("result {} {}", call.tool, call.args));
        self.name(call.label.as_ref(), &id);
        self.clock_ms += match call.tool.as_str() {
            "bash" | "test" => rng.range(9_000, 40_000),
            "sql" | "http" | "logs" | "ticket" => rng.range(1_500, 12_000),
            _ => rng.range(500, 3_000),
        };
        let output = self.output(call, prepared, &mut rng);
        let mut line = Object::new()
            .with("type", "tool")
            .with("call_id", id)
            .with("name", tools::tool_name(&call.tool))
            .with("output", output.trim_end_matches('\n'));
        if call.failed {
            line = line.with("is_error", true);
        }
        self.line(line.with("at", self.clock_ms));
    }

    fn output(&mut self, call: &Call, prepared: &tools::Prepared, rng: &mut Rng) -> String {
        let args = call.args.as_str();
        if call.failed {
            let text = outputs::generated(&mut self.vfs, rng, args, &prepared.output);
            return self.with_line_numbers(&text);
        }
        match call.tool.as_str() {
            "read" => outputs::read(&self.vfs, args),
            "grep" => outputs::grep(&self.vfs, args),
            "glob" => outputs::glob(&self.vfs, args),
            "ls" => outputs::list(&self.vfs, args),
            "edit" => {
                let line = self.vfs.edit(args, &prepared.old, &prepared.new);
                outputs::edited(&self.vfs, args, line, &prepared.new)
            }
            "write" => {
                let path = args.split(' ').next().unwrap_or(args);
                self.vfs.files.insert(path.to_owned(), prepared.new.clone());
                format!("Wrote {path} ({} lines).", prepared.new.lines().count())
            }
            _ => {
                let text = outputs::generated(&mut self.vfs, rng, args, &prepared.output);
                self.with_line_numbers(&text)
            }
        }
    }

    /// People paste logs: a line `!kind count` of a user's text becomes generated output.
    fn with_pastes(&mut self, text: &str, id: &str) -> String {
        let mut rng = Rng::named(&format!("paste {id}"));
        let mut lines = Vec::new();
        for line in text.lines() {
            let text = outputs::generated(&mut self.vfs, &mut rng, "", line);
            lines.push(text.trim_end().to_owned());
        }
        self.with_line_numbers(&lines.join("\n"))
    }

    /// Replaces `{{path|text}}` by the line number of that text now.
    fn with_line_numbers(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let hole = after.split_once("}}").and_then(|(place, tail)| {
                place.split_once('|').map(|(path, needle)| (path, needle, tail))
            });
            out.push_str(before);
            match hole {
                Some((path, needle, tail)) if self.vfs.files.contains_key(path) => {
                    out += &self.vfs.line_of(path, needle).to_string();
                    rest = tail;
                }
                _ => {
                    out.push_str("{{");
                    rest = after;
                }
            }
        }
        out + rest
    }

    pub fn finish(mut self) -> String {
        self.lines.extend(self.facts.lines(&self.labels));
        self.lines.join("\n") + "\n"
    }
}
