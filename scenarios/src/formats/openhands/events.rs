//! Events of OpenHands up to version 0.62: actions of the agent and observations of the
//! environment.

use std::collections::{HashMap, HashSet};

use super::super::messages::counters;
use crate::formats::prelude::*;

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
    let mut reader = EventReader { usages, model, ..EventReader::default() };
    events.into_iter().for_each(|e| reader.event(e));
    reader.steps
}

/// Reader of the events of both generations.
#[derive(Default)]
pub(super) struct EventReader {
    usages: HashMap<String, Counters>,
    model: Option<String>,
    pub(super) steps: Vec<RecordingStep>,
    /// Responses that were added already, with their text and counters.
    said: HashSet<String>,
    /// Ids of calls, by the ids of their events.
    calls: HashMap<u64, String>,
    pub(super) asked: bool,
}

impl EventReader {
    fn event(&mut self, event: RecordedLine) {
        let RecordedLine { number: line, object: o } = event;
        let what = match str_of(&o, "kind") {
            Some(kind) => self.sdk_event(kind, &o),
            None => self.legacy_event(line, &o),
        };
        let stamp = str_of(&o, "timestamp").and_then(time::normal);
        self.steps.extend(what.into_iter().map(|w| RecordingStep::new(line, stamp.clone(), w)));
    }

    /// Returns the compaction of a condensation, which the user may have requested.
    pub(super) fn condensation(&mut self, o: &Map<String, Value>) -> Vec<StepKind> {
        let trigger = if std::mem::take(&mut self.asked) { Trigger::Manual } else { Trigger::Auto };
        vec![StepKind::Compaction(RecordingCompaction {
            summary: string(o, "summary"),
            trigger: Some(trigger),
            ..RecordingCompaction::default()
        })]
    }

    /// Returns a part of the reply with this id. Its counters belong to its first part.
    pub(super) fn part_of_reply(&mut self, id: String, pieces: Vec<MessagePart>) -> RecordingReply {
        let first = self.said.insert(id.clone());
        RecordingReply {
            model: self.model.clone(),
            counters: known(self.usages.get(&id).filter(|_| first).cloned()),
            ..RecordingReply::new(id, pieces)
        }
    }

    fn legacy_event(&mut self, line: usize, o: &Map<String, Value>) -> Vec<StepKind> {
        let args = object_in(o, "args");
        let from_user = str_of(o, "source") == Some("user");
        match (str_of(o, "action"), str_of(o, "observation")) {
            (Some(kind), _) | (None, Some(kind)) if UNSEEN.contains(&kind) => vec![],
            (Some("system"), _) => system(args),
            (Some("message"), _) if from_user => vec![StepKind::question(None, message(args))],
            (Some("message"), _) => vec![self.reply(line, o, args, None)],
            (Some("recall"), _) => vec![],
            (Some("condensation_request"), _) => {
                self.asked = true;
                vec![]
            }
            (Some("condensation"), _) => self.condensation(args),
            (Some(kind), _) if !from_user => vec![self.reply(line, o, args, Some(kind))],
            // Actions of the user. Their observation joins the next message.
            (Some(_), _) => vec![],
            (None, Some("recall")) => self.recalled(o).into_iter().collect(),
            (None, Some(_)) => vec![self.observed(o)],
            (None, None) => {
                let what = "event that is neither an action nor an observation";
                vec![StepKind::Unknown(what.into())]
            }
        }
    }

    /// Converts a reply, or a part of one for an action.
    fn reply(
        &mut self,
        line: usize,
        o: &Map<String, Value>,
        args: &Map<String, Value>,
        action: Option<&str>,
    ) -> StepKind {
        let called = object_of(o, "tool_call_metadata");
        let response = object_in(object_in(o, "tool_call_metadata"), "model_response");
        let id = string(response, "id");
        let choice = response.get("choices").and_then(|choices| choices.get(0));
        let message = choice.and_then(|choice| choice.get("message")?.as_object());
        let event = o.get("id").and_then(Value::as_u64).unwrap_or_default();
        let mut pieces = Vec::new();
        let first = id.as_ref().is_none_or(|id| !self.said.contains(id));
        match message {
            Some(message) if first => {
                let thought = str_of(message, "reasoning_content").filter(|t| !t.is_empty());
                pieces.extend(thought.map(|t| MessagePart::reasoning(t, None)));
                pieces.extend(content(message.get("content")));
            }
            Some(_) => {}
            None if action.is_some() => pieces.extend(content(args.get("thought"))),
            None => pieces.extend(content(args.get("content"))),
        }
        if let Some(kind) = action {
            let (call_id, name, arguments) = match called {
                Some(called) => as_called(called, message, kind, args),
                None => (format!("event-{event}"), kind, own_arguments(args)),
            };
            pieces.push(MessagePart::call(&call_id, name, Some(&arguments)));
            self.calls.insert(event, call_id);
        }
        let usage = || Some(counters(object_in(response, "usage"))?.called(id.as_deref()?));
        let usage = usage().filter(|_| first);
        let id = id.unwrap_or_else(|| format!("event {event} of line {line}"));
        let mut reply = self.part_of_reply(id, pieces);
        if let (Err(_), Some(usage)) = (&reply.counters, usage) {
            reply.counters = Ok(usage);
        }
        reply.model = string(response, "model").or(reply.model);
        StepKind::Reply(reply)
    }

