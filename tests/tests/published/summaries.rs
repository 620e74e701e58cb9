//! Facts that a model's own summary contains.

use std::collections::BTreeSet;

use ctxbench_mock::summarise::{Summariser, SummaryScript};
use ctxbench_replay::Options;
use ctxbench_scenarios::Scenario;
use ctxbench_session::fact::{Fact, FactKind};
use ctxbench_session::{Entry, Session};
use serde_json::Value;

use super::{Figure, Measure, Unit, Verdict, single};
use crate::common::recordings;
use crate::common::replayed::run_with;

pub const IDENTIFIERS: Figure = Figure {
    by: "claude-code-context-profiler 0.0.1, benchmark",
    link: "https://pypi.org/project/claude-code-context-profiler/",
    claim: "after a compaction by a model's summary, 29.1 % of the paths and error classes of a session are in the context; with a header without facts instead of the summary, 28.1 %.",
    conditions: "12 sessions of Claude Code; the newest turns stay verbatim, the rest is \
                 summarised by Claude Haiku, which is asked for paths and errors. A path counts if it appears as in the tool call. Intervals: 29.1 % [13.2, 68.5] in \
                 the context, files read 36.2 % [13.7, 74.7], and 1.0 points [0.0, 4.1] that the \
                 summary adds to the header.",
    tried: "two recorded sessions of Claude Code 2.1.39 \
            ([labels](../tests/data/labels/README.md)) with the summaries that their model, \
            Claude Opus 4.6, wrote (`--summarizer scripted`) and nothing else after them \
            (`claude-code:restore_files=0`); the facts are paths in calls of Read, Write, Edit and \
            MultiEdit before the compaction, as the publication finds them. Measured as *in summary*, so without the verbatim turns, in both sessions together.",
    trial: identifiers,
};

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
    let options =
        Options { summariser: Summariser::Scripted(SummaryScript::Recorded), ..Options::default() };
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

fn identifiers() -> Vec<Measure> {
    let whole = in_summary(|path| path);
    let name = in_summary(|path| path.rsplit('/').next().unwrap_or(path));
    vec![
        Measure::new(
            Unit::Share,
            "paths as called, in the summary itself",
            "1.0 points [0.0, 4.1]",
            (0.0, 4.1),
            single(whole),
        ),
        Measure::new(
            Unit::Share,
            "files by their name, in the summary itself",
            "29.1 % [13.2, 68.5]",
            (13.2, 68.5),
            single(name),
        )
        .but(
            Verdict::Differs,
            "calls have absolute paths and these summaries name files from the project's \
                  folder, which the published rule counts as lost; it finds \
                  nearly as much after a header without facts, so not in the summary. \
                  Another model wrote \
                  these",
        ),
    ]
}
