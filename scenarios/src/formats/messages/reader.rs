//! Conversion of messages and items to the steps of a recording.

use std::collections::HashMap;

use ctxbench_core::content::{Part, ToolCall};
use serde_json::{Map, Value};

use super::super::lines::{flag, str_of, string};
use super::super::recording::{
    ContextPlace, Input, MessagePart, RecordingCompaction, RecordingReply, RecordingStep, StepKind,
};
use super::at_provider;
use super::containers::stamp;
use super::content::{content, text_of};
use super::usage;

/// Items of the Responses API, other than messages, that are parts of a reply.
const CALLS: &[&str] = &[
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
];

/// Returns whether a type is an item of the Responses API.
pub(super) fn is_item(kind: &str) -> bool {
    CALLS.contains(&kind)
        || at_provider::KINDS.contains(&kind)
        || kind.ends_with("_call_output")
        || matches!(kind, "reasoning" | "compaction")
}

/// Collects the steps of one conversation.
#[derive(Default)]
pub(in super::super) struct MessageReader {
    /// Model of replies without their own.
    pub(in super::super) model: Option<String>,
    /// Subagent of the current messages.
    pub(in super::super) agent: Option<String>,
    steps: Vec<RecordingStep>,
    /// Number of messages so far.
    count: usize,
    /// Newest call of each name, for results without an id.
    calls: HashMap<String, String>,
    /// Id of the newest call.
    last_call: Option<String>,
}

impl MessageReader {
    /// Returns the steps, each linked to the previous one.
    pub(in super::super) fn finish(self) -> Vec<RecordingStep> {
        let mut steps = self.steps;
        for (n, step) in steps.iter_mut().enumerate() {
            step.name = Some(format!("step {n}"));
            step.parent = n.checked_sub(1).map(|n| format!("step {n}"));
        }
        steps
    }

    pub(in super::super) fn push(&mut self, step: RecordingStep) {
        self.steps.push(RecordingStep { agent: self.agent.clone(), ..step });
    }

    /// Adds a user message with a single text.
    pub(in super::super) fn add_text(&mut self, line: usize, text: &str) {
        let input = Input { pieces: vec![MessagePart::text(text)], blocks: 1, ..Input::default() };
        self.push(RecordingStep { line, what: StepKind::Input(input), ..RecordingStep::default() });
    }

    /// Adds a message or an item.
    pub(in super::super) fn item(&mut self, line: usize, o: &Map<String, Value>) {
        self.count += 1;
        let step = RecordingStep { line, stamp: stamp(o), ..RecordingStep::default() };
        let kind = str_of(o, "type").unwrap_or_default();
        match str_of(o, "role") {
            Some("system" | "developer") => self.standing(step, o),
            Some("user" | "human") => self.input(step, o, content(o.get("content"))),
            Some("assistant" | "ai" | "model") => self.reply(step, o),
            Some("tool") => self.result(step, o, str_of(o, "tool_call_id")),
            Some("function") => {
                let call = str_of(o, "name").and_then(|n| self.calls.get(n)).cloned();
                self.result(step, o, call.as_deref());
            }
            // Notes of the program at the end of a run.
            Some("exit") => {}
            Some(role) => {
                let what = StepKind::Unknown(format!("message of the role {role:?}"));
                self.push(RecordingStep { what, ..step });
            }
            None if str_of(o, "object") == Some("response") => self.response(step, o),
            None if kind.ends_with("_call_output") => {
                self.result(step, o, str_of(o, "call_id"));
            }
            None if is_item(kind) => self.part(step, o, kind, None),
            None => {
                let what = StepKind::Unknown(format!("item of the type {kind:?}"));
                self.push(RecordingStep { what, ..step });
            }
        }
    }

