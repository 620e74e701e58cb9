//! Events of OpenHands up to version 0.62: actions of the agent and observations of the
//! environment.

use std::collections::{HashMap, HashSet};

use ctxbench_core::content::{Part, ToolCall};
use ctxbench_core::session::Trigger;
use serde_json::{Map, Value};

use super::super::lines::{RecordedLine, str_of, string};
use super::super::messages::{content, definitions, media};
use super::super::recording::{
    ContextPlace, Counters, Input, MessagePart, RecordingCompaction, RecordingReply, RecordingStep,
    StepKind,
};
use super::super::time;
use super::counted;

/// Arguments of an action that the model did not write.
const NO_ARGUMENTS: &[&str] = &[
    "thought",
    "blocking",
    "is_input",
    "hidden",
    "confirmation_state",
    "security_risk",
    "cwd",
    "is_static",
];

/// Actions and observations of the program itself, which are not sent to the model.
const UNSEEN: &[&str] = &[
    "change_agent_state",
    "agent_state_changed",
    "null",
    "pause",
    "resume",
    "start",
    "loop_recovery",
];

pub(super) fn steps(
    events: Vec<RecordedLine>,
    usages: HashMap<String, Counters>,
    model: Option<String>,
) -> Vec<RecordingStep> {
    let mut reader = EventReader {
        usages,
        model,
        steps: Vec::new(),
        said: HashSet::new(),
        calls: HashMap::new(),
        asked: false,
    };
    events.into_iter().for_each(|e| reader.event(e));
    reader.steps
}

struct EventReader {
    usages: HashMap<String, Counters>,
    model: Option<String>,
    steps: Vec<RecordingStep>,
    /// Responses with a text that was added already.
    said: HashSet<String>,
    /// Ids of calls, by the ids of their events.
    calls: HashMap<u64, String>,
    /// The user requested a condensation.
    asked: bool,
}

impl EventReader {
    fn event(&mut self, event: RecordedLine) {
        let RecordedLine { number: line, object: o } = event;
        let stamp = str_of(&o, "timestamp").and_then(time::normal);
        let step = RecordingStep { line, stamp, ..RecordingStep::default() };
        let empty = Map::new();
        let args = o.get("args").and_then(Value::as_object).unwrap_or(&empty);
        let from_user = str_of(&o, "source") == Some("user");
        match (str_of(&o, "action"), str_of(&o, "observation")) {
            (Some(kind), _) | (None, Some(kind)) if UNSEEN.contains(&kind) => {}
            (Some("system"), _) => self.system(step, args),
            (Some("message"), _) if from_user => {
                let pieces = message(args);
                self.input(step, pieces);
            }
            (Some("message"), _) => self.reply(step, &o, args, None),
            (Some("recall"), _) => {}
            (Some("condensation_request"), _) => self.asked = true,
            (Some("condensation"), _) => {
                let trigger = if self.asked { Trigger::Manual } else { Trigger::Auto };
                self.asked = false;
                let found = RecordingCompaction {
                    summary: string(args, "summary"),
                    trigger: Some(trigger),
                    ..RecordingCompaction::default()
                };
                self.push(step, StepKind::Compaction(found));
            }
            (Some(kind), _) if !from_user => self.reply(step, &o, args, Some(kind)),
            // Actions of the user. Their observation joins the next message.
            (Some(_), _) => {}
            (None, Some("recall")) => self.recalled(step, &o),
            (None, Some(_)) => self.observed(step, &o),
            (None, None) => {
                let what =
                    StepKind::Unknown("event that is neither an action nor an observation".into());
                self.push(step, what);
            }
        }
    }

    fn push(&mut self, step: RecordingStep, what: StepKind) {
        self.steps.push(RecordingStep { what, ..step });
    }

    fn input(&mut self, step: RecordingStep, pieces: Vec<MessagePart>) {
        let blocks = pieces.len();
        self.push(step, StepKind::Input(Input { id: None, pieces, blocks }));
    }

    fn system(&mut self, step: RecordingStep, args: &Map<String, Value>) {
        if let Some(text) = string(args, "content") {
            self.push(step.clone(), StepKind::System(text));
        }
        if let Some(tools) = args.get("tools").and_then(Value::as_array) {
            self.push(step, StepKind::Tools(definitions(tools)));
        }
    }

