//! OpenHands: rows of a benchmark's `output.jsonl`, each an instance with its `history` of events,
//! and the folder of a conversation of its SDK (`base_state.json` and `events/event-*.json`).
//!
//! Rules, where the format leaves a choice:
//! - Each row is a session, named by its `instance_id`.
//! - Events of one response of the model are one reply: its text once, and a call per action. Of
//!   agents that do without function calls, the action is the call.
//! - Counters are those that `metrics` (in a folder `stats` of the base state) has for the id of
//!   the response, else the `usage` in it. Tokens read from the cache are part of the prompt there.
//! - Recalled knowledge (of the workspace, skills) was sent to the model, in a frame that is not
//!   recorded; it joins the message.
//! - A condensation is a recorded compaction; that of a request by the user is a manual one.

mod events;
mod sdk;

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::formats::prelude::*;
use events::usages;
use sdk::{EVENTS, STATE};

pub(super) const FORMAT: Format = Format {
    title: "OpenHands",
    name: "openhands",
    untold: "the frame around recalled knowledge, the request for a summary, and in benchmark rows \
             without function calls the exact words of a reply",
    sniff,
    read,
    parts: no_parts,
};

fn sniff(head: &Head) -> bool {
    if let Some(entries) = &head.entries {
        return [STATE, EVENTS].iter().all(|name| entries.iter().any(|e| e == name));
    }
    let events = |list: &Value| match list.get(0) {
        Some(Value::Array(pair)) => pair.first().is_some_and(is_event),
        Some(event) => is_event(event),
        None => false,
    };
    match head.value() {
        list @ Value::Array(_) => events(list),
        Value::Object(row) => {
            let of_row = row.contains_key("instance_id") || row.contains_key("metadata");
            // A run that failed immediately has no events.
            let failed = || {
                let agent = row.get("metadata").and_then(|m| m.get("agent_class"));
                agent.is_some() && row.contains_key("instance")
            };
            match row.get("history") {
                None | Some(Value::Null) => of_row && failed(),
                Some(history) => of_row && events(history),
            }
        }
        _ => false,
    }
}

fn is_event(value: &Value) -> bool {
    let Some(o) = value.as_object() else { return false };
    let acts = o.contains_key("action") || o.contains_key("observation");
    (acts && o.contains_key("source") && o.contains_key("id"))
        || (o.contains_key("source")
            && str_of(o, "kind").is_some_and(|k| k.ends_with("Event") || k == "Condensation"))
}

fn read(source: &Source<'_>, sink: &mut Sink<'_>) -> Result<(), Ended> {
    if let Some(folder) = source.path().filter(|p| p.is_dir()) {
        return sink(sdk::folder(folder));
    }
    let head = source.head()?;
    if head.is_document() || head.value().is_array() {
        // A trajectory that was saved separately: only its events, or one row.
        return sink(row(&Document::from_source(source)?, None));
    }
    lines::rows(source, &mut |document, id| {
        let id = id.unwrap_or_else(|| format!("{}-{}", source.stem(), document.line));
        sink(row(document, Some(id)))
    })
}

/// Returns the session of a row. `id` names it if the row does not.
fn row(document: &Document<'_>, id: Option<String>) -> Result<Recording, InputError> {
    let mut out = Recording::default();
    if document.text.trim_start().starts_with('[') {
        let events = events_of(document, Some(document.raw()?), &mut out);
        out.steps = events::steps(events, HashMap::new(), None);
        return Ok(out);
    }
    let members = document.members()?;
    out.id = id.map(|id| members.text("instance_id").unwrap_or(id));
    let metadata = members.value("metadata");
    let model = ["llm_config", "llm"].iter().find_map(|k| metadata.get(*k)?.get("model"));
    let model = model.and_then(Value::as_str).map(str::to_string);
    let instance = members.value("instance");
    out.title = instance.get("problem_statement").and_then(|t| first_line(t.as_str()?));
    if let Some(error) = members.value("error").as_str() {
        let first = error.lines().next().unwrap_or_default();
        out.left_out.push(format!("{}:{}: the run failed: {first}", document.file, document.line));
    }
    let events = events_of(document, members.raw("history"), &mut out);
    out.steps = events::steps(events, usages(&members.value("metrics")), model);
    Ok(out)
}

/// Returns the events of a list. Old rows pair each action with its observation.
fn events_of(
    document: &Document<'_>,
    list: Option<&RawValue>,
    out: &mut Recording,
) -> Vec<RecordedLine> {
    let items: Vec<Value> = list.and_then(|l| escapes::from_str(l.get()).ok()).unwrap_or_default();
    if !items.first().is_some_and(Value::is_array) {
        // The text of the list gives the lines of its items.
        return document.objects(list, out);
    }
    let object = |v: Value| match v {
        Value::Object(object) => Some(RecordedLine { number: document.line, object }),
        _ => None,
    };
    let pairs =
        items.into_iter().filter_map(|p| if let Value::Array(p) = p { Some(p) } else { None });
    pairs.flatten().filter_map(object).collect()
}
