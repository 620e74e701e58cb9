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
//! - `model_stats` are sums over the run, and so no counters of a reply. Its cost is one call.

use super::actions::Actions;
use crate::formats::prelude::*;

pub(super) const FORMAT: Format = Format {
    title: "SWE-agent",
    name: "swe-agent",
    untold: "counters of each reply (only sums over the run), times, definitions of the tools, and \
             which observations a history processor elided from which request",
    sniff,
    read,
    parts: no_parts,
};

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

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    let document = Document::from_source(source)?;
    let members = document.members()?;
    let whole = |key: &str| members.raw(key).is_some_and(|r| r.get().len() > 2);
    if whole("history") || whole("trajectory") || members.raw("attempts").is_none() {
        return sink(Ok(read_attempt(&document, &members, None)));
    }
    for (n, attempt) in (1..).zip(document.items(members.raw("attempts"))) {
        let id = format!("{}-attempt-{n}", source.stem());
        let recording = attempt.members();
        let recording = recording.map(|own| read_attempt(&attempt, &own.or(&members), Some(id)));
        sink(recording)?;
    }
    Ok(())
}

fn read_attempt(document: &Document<'_>, members: &Members<'_>, id: Option<String>) -> Recording {
    let (config, mut reader) = (config(members), MessageReader::default());
    let within = |path: &str| config.pointer(path).and_then(Value::as_str);
    reader.model = within("/agent/model/name").map(str::to_string);
    reader.out.title = within("/problem_statement/text").and_then(first_line);
    let mut lines = document.objects(members.raw("history"), &mut reader.out);
    if lines.is_empty() {
        let steps = document.objects(members.raw("trajectory"), &mut reader.out);
        lines = steps.into_iter().enumerate().flat_map(|(n, s)| messages(s, n == 0)).collect();
    }
    let first = lines.first().and_then(|l| string(&l.object, "agent"));
    let is_demo = |o: &Map<String, Value>| flag(o, "is_demo");
    let alone = lines.iter().filter(|l| is_demo(&l.object)).count() == 1;
    let last = lines.last().map_or(document.line, |l| l.number);
    let mut actions = Actions::default();
    for RecordedLine { number, mut object } in lines {
        if alone && is_demo(&object) && str_of(&object, "role") == Some("user") {
            reader.push(number, None, demonstration(&object));
            continue;
        }
        if let Some(id) = list_of(&object, "tool_call_ids").first().cloned() {
            object.insert("tool_call_id".into(), id);
        }
        actions.convert(&mut object, action);
        let agent = string(&object, "agent");
        reader.agent = agent.filter(|a| first.as_ref().is_some_and(|f| f != a));
        reader.item(number, &object);
    }
    let usd = cost(members.value("info").pointer("/model_stats/instance_cost"));
    let paid = usd.map(|usd| RecordingStep::of_cost(last, reader.model.clone(), usd));
    reader.out.steps.extend(paid);
    Recording { id, ..reader.out }
}

fn demonstration(message: &Map<String, Value>) -> StepKind {
    let place = ContextPlace::Memory("demonstration".into());
    let pieces = content(message.get("content")).into_iter().map(|p| p.added(place.clone()));
    StepKind::Input(Input { id: None, pieces: pieces.collect() })
}

/// Returns the configuration of the run, which is an object or the text of one.
fn config(members: &Members<'_>) -> Value {
    match members.value("replay_config") {
        Value::String(text) => escapes::from_str(&text).unwrap_or_default(),
        other => other,
    }
}

fn action(message: &Map<String, Value>) -> Option<(String, String)> {
    let action = string(message, "action").filter(|a| !a.trim().is_empty())?;
    let thought = str_of(message, "thought").unwrap_or_default();
    Some((thought.trim_end().to_string(), action))
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
