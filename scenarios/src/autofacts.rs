//! Facts of a recording, found in the recording: needed-token recall.
//!
//! A path, number or identifier of eight or more characters that a tool result introduced (it stood
//! in no earlier message) and that the agent used at least one user turn or [`DISTANCE`] replies
//! later, in its text or the arguments of a call, is a fact; the replies that used it are its
//! needs. Restatements in between are judged where retention is measured, not here. Every agent's
//! window is looked at by itself, and a cleared conversation starts anew.

use std::collections::HashMap;

use ctxbench_core::content::Part;
use ctxbench_core::fact::{Fact, FactKind};
use ctxbench_core::session::{AssistantEntry, Entry, Session};
use serde_json::Value;

use crate::words;

/// Most facts of a session; of more, an even choice over the session is kept.
pub const MOST: usize = 400;

/// Replies between introduction and use, unless a user turn lies between them.
pub const DISTANCE: usize = 5;

/// Most needs of a fact.
const NEEDS: usize = 3;

/// Gives a session without facts those that it shows itself to have needed. Deterministic and
/// linear in the session's size.
pub fn add(session: &mut Session) {
    if session.facts.is_empty() {
        session.facts = find(session);
    }
}

/// Where a word was first seen.
enum First {
    /// In a message of the user or the agent, or in constant context.
    Elsewhere,
    /// In a tool result: index among the candidates.
    Tool(usize),
}

struct Candidate {
    token: String,
    call_id: String,
    turn: usize,
    reply: usize,
    needs: Vec<String>,
}

/// What one agent's window has shown so far.
#[derive(Default)]
struct Window {
    seen: HashMap<String, First>,
    turn: usize,
    reply: usize,
}

fn find(session: &Session) -> Vec<Fact> {
    let mut windows: HashMap<Option<&str>, Window> = HashMap::new();
    let mut candidates: Vec<Candidate> = Vec::new();
    let main = None;
    for entry in &session.entries {
        match entry {
            Entry::User(m) => {
                let window = windows.entry(m.agent.as_deref()).or_default();
                window.turn += 1;
                m.content().iter().filter_map(Part::as_said).for_each(|t| window.see(t));
            }
            Entry::Assistant(m) => {
                windows.entry(m.agent.as_deref()).or_default().reply(m, &mut candidates)
            }
            Entry::Tool(m) => {
                let window = windows.entry(m.agent.as_deref()).or_default();
                let mut found = |t: &str| window.introduce(t, &m.call_id, &mut candidates);
                m.content().iter().filter_map(Part::as_said).for_each(&mut found);
            }
            Entry::Clear { .. } => windows.clear(),
            _ => {
                if let Some(text) = entry.standing_text() {
                    windows.entry(main).or_default().see(text);
                }
            }
        }
    }
    candidates.retain(|c| !c.needs.is_empty());
    let n = candidates.len();
    let chosen = n.min(MOST);
    let mut facts = Vec::with_capacity(chosen);
    let mut next = 0;
    for (i, c) in candidates.into_iter().enumerate() {
        if next < chosen && i == next * n / chosen {
            next += 1;
            let path = words::is_path(&c.token);
            let kind = if path { FactKind::Artifact } else { FactKind::Value };
            let fact = Fact::new(format!("auto-{next}"), kind, c.token, c.call_id);
            facts.push(Fact { needs: c.needs, ..fact });
        }
    }
    facts
}

impl Window {
    /// A text that introduces nothing: its words are known from now on.
    fn see(&mut self, text: &str) {
        words::each(text, |word| {
            for form in words::forms(word) {
                if !self.seen.contains_key(form) {
                    self.seen.insert(form.to_string(), First::Elsewhere);
                }
            }
        });
    }

    fn introduce(&mut self, text: &str, call_id: &str, candidates: &mut Vec<Candidate>) {
        words::each(text, |word| {
            for form in words::forms(word) {
                if !self.seen.contains_key(form) {
                    self.seen.insert(form.to_string(), First::Tool(candidates.len()));
                    candidates.push(Candidate {
                        token: form.to_string(),
                        call_id: call_id.to_string(),
                        turn: self.turn,
                        reply: self.reply,
                        needs: Vec::new(),
                    });
                }
            }
        });
    }

    fn reply(&mut self, message: &AssistantEntry, candidates: &mut [Candidate]) {
        self.reply += 1;
        let parts = message.content();
        said(&parts, |text| {
            words::each(text, |word| {
                let Some(First::Tool(i)) = words::forms(word).find_map(|form| self.seen.get(form))
                else {
                    return;
                };
                let c = &mut candidates[*i];
                let far = self.turn > c.turn || self.reply - c.reply >= DISTANCE;
                if far && c.needs.len() < NEEDS && c.needs.last() != Some(&message.id) {
                    c.needs.push(message.id.clone());
                }
            });
        });
        said(&parts, |text| self.see(text));
        parts.iter().filter_map(Part::as_said).for_each(|text| self.see(text));
    }
}

/// What a reply says and does: its texts and the strings and numbers in its calls' arguments.
fn said(parts: &[Part], mut found: impl FnMut(&str)) {
    for part in parts {
        match part {
            Part::Text(text) => found(text),
            Part::Call(call) => match serde_json::from_str(&call.arguments) {
                Ok(value) => leaves(&value, &mut found),
                Err(_) => found(&call.arguments),
            },
            _ => {}
        }
    }
}

fn leaves(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(s) => found(s),
        Value::Number(n) => found(&n.to_string()),
        Value::Array(list) => list.iter().for_each(|v| leaves(v, found)),
        Value::Object(map) => map.values().for_each(|v| leaves(v, found)),
        _ => {}
    }
}

#[cfg(test)]
#[path = "autofacts_tests.rs"]
mod tests;