    /// Adds a text before the conversation. After the first message, it joins a message instead.
    fn standing(&mut self, step: RecordingStep, o: &Map<String, Value>) {
        let text = text_of(&content(o.get("content")));
        if text.is_empty() {
            return;
        }
        let begun =
            self.steps.iter().any(|s| matches!(s.what, StepKind::Input(_) | StepKind::Reply(_)));
        let what = if begun {
            let pieces = vec![MessagePart::Added(Part::Text(text.into()), ContextPlace::System)];
            StepKind::Input(Input { pieces, blocks: 1, ..Input::default() })
        } else {
            StepKind::System(text)
        };
        self.push(RecordingStep { what, ..step });
    }

    fn input(&mut self, step: RecordingStep, o: &Map<String, Value>, mut pieces: Vec<MessagePart>) {
        let blocks = pieces.len();
        if pieces.is_empty() {
            // An empty message still counts as a message.
            pieces.push(MessagePart::Shown(Part::Text("".into())));
        }
        let what = StepKind::Input(Input { id: string(o, "id"), pieces, blocks });
        self.push(RecordingStep { what, ..step });
    }

    fn result(&mut self, step: RecordingStep, o: &Map<String, Value>, call: Option<&str>) {
        let output = ["content", "output"].iter().find_map(|k| o.get(*k).filter(|v| !v.is_null()));
        let mut pieces = content(output);
        if pieces.is_empty()
            && let Some(other @ (Value::Object(_) | Value::Number(_) | Value::Bool(_))) = output
        {
            // Some agents store the result of a tool unchanged.
            pieces.push(MessagePart::text(&other.to_string()));
        }
        let call_id = call.map(str::to_string).or(self.last_call.clone()).unwrap_or_default();
        let is_error = flag(o, "is_error") || str_of(o, "status") == Some("error");
        let result = MessagePart::Result { call_id, pieces, is_error };
        let what = StepKind::Input(Input { id: None, pieces: vec![result], blocks: 1 });
        self.push(RecordingStep { what, ..step });
    }