    /// Adds a reply, or a part of one for an action.
    fn reply(
        &mut self,
        step: RecordingStep,
        o: &Map<String, Value>,
        args: &Map<String, Value>,
        action: Option<&str>,
    ) {
        let called = o.get("tool_call_metadata").and_then(Value::as_object);
        let response = called.and_then(|c| c.get("model_response")?.as_object());
        let id = response.and_then(|r| string(r, "id"));
        let message = response.and_then(|r| r.get("choices")?.get(0)?.get("message")?.as_object());
        let event = o.get("id").and_then(Value::as_u64).unwrap_or_default();
        let mut pieces = Vec::new();
        let first = id.as_ref().is_none_or(|id| self.said.insert(id.clone()));
        match message {
            Some(message) if first => {
                let thought = str_of(message, "reasoning_content").filter(|t| !t.is_empty());
                pieces.extend(thought.map(|t| {
                    MessagePart::Said(Part::Reasoning { text: t.into(), encrypted: None })
                }));
                pieces.extend(content(message.get("content")));
            }
            Some(_) => {}
            None => {
                let words =
                    if action.is_some() { args.get("thought") } else { args.get("content") };
                pieces.extend(content(words));
            }
        }
        if let Some(kind) = action {
            let (call_id, name, arguments) = match called {
                Some(called) => self.as_called(called, message, kind, args),
                None => (format!("event-{event}"), kind.to_string(), own_arguments(args)),
            };
            self.calls.insert(event, call_id.clone());
            pieces.push(MessagePart::Said(Part::Call(ToolCall::new(call_id, name, arguments))));
        }
        let known = id.as_ref().and_then(|id| self.usages.get(id).cloned());
        let usage = || counted(response?.get("usage")?.as_object()?);
        let counters = known.or_else(usage).filter(|_| first);
        let model = response.and_then(|r| string(r, "model")).or(self.model.clone());
        let reply = RecordingReply {
            response: Some(id.unwrap_or_else(|| format!("event {event} of line {}", step.line))),
            model,
            blocks: pieces.len(),
            pieces,
            counters: counters.ok_or_else(|| "a reply without counters".to_string()),
            ..RecordingReply::default()
        };
        self.push(step, StepKind::Reply(reply));
    }

    /// Returns a call as the model wrote it: id, name, arguments.
    fn as_called(
        &self,
        called: &Map<String, Value>,
        message: Option<&Map<String, Value>>,
        kind: &str,
        args: &Map<String, Value>,
    ) -> (String, String, String) {
        let id = string(called, "tool_call_id").unwrap_or_default();
        let name = str_of(called, "function_name").unwrap_or(kind).to_string();
        let calls = message.and_then(|m| m.get("tool_calls")?.as_array());
        let written = calls.into_iter().flatten().find(|c| c.get("id").is_some_and(|i| *i == id));
        let written = written.and_then(|c| c.get("function")?.get("arguments")?.as_str());
        let arguments = written.map_or_else(|| own_arguments(args), str::to_string);
        (id, name, arguments)
    }

    fn observed(&mut self, step: RecordingStep, o: &Map<String, Value>) {
        let pieces = content(o.get("content"));
        let called =
            o.get("tool_call_metadata").and_then(|c| string(c.as_object()?, "tool_call_id"));
        let cause = || self.calls.get(&o.get("cause")?.as_u64()?).cloned();
        let failed = str_of(o, "observation") == Some("error");
        match called.or_else(cause) {
            Some(call_id) => {
                let result = MessagePart::Result { call_id, pieces, is_error: failed };
                self.input(step, vec![result]);
            }
            // Observation of an action of the user or of the program itself.
            None => {
                let place = |piece| match piece {
                    MessagePart::Said(part) => MessagePart::Added(part, ContextPlace::Message),
                    other => other,
                };
                self.input(step, pieces.into_iter().map(place).collect());
            }
        }
    }

    /// Adds knowledge of the workspace, and knowledge that the user's text triggered.
    fn recalled(&mut self, step: RecordingStep, o: &Map<String, Value>) {
        let Some(extras) = o.get("extras").and_then(Value::as_object) else { return };
        let said = |key: &str| str_of(extras, key).map(str::to_string);
        let knowledge = extras.get("microagent_knowledge").and_then(Value::as_array);
        let knowledge =
            knowledge.into_iter().flatten().filter_map(|k| string(k.as_object()?, "content"));
        let all =
            ["repo_instructions", "additional_agent_instructions", "conversation_instructions"];
        let all =
            all.into_iter().filter_map(said).chain(knowledge).filter(|t| !t.trim().is_empty());
        let pieces: Vec<MessagePart> =
            all.map(|t| MessagePart::Added(Part::Text(t.into()), ContextPlace::Message)).collect();
        match self.steps.last_mut().map(|s| &mut s.what) {
            _ if pieces.is_empty() => {}
            // It was sent together with the message that triggered it.
            Some(StepKind::Input(input)) => {
                input.blocks += pieces.len();
                input.pieces.splice(0..0, pieces);
            }
            _ => self.input(step, pieces),
        }
    }
}

fn message(args: &Map<String, Value>) -> Vec<MessagePart> {
    let mut pieces = content(args.get("content"));
    let images = args.get("image_urls").and_then(Value::as_array).into_iter().flatten();
    pieces.extend(
        images.filter_map(Value::as_str).map(|url| MessagePart::Said(Part::Image(media(url)))),
    );
    if pieces.is_empty() {
        pieces.push(MessagePart::Shown(Part::Text("".into())));
    }
    pieces
}

/// Returns the arguments of an action without a recorded call.
fn own_arguments(args: &Map<String, Value>) -> String {
    let own = |(key, value): &(&String, &Value)| {
        !NO_ARGUMENTS.contains(&key.as_str()) && !value.is_null()
    };
    let own: Map<String, Value> =
        args.iter().filter(own).map(|(k, v)| (k.clone(), v.clone())).collect();
    Value::Object(own).to_string()
}
