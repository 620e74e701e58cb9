//! Compares the end of a run with the outcome in its case.

use std::sync::Arc;

use ctxbench_core::block::BlockKind;
use ctxbench_core::content::Part;
use ctxbench_core::engine::{Event, TimedEvent};
use ctxbench_strategies::conform::RequestView;
use serde_json::{Map, Value, json};

use super::compare::{Difference, difference};
use super::world::SentRequests;

/// Names of the class of an error that a product raises.
type Classes = fn(&str) -> &'static [&'static str];

/// Returns the difference in the first member of the outcome that differs.
pub(super) fn outcome(
    want: &Value,
    sent: &SentRequests,
    classes: Classes,
    view: &RequestView,
    events: &[Arc<TimedEvent>],
) -> Option<Difference> {
    let failed = events.iter().rev().find_map(|e| match &e.event {
        Event::TurnFailed(reason) => Some(reason.as_str()),
        _ => None,
    });
    let names = failed.map(|reason| error_names(reason, sent, classes)).unwrap_or_default();
    let wanted = |k: &str| want.get(k).cloned().unwrap_or(Value::Null);
    // The case contains one of several names of an error class.
    let wanted_error = want.get("error").and_then(Value::as_str);
    let error = names.iter().find(|n| wanted_error == Some(n)).or(names.first());
    let (compactions, failures) = compactions(view, events);
    let ours = json!({
        "requests": sent.requests.len(),
        "tool_calls_executed": sent.tools_run,
        "error": error,
        "final": sent.last.as_deref().map(|parts| last_words(parts, &wanted("final"))),
        "compactions": compactions,
        "failed": failures,
        "prompts": sent.turns,
    });
    let members = ["requests", "tool_calls_executed", "error", "final"];
    let further = ["compactions", "failed", "prompts"];
    // If a case has an outcome of the program, a missing `error` means that it did not fail.
    let ends = want.get("requests").is_some();
    members
        .into_iter()
        .chain(further)
        .filter(|k| want.get(*k).is_some() || ends && *k == "error")
        .find_map(|k| {
            let got = limit_to_case(&ours[k], &wanted(k));
            (wanted(k) != got).then(|| {
                let what = format!("outcome: {k}");
                let (want, got) = (wanted(k).to_string(), got.to_string());
                difference(sent.requests.len(), None, &what, &want, &got)
            })
        })
}

/// Returns the outcome, limited to the members that the case lists in its objects.
fn limit_to_case(ours: &Value, want: &Value) -> Value {
    let (Some(list), Some(wanted)) = (ours.as_array(), want.as_array()) else {
        return ours.clone();
    };
    let told = |one: &Value, i: usize| match (one, wanted.get(i)) {
        (Value::Object(o), Some(Value::Object(w))) => {
            let told = o.iter().filter(|(k, _)| w.contains_key(*k));
            Value::Object(told.map(|(k, v)| (k.clone(), v.clone())).collect())
        }
        _ => one.clone(),
    };
    list.iter().enumerate().map(|(i, one)| told(one, i)).collect()
}

/// Returns the compactions, and the checks of failed compactions, in order. The reason and the size
/// of a compaction come from the check before it. A check without a subsequent event has failed.
fn compactions(view: &RequestView, events: &[Arc<TimedEvent>]) -> (Vec<Value>, Vec<&'static str>) {
    let (mut made, mut failed): (Vec<Value>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut trigger = None;
    for e in events {
        match &e.event {
            Event::Trigger { check, believed, .. } => {
                failed.extend(trigger.replace((*check, *believed)).map(|(check, _)| check));
            }
            Event::Compaction { after, .. } => {
                let (reason, before) = trigger.take().unzip();
                let mut one = Map::new();
                one.insert("reason".into(), json!(reason));
                one.insert("tokens_before".into(), json!(before));
                let summary = after.iter().find(|b| b.kind == BlockKind::Summary);
                if let Some(((files, _), summary)) = view.summary.files.zip(summary) {
                    let (read, modified) = files(summary);
                    one.insert("read_files".into(), json!(read));
                    one.insert("modified_files".into(), json!(modified));
                }
                made.push(Value::Object(one));
            }
            Event::Estimated(tokens) => {
                if let Some(last) = made.last_mut() {
                    last["tokens_after"] = json!(tokens);
                }
            }
            Event::CompactionFailed { .. } => {
                failed.push(trigger.take().map_or("", |(check, _)| check))
            }
            _ => {}
        }
    }
    failed.extend(trigger.map(|(check, _)| check));
    (made, failed)
}

/// Writes a message of the model as a case does: its texts, with or without block types.
fn last_words(parts: &[Part], wanted: &Value) -> Value {
    let texts = parts.iter().filter_map(|p| match p {
        Part::Text(t) => Some(&**t),
        _ => None,
    });
    let blocks = parts.iter().map(|p| match p {
        Part::Text(t) => &**t,
        Part::Call(_) => "tool_use",
        Part::Reasoning { .. } => "thinking",
        Part::Compaction(_) => "compaction",
        Part::Image(_) | Part::Result { .. } | Part::Summary(_) | Part::Unrecorded(_) => "",
    });
    let (texts, blocks): (Value, Value) = (texts.collect(), blocks.collect());
    if texts == *wanted { texts } else { blocks }
}

/// Returns the names of a reason's error class: an API error by its status, or by its code if there
/// was no reply; a library error by its cause or its exception.
fn error_names(reason: &str, sent: &SentRequests, classes: Classes) -> Vec<String> {
    if let Some(e) = sent.errors.iter().rev().find(|e| e.to_string() == reason) {
        return vec![match (e.status, &e.code) {
            (0, Some(code)) => code.clone(),
            (0, None) => "connection_error".to_string(),
            (status, _) => format!("http_{status}"),
        }];
    }
    match classes(reason) {
        [] => vec![format!("unclassified: {reason}")],
        names => names.iter().map(|n| n.to_string()).collect(),
    }
}