    fn observed(&self, o: &Map<String, Value>) -> StepKind {
        let pieces = content(o.get("content"));
        let called = string(object_in(o, "tool_call_metadata"), "tool_call_id");
        let cause = || self.calls.get(&o.get("cause")?.as_u64()?).cloned();
        match called.or_else(cause) {
            Some(id) => StepKind::result(id, pieces, str_of(o, "observation") == Some("error")),
            // Observation of an action of the user or of the program itself.
            None => StepKind::input(added(pieces)),
        }
    }

    /// Returns knowledge of the workspace, and knowledge that the user's text triggered, unless it
    /// joins the step before.
    fn recalled(&mut self, o: &Map<String, Value>) -> Option<StepKind> {
        let extras = object_in(o, "extras");
        let all =
            ["repo_instructions", "additional_agent_instructions", "conversation_instructions"];
        let knowledge =
            objects(extras, "microagent_knowledge").filter_map(|k| str_of(k, "content"));
        let all = all.into_iter().filter_map(|k| str_of(extras, k)).chain(knowledge);
        let added = |t: &str| MessagePart::Added(Part::Text(t.into()), ContextPlace::Message);
        let pieces: Vec<MessagePart> = all.filter(|t| !t.trim().is_empty()).map(added).collect();
        match self.steps.last_mut().map(|s| &mut s.what) {
            _ if pieces.is_empty() => None,
            // It was sent together with the message that triggered it.
            Some(StepKind::Input(input)) => {
                input.pieces.splice(0..0, pieces);
                None
            }
            _ => Some(StepKind::input(pieces)),
        }
    }
}

fn system(args: &Map<String, Value>) -> Vec<StepKind> {
    let text = string(args, "content").map(StepKind::System);
    text.into_iter().chain(definitions(args.get("tools"))).collect()
}

fn as_called<'a>(
    called: &'a Map<String, Value>,
    message: Option<&Map<String, Value>>,
    kind: &'a str,
    args: &Map<String, Value>,
) -> (String, &'a str, Value) {
    let id = string(called, "tool_call_id").unwrap_or_default();
    let name = str_of(called, "function_name").unwrap_or(kind);
    let mut calls = message.into_iter().flat_map(|m| list_of(m, "tool_calls"));
    let written = calls.find(|c| c.get("id").is_some_and(|i| *i == id));
    let written = written.and_then(|c| c.pointer("/function/arguments")).filter(|a| a.is_string());
    let arguments = written.cloned().unwrap_or_else(|| own_arguments(args));
    (id, name, arguments)
}

fn message(args: &Map<String, Value>) -> Vec<MessagePart> {
    let mut pieces = content(args.get("content"));
    let images = list_of(args, "image_urls").iter().filter_map(Value::as_str);
    pieces.extend(images.map(MessagePart::image));
    pieces
}

/// Returns the arguments of an action without a recorded call.
fn own_arguments(args: &Map<String, Value>) -> Value {
    let own = |(key, value): &(&String, &Value)| {
        !NO_ARGUMENTS.contains(&key.as_str()) && !value.is_null()
    };
    args.iter().filter(own).map(|(k, v)| (k.clone(), v.clone())).collect()
}

/// Returns counters by the id of the response. `metrics` contains a single list, or one per
/// purpose.
pub(super) fn usages(metrics: &Value) -> HashMap<String, Counters> {
    let purposes = metrics.get("usage_to_metrics").and_then(Value::as_object);
    let all = std::iter::once(metrics).chain(purposes.into_iter().flat_map(Map::values));
    let lists = all.filter_map(|metrics| metrics.get("token_usages")?.as_array());
    let usage = |usage: &Value| {
        let usage = usage.as_object()?;
        let id = string(usage, "response_id")?;
        let counted = counters(usage)?.called(&*id);
        Some((id, counted))
    };
    lists.flatten().filter_map(usage).collect()
}
