//! Plays the story against the virtual repository and writes the session entry by entry.

use super::rng::Rng;
use super::script::{FactNote, StoryBlock, StoryCall};
use super::vfs::Vfs;
use super::{outputs, tools};
use ctxbench_core::content::ToolCall;
use ctxbench_core::fact::Fact;
use ctxbench_core::session::{AssistantEntry, Entry, Header, Session, ToolEntry, UserEntry};
use std::collections::BTreeMap;

pub struct Builder {
    vfs: Vfs,
    entries: Vec<Entry>,
    clock_ms: u64,
    users: usize,
    steps: usize,
    calls: usize,
    labels: BTreeMap<String, String>,
    last_id: String,
    /// Facts with the message in which they arise.
    facts: Vec<(FactNote, String)>,
}

impl Builder {
    /// What stands before the first message is given.
    pub fn new(entries: Vec<Entry>) -> Self {
        Self {
            vfs: Vfs::new(),
            entries,
            clock_ms: 0,
            users: 0,
            steps: 0,
            calls: 0,
            labels: BTreeMap::new(),
            last_id: String::new(),
            facts: Vec::new(),
        }
    }

    pub fn play(&mut self, blocks: Vec<StoryBlock>) {
        let mut blocks = blocks.into_iter().peekable();
        while let Some(block) = blocks.next() {
            match block {
                StoryBlock::User { think_ms, label, text } => self.user(think_ms, label, &text),
                StoryBlock::Say { label, text } => {
                    let id = self.begin_step(label);
                    let mut calls = Vec::new();
                    let mut notes = Vec::new();
                    // Facts between calls belong to the message before them.
                    while let Some(next) = blocks
                        .next_if(|next| matches!(next, StoryBlock::Call(_) | StoryBlock::Fact(_)))
                    {
                        match next {
                            StoryBlock::Call(call) => calls.push(call),
                            StoryBlock::Fact(note) => notes.push((calls.len(), note)),
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
                        self.facts.push((note, arises));
                    }
                }
                StoryBlock::Fact(note) => self.facts.push((note, self.last_id.clone())),
                StoryBlock::Call(call) => panic!("a call follows an assistant text: {}", call.args),
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
        self.last_id.clone_from(&id);
        let at = Some(self.clock_ms);
        self.entries.push(Entry::User(UserEntry {
            id,
            text: Some(text.into()),
            at,
            ..UserEntry::default()
        }));
    }

    fn begin_step(&mut self, label: Option<String>) -> String {
        self.steps += 1;
        let id = format!("a{}", self.steps);
        self.name(label.as_ref(), &id);
        id
    }

    fn step(&mut self, id: &str, text: &str, calls: &[StoryCall]) {
        let mut rng = Rng::named(&format!("step {id}"));
        self.clock_ms += rng.range(14_000, 56_000);
        let text = self.with_line_numbers(text);
        let prepared: Vec<_> = calls.iter().map(|call| tools::prepare(call, &self.vfs)).collect();
        let call = |(index, (call, prepared)): (usize, (&StoryCall, &tools::Prepared))| {
            let id = format!("c{}", self.calls + index + 1);
            ToolCall::new(id, tools::tool_name(&call.tool), prepared.arguments.as_str())
        };
        let entry = AssistantEntry {
            id: id.to_owned(),
            text: Some(text.into()),
            calls: calls.iter().zip(&prepared).enumerate().map(call).collect(),
            at: Some(self.clock_ms),
            ..AssistantEntry::default()
        };
        self.entries.push(Entry::Assistant(entry));
        self.last_id = id.to_owned();
        for (call, prepared) in calls.iter().zip(&prepared) {
            self.result(call, prepared);
        }
    }

    fn result(&mut self, call: &StoryCall, prepared: &tools::Prepared) {
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
        self.entries.push(Entry::Tool(ToolEntry {
            call_id: id,
            name: Some(tools::tool_name(&call.tool).to_owned()),
            output: Some(output.trim_end_matches('\n').into()),
            is_error: call.failed.then_some(true),
            at: Some(self.clock_ms),
            ..ToolEntry::default()
        }));
    }

    fn output(&mut self, call: &StoryCall, prepared: &tools::Prepared, rng: &mut Rng) -> String {
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

    /// The session; labels that facts need become the ids of the messages that bear them.
    pub fn finish(self, header: Header) -> Session {
        let Builder { entries, facts, labels, .. } = self;
        let id = |fact: &str, label: &String| match labels.get(label) {
            Some(id) => id.clone(),
            None => panic!("fact {fact} needs a message that exists: {label}"),
        };
        let fact = |(note, arises): (FactNote, String)| Fact {
            needs: note.needs.iter().map(|label| id(&note.id, label)).collect(),
            tokens: note.tokens,
            superseded_by: note.superseded_by.map(|id| format!("f-{id}")),
            ..Fact::new(format!("f-{}", note.id), note.kind, "", arises)
        };
        Session { header, entries, facts: facts.into_iter().map(fact).collect() }
    }
}