    fn reply(&mut self, step: RecordingStep, o: &Map<String, Value>) {
        let mut pieces = Vec::new();
        let thoughts = ["reasoning_content", "reasoning", "thinking"];
        let thought = thoughts.iter().find_map(|k| str_of(o, k).filter(|t| !t.is_empty()));
        let signed = content(o.get("thinking_blocks").filter(|b| b.is_array()));
        match thought {
            // The same text again, with the signature that is sent back.
            _ if !signed.is_empty() => pieces.extend(signed),
            Some(text) => {
                pieces.push(MessagePart::Said(Part::Reasoning {
                    text: text.into(),
                    encrypted: None,
                }));
            }
            None => {}
        }
        pieces.extend(content(o.get("content")));
        pieces.extend(str_of(o, "refusal").filter(|t| !t.is_empty()).map(MessagePart::text));
        for call in o.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            pieces.extend(call.as_object().map(|c| self.call(c)));
        }
        if let Some(call) = o.get("function_call").and_then(Value::as_object) {
            pieces.push(self.call(call));
        }
        for piece in &pieces {
            if let MessagePart::Said(Part::Call(call)) = piece {
                self.remember(&call.name, &call.id);
            }
        }
        // A message of the Responses API is part of a reply, like the items around it.
        let item = str_of(o, "type") == Some("message") && !o.contains_key("usage");
        let response = (!item).then(|| format!("message {}", self.count));
        self.add(step, o, pieces, response);
    }

    fn call(&mut self, o: &Map<String, Value>) -> MessagePart {
        let function = o.get("function").and_then(Value::as_object).unwrap_or(o);
        let name = str_of(function, "name").unwrap_or_default().to_string();
        let written = ["arguments", "input", "args"]
            .iter()
            .find_map(|k| function.get(*k))
            .or(o.get("custom"));
        let arguments = match written {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "{}".to_string(),
            Some(other) => other.to_string(),
        };
        let id = string(o, "call_id").or(string(o, "id")).filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call-{}", self.count));
        self.remember(&name, &id);
        MessagePart::Said(Part::Call(ToolCall::new(id, name, arguments)))
    }

    fn remember(&mut self, name: &str, id: &str) {
        self.calls.insert(name.to_string(), id.to_string());
        self.last_call = Some(id.to_string());
    }

    /// Adds an item that is part of a reply.
    fn part(
        &mut self,
        step: RecordingStep,
        o: &Map<String, Value>,
        kind: &str,
        response: Option<String>,
    ) {
        let pieces = match kind {
            "reasoning" => {
                let summary = text_of(&content(o.get("summary")));
                let full = text_of(&content(o.get("content")));
                let text = if full.is_empty() { summary } else { full };
                let encrypted = str_of(o, "encrypted_content");
                // The encrypted part is sent again, not the readable text.
                let shown =
                    Part::Reasoning { text: text.into(), encrypted: encrypted.map(Into::into) };
                vec![MessagePart::Shown(shown), MessagePart::Opaque]
            }
            "compaction" => {
                return self.push(RecordingStep {
                    what: StepKind::Compaction(RecordingCompaction::default()),
                    ..step
                });
            }
            _ if CALLS.contains(&kind) => {
                let name = str_of(o, "name")
                    .map_or_else(|| kind.trim_end_matches("_call").to_string(), str::to_string);
                let mut call = o.clone();
                call.insert("name".into(), name.into());
                if let Some(action) = o.get("action").or_else(|| o.get("operation")) {
                    call.insert("arguments".into(), action.clone());
                }
                vec![self.call(&call)]
            }
            _ => at_provider::pieces(kind, o, &format!("call-{}-{}", self.count, self.steps.len())),
        };
        self.add(step, o, pieces, response);
    }

    /// Adds a complete answer of the Responses API. Its items form one reply.
    fn response(&mut self, step: RecordingStep, o: &Map<String, Value>) {
        let name = string(o, "id").unwrap_or_else(|| format!("message {}", self.count));
        let items = o.get("output").and_then(Value::as_array).into_iter().flatten();
        let items: Vec<&Map<String, Value>> = items.filter_map(Value::as_object).collect();
        // Ids of items are not the id of the reply.
        for (n, item) in items.iter().enumerate() {
            let mut item = (*item).clone();
            if item.contains_key("role") {
                item.remove("id");
            }
            if n == 0 {
                for key in ["usage", "model"] {
                    item.extend(o.get(key).map(|v| (key.to_string(), v.clone())));
                }
            }
            let kind = string(&item, "type").unwrap_or_default();
            if kind == "message" || item.contains_key("role") {
                let pieces = content(item.get("content"));
                self.add(step.clone(), &item, pieces, Some(name.clone()));
            } else {
                self.part(step.clone(), &item, &kind, Some(name.clone()));
            }
        }
    }

    fn add(
        &mut self,
        step: RecordingStep,
        o: &Map<String, Value>,
        pieces: Vec<MessagePart>,
        response: Option<String>,
    ) {
        let counters = usage_of(o).and_then(usage::counters);
        let model =
            string(o, "model").or_else(|| string(within(o, &["extra", "response"])?, "model"));
        let model = model.filter(|m| !m.is_empty()).or(self.model.clone());
        let reply = RecordingReply {
            id: string(o, "id").filter(|_| str_of(o, "role").is_some()),
            response,
            model,
            blocks: pieces.len(),
            pieces,
            counters: counters.ok_or_else(|| "a reply without counters".to_string()),
            ..RecordingReply::default()
        };
        self.push(RecordingStep { what: StepKind::Reply(reply), ..step });
    }
}

/// Returns the counters of a message, from one of the members that agents use.
fn usage_of(o: &Map<String, Value>) -> Option<&Map<String, Value>> {
    const PLACES: &[&[&str]] = &[
        &["usage"],
        &["extra", "response", "usage"],
        &["response_metadata", "token_usage"],
        &["metadata", "usage"],
    ];
    PLACES.iter().find_map(|path| within(o, path))
}

/// Returns the object at a path of member names.
fn within<'a>(o: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Map<String, Value>> {
    path.iter().try_fold(o, |at, key| at.get(*key)?.as_object())
}
