//! Facts that a model's own summary contains.

use std::collections::BTreeSet;

use ctxbench_mock::summarise::Summariser;
use ctxbench_replay::Options;
use ctxbench_scenarios::Scenario;
use ctxbench_session::{Entry, Fact, FactKind, Session};
use serde_json::Value;

use super::{Span, single};
use crate::common::recordings;
use crate::common::replayed::run_with;

/// Returns the paths in calls of file tools of the main conversation before its compaction, with
/// the message of the first such call.
fn paths(session: &Session) -> Vec<(String, String)> {
    let before = session.entries.iter().take_while(|e| !matches!(e, Entry::RecordedCompaction(_)));
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for entry in before {
        let Entry::Assistant(reply) = entry else { continue };
        if reply.agent.is_some() {
            continue;
        }
        for call in reply.all_calls() {
            let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
            let files = ["Read", "Write", "Edit", "MultiEdit"].contains(&&*call.name);
            let Some(path) = arguments["file_path"].as_str().filter(|_| files) else { continue };
            if seen.insert(path.to_string()) {
                out.push((path.to_string(), reply.id.clone()));
            }
        }
    }
    out
}

/// Returns the session with one fact per path, with the literal that `literal` returns.
fn with_paths(session: &Session, literal: fn(&str) -> &str) -> Scenario {
    let mut session = session.clone();
    // The needs are after the compaction.
    let last = session.entries.iter().rev().find_map(|e| match e {
        Entry::Assistant(a) if a.agent.is_none() => Some(a.id.clone()),
        _ => None,
    });
    let paths = paths(&session).into_iter().enumerate();
    session.facts = paths
        .map(|(i, (path, arises))| {
            let literal = literal(&path);
            let fact = Fact::new(format!("path-{i}"), FactKind::Artifact, literal, arises);
            Fact { needs: last.clone().into_iter().collect(), ..fact }
        })
        .collect();
    let id = session.header.id.clone();
    Scenario { id, scale: 1.0, session, ..Scenario::default() }
}

/// Returns the share of the paths lost in compactions that the summaries contain, in percent.
fn in_summary(literal: fn(&str) -> &str) -> f64 {
    let options = Options { summariser: Summariser::Scripted, ..Options::default() };
    let (mut lost, mut carried) = (0, 0);
    for name in recordings::DIRECT {
        let scenario = with_paths(&recordings::session(name), literal);
        let strategy = "claude-code:restore_files=0";
        let record = run_with("claude-opus-4-6", &scenario, strategy, &options);
        assert_eq!(record.summary.compactions, 1, "{name}: as recorded");
        lost += record.compactions[0].facts_lost_verbatim.unwrap();
        carried += record.compactions[0].facts_carried.unwrap();
    }
    assert!(lost >= 20, "{lost} paths");
    100.0 * carried as f64 / lost as f64
}

pub fn identifiers() -> Vec<Span> {
    let whole = in_summary(|path| path);
    let name = in_summary(|path| path.rsplit('/').next().unwrap_or(path));
    vec![single(whole), single(name)]
}
