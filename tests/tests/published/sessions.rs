//! Sessions with given sizes: every message has the number of tokens in its publication, including
//! four for the block, so that prompts are in the publication's own unit.

use ctxbench_core::tokens::o200k;
use ctxbench_scenarios::{Scenario, jsonl};
use serde_json::{Value, json};

use crate::common;

/// Tokens of a block in addition to its text ([`crate::common::replayed::as_told`]).
const BLOCK: u64 = 4;

pub struct Talk {
    lines: Vec<Value>,
    id: &'static str,
    tool: &'static str,
    messages: usize,
}

impl Talk {
    pub fn new(id: &'static str) -> Talk {
        let head = json!({"type": "session", "version": 1, "id": id, "title": id});
        Talk { lines: vec![head], id, tool: "Bash", messages: 0 }
    }

    pub fn tools(mut self, tokens: u64) -> Talk {
        let definitions = |words: u64| {
            let description = format!("Looks it up{}", " word".repeat(words as usize));
            json!([{
                "name": "Bash",
                "description": description,
                "input_schema": {"type": "object"},
            }])
        };
        let size = |d: &Value| o200k(&d.to_string());
        let made = definitions(tokens - size(&definitions(0)));
        assert_eq!(size(&made), tokens, "tools of {}", self.id);
        self.lines.push(json!({"type": "tools", "definitions": made}));
        self
    }

    pub fn system(mut self, tokens: u64) -> Talk {
        let text = self.words(tokens);
        self.lines.push(json!({"type": "system", "text": text}));
        self
    }

    pub fn user(mut self, tokens: u64) -> Talk {
        let text = self.words(tokens);
        let id = format!("u{}", self.messages);
        self.lines.push(json!({"type": "user", "id": id, "text": text}));
        self
    }

    pub fn calling(self, tool: &'static str) -> Talk {
        Talk { tool, ..self }
    }

    /// Adds a reply of `reply` tokens with a call for each result, and the results.
    pub fn step(mut self, reply: u64, results: &[u64]) -> Talk {
        let call = o200k(self.tool) + o200k("{}") + BLOCK;
        let text = self.words(reply - call * results.len() as u64);
        let step = self.messages;
        let id = |i: usize| format!("c{step}-{i}");
        let calls: Vec<Value> = (0..results.len())
            .map(|i| json!({"id": id(i), "name": self.tool, "arguments": "{}"}))
            .collect();
        let (name, kind) = (format!("a{step}"), "assistant");
        self.lines.push(json!({"type": kind, "id": name, "text": text, "calls": calls}));
        for (i, &tokens) in results.iter().enumerate() {
            let output = self.words(tokens);
            self.lines.push(json!({"type": "tool", "call_id": id(i), "output": output}));
        }
        self
    }

    pub fn answer(self, tokens: u64) -> Talk {
        self.step(tokens, &[])
    }

    pub fn idle(mut self, ms: u64) -> Talk {
        self.lines.push(json!({"type": "idle", "ms": ms}));
        self
    }

    pub fn scenario(self) -> Scenario {
        let text = common::jsonl(&self.lines);
        Scenario::of_session(jsonl::read(text.as_bytes(), self.id).unwrap())
    }

    /// Returns a text of this many tokens including the block, different from all others of the
    /// session.
    fn words(&mut self, tokens: u64) -> String {
        self.messages += 1;
        words(self.messages, tokens)
    }
}

/// Returns a text of this many tokens including the block. The text depends on the number.
pub fn words(number: usize, tokens: u64) -> String {
    // Two letters are one or two tokens. The rest of the block is filled with copies of a one-token
    // word.
    let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
    let head = format!("{}{}", letter(number / 26), letter(number));
    let room = tokens.checked_sub(BLOCK + o200k(&head));
    let room = room.unwrap_or_else(|| panic!("{tokens} tokens are too few for a block"));
    let text = head + &" word".repeat(room as usize);
    assert_eq!(o200k(&text) + BLOCK, tokens);
    text
}
