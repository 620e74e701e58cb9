//! Compares the end of a run with the outcome in its case.

use std::collections::BTreeSet;

use crate::RequestView;
use crate::case::{CaseCompaction, Outcome};
use ctxbench_core::host::TimedEvent;
use ctxbench_core::prelude::*;
use ctxbench_strategies::evidence::FileLists;

use super::compare::{Difference, differs};
use super::world::SentRequests;

/// Names of the class of an error that a product raises.
type Classes = fn(&str) -> &'static [&'static str];

/// Returns the difference in the first member of the outcome that differs.
pub(super) fn outcome(
    want: &Outcome,
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
    // The case contains one of several names of an error class.
    let error = names.iter().find(|n| want.error.as_ref() == Some(n)).or(names.first()).cloned();
    // If a case has an outcome of the program, a missing `error` means that it did not fail.
    let ends = want.requests.is_some() || want.error.is_some();
    let last = sent.last.as_deref().map(|parts| last_words(parts, want.last.as_deref()));
    let (mut compactions, failures) = compactions(view, events);
    for (ours, wanted) in compactions.iter_mut().zip(want.compactions.iter().flatten()) {
        limit_to_case(ours, wanted);
    }
    let turns = sent.turns.iter().map(|t| t.to_string()).collect();
    let tools_run = sent.tools_run.clone();
    compared("requests", &want.requests, Some(sent.requests.len()))
        .or_else(|| compared("tool_calls_executed", &want.tool_calls_executed, Some(tools_run)))
        .or_else(|| differs("outcome: error", &want.error, &error.filter(|_| ends)))
        .or_else(|| compared("final", &want.last, last))
        .or_else(|| compared("compactions", &want.compactions, Some(compactions)))
        .or_else(|| compared("failed", &want.failed, Some(failures)))
        .or_else(|| compared("prompts", &want.prompts, Some(turns)))
}

/// Returns the difference in a member that the case gives.
fn compared<T: PartialEq + serde::Serialize>(
    name: &str,
    want: &Option<T>,
    got: Option<T>,
) -> Option<Difference> {
    want.as_ref().and_then(|_| differs(&format!("outcome: {name}"), want, &got))
}

/// Removes the members of a compaction that the case does not give.
fn limit_to_case(ours: &mut CaseCompaction, wanted: &CaseCompaction) {
    ours.tokens_after = ours.tokens_after.filter(|_| wanted.tokens_after.is_some());
    ours.read_files = ours.read_files.take().filter(|_| wanted.read_files.is_some());
    ours.modified_files = ours.modified_files.take().filter(|_| wanted.modified_files.is_some());
}

/// Returns the compactions, and the checks of failed compactions, in order. The reason and the size
/// of a compaction come from the check before it. A check without a subsequent event has failed.
fn compactions(
    view: &RequestView,
    events: &[Arc<TimedEvent>],
) -> (Vec<CaseCompaction>, Vec<String>) {
    let (mut made, mut failed): (Vec<CaseCompaction>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut trigger = None;
    for e in events {
        match &e.event {
            Event::Trigger { check, believed, .. } => {
                failed.extend(trigger.replace((*check, *believed)).map(|(check, _)| check));
            }
            Event::Compaction { after, .. } => {
                let (reason, tokens_before) = trigger.take().unzip();
                let summary = after.iter().find(|b| b.kind == BlockKind::Summary);
                let summary = summary.filter(|_| view.summary.lists_files);
                let files = summary.map(|s| FileLists::found_in(&s.text));
                let list = |of: fn(&FileLists) -> &BTreeSet<String>| {
                    files.as_ref().map(|files| of(files).iter().cloned().collect())
                };
                made.push(CaseCompaction {
                    reason: reason.map(str::to_string),
                    tokens_before,
                    tokens_after: None,
                    read_files: list(|files| &files.read),
                    modified_files: list(|files| &files.modified),
                });
            }
            Event::Estimated(tokens) => {
                if let Some(last) = made.last_mut() {
                    last.tokens_after = Some(*tokens);
                }
            }
            Event::CompactionFailed { .. } => {
                failed.push(trigger.take().map_or("", |(check, _)| check))
            }
            _ => {}
        }
    }
    failed.extend(trigger.map(|(check, _)| check));
    (made, failed.into_iter().map(str::to_string).collect())
}

/// Writes a message of the model as a case does: its texts, with or without block types.
fn last_words(parts: &[Part], wanted: Option<&[String]>) -> Vec<String> {
    let texts: Vec<String> = parts.iter().filter_map(Part::as_text).map(str::to_string).collect();
    if wanted == Some(&texts) {
        return texts;
    }
    let block = |p: &Part| match p {
        Part::Text(t) => t.to_string(),
        Part::Call(_) => "tool_use".into(),
        Part::Reasoning { .. } => "thinking".into(),
        Part::Compaction(_) => "compaction".into(),
        Part::Image(_) | Part::Result { .. } | Part::Summary(_) | Part::Unrecorded(_) => {
            String::new()
        }
    };
    parts.iter().map(block).collect()
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
