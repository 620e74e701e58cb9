//! SWE-agent trajectories (`NAME.traj`).
//!
//! Rules, where the format leaves a choice:
//! - `history` contains all messages of the model, also those that processors elided from a request
//!   (`last_n_observations`, …). Without it, `trajectory` is used. If there are only `attempts`,
//!   each is a session.
//! - Of versions that parse actions from text, the `action` becomes a call of the tool `bash` and
//!   the observation its result; the text of the reply is then the `thought`.
//! - A demonstration in one message comes before the task as context that was not typed; one that
//!   is spread over messages stays as the model saw it.
//! - Messages of another `agent` than the first are those of a subagent.
//! - `model_stats` are sums over the run, and so no counters of a reply.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::actions::Actions;
use super::json::Document;
use super::lines::{RecordedLine, flag, str_of};
use super::messages::{MessageReader, content};
use super::recording::{ContextPlace, Input, MessagePart, Recording, RecordingStep, StepKind};
use super::{Format, Head, Sink, Source};
use crate::error::InputError;
use crate::escapes;

pub(super) const FORMAT: Format = Format {
    title: "SWE-agent",
    name: "swe-agent",
    untold: "counters of each reply (only sums over the run), times, definitions of the tools, and \
             which observations a history processor elided from which request",
    sniff,
    read,
    parts: super::no_parts,
};

const EXPECTED: &str = "a trajectory of SWE-agent: an object with \"history\" or \"trajectory\"";

fn sniff(head: &Head) -> bool {
    let Some(object) = head.value().as_object() else { return false };
    let first = |key: &str| object.get(key)?.as_array()?.first()?.as_object();
    let acts = |o: &Map<String, Value>| {
        o.contains_key("action") && (o.contains_key("observation") || o.contains_key("response"))
    };
    first("trajectory").is_some_and(acts)
        || first("attempts").is_some_and(|a| a.contains_key("trajectory"))
        || first("history").is_some_and(|m| m.contains_key("role") && m.contains_key("agent"))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), InputError> {
    let text = source.text()?;
    let document = Document::new(&text, source.name());
    let members = document.members(EXPECTED)?;
    let whole = |key: &str| members.get(key).is_some_and(|r| r.get().len() > 2);
    let attempts = members.get("attempts").filter(|_| !whole("history") && !whole("trajectory"));
    let Some(attempts) = attempts else {
        let _ = sink(Ok(read_attempt(&document, &members, None)));
        return Ok(());
    };
    let list: Vec<&RawValue> = serde_json::from_str(attempts.get()).unwrap_or_default();
    for (n, raw) in (1..).zip(list) {
        let attempt = document.part(raw);
        let id = format!("{}-attempt-{n}", source.stem());
        let recording = attempt.members(EXPECTED).map(|mut of_attempt| {
            for (key, raw) in &members {
                of_attempt.entry(key.clone()).or_insert(raw);
            }
            read_attempt(&attempt, &of_attempt, Some(id))
        });
        if sink(recording).is_break() {
            break;
        }
    }
    Ok(())
}

fn read_attempt(
    document: &Document<'_>,
    members: &BTreeMap<String, &RawValue>,
    id: Option<String>,
) -> Recording {
    let mut out = Recording { id, ..Recording::default() };
    let (config, mut reader) = (config(members), MessageReader::default());
    let within = |path: &[&str]| {
        let found = path.iter().try_fold(&config, |at, key| at.get(*key))?;
        found.as_str().map(str::to_string)
    };
    reader.model = within(&["agent", "model", "name"]);
    out.title = within(&["problem_statement", "text"])
        .and_then(|text| text.lines().map(str::trim).find(|l| !l.is_empty()).map(str::to_string));
    let list = |key: &str, out: &mut Recording| match members.get(key) {
        Some(raw) => document.objects(raw, out),
        None => Vec::new(),
    };
    let mut lines = list("history", &mut out);
    if lines.is_empty() {
        let steps = list("trajectory", &mut out);
        lines = steps.into_iter().enumerate().flat_map(|(n, s)| messages(s, n == 0)).collect();
    }
    let first = lines.first().and_then(|l| str_of(&l.object, "agent")).map(str::to_string);
    let is_demo = |o: &Map<String, Value>| flag(o, "is_demo");
    let alone = lines.iter().filter(|l| is_demo(&l.object)).count() == 1;
    let mut actions = Actions::default();
    for RecordedLine { number, mut object } in lines {
        out.last_line = number;
        if alone && is_demo(&object) && str_of(&object, "role") == Some("user") {
            reader.push(demonstration(number, &object));
            continue;
        }
        call(&mut object, &mut actions);
        let agent = str_of(&object, "agent").map(str::to_string);
        reader.agent = agent.filter(|a| first.as_ref().is_some_and(|f| f != a));
        reader.item(number, &object);
    }
    out.steps = reader.finish();
    out
}

fn demonstration(line: usize, message: &Map<String, Value>) -> RecordingStep {
    let place = |piece| match piece {
        MessagePart::Said(part) => {
            MessagePart::Added(part, ContextPlace::Memory("demonstration".into()))
        }
        other => other,
    };
    let pieces = content(message.get("content")).into_iter().map(place).collect();
    let what = StepKind::Input(Input { id: None, pieces, blocks: 1 });
    RecordingStep { line, what, ..RecordingStep::default() }
}

/// Returns the configuration of the run, which is an object or the text of one.
fn config(members: &BTreeMap<String, &RawValue>) -> Value {
    let read = |raw: &&RawValue| escapes::from_str::<Value>(raw.get()).ok();
    match members.get("replay_config").and_then(read) {
        Some(Value::String(text)) => escapes::from_str(&text).unwrap_or_default(),
        other => other.unwrap_or_default(),
    }
}

/// Converts a message to the form of the chat API.
fn call(message: &mut Map<String, Value>, actions: &mut Actions) {
    if let Some(id) = message.get("tool_call_ids").and_then(|ids| ids.get(0)).cloned() {
        message.insert("tool_call_id".into(), id);
    }
    actions.observe(message);
    if str_of(message, "role") != Some("assistant") {
        return;
    }
    let called = message.get("tool_calls").and_then(Value::as_array).is_some_and(|c| !c.is_empty());
    let action = str_of(message, "action").unwrap_or_default().to_string();
    if called || action.trim().is_empty() {
        return actions.pass();
    }
    let said = str_of(message, "thought").unwrap_or_default().trim_end().to_string();
    actions.act(message, &said, &action);
}

/// Returns the messages of a step of `trajectory`: the query of the first one, thought and
/// observation.
fn messages(step: RecordedLine, first: bool) -> Vec<RecordedLine> {
    let RecordedLine { number, object: mut o } = step;
    let message = |object: Map<String, Value>| RecordedLine { number, object };
    let asked = ["query", "messages"].iter().find_map(|k| o.get(*k)?.as_array().cloned());
    let asked = asked.filter(|_| first).unwrap_or_default();
    let mut out: Vec<RecordedLine> = asked
        .into_iter()
        .filter_map(|m| if let Value::Object(m) = m { Some(message(m)) } else { None })
        .collect();
    let seen = o.remove("observation").unwrap_or_default();
    o.insert("role".into(), "assistant".into());
    let said = o.get("response").cloned().unwrap_or_default();
    o.insert("content".into(), said);
    out.push(message(o));
    if seen.is_string() {
        let seen = Map::from_iter([("role".into(), "user".into()), ("content".into(), seen)]);
        out.push(message(seen));
    }
    out
}

#[cfg(test)]
mod tests;
