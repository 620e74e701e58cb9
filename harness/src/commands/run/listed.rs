//! Loads the sessions of a run.
//!
//! All sessions are read once before the run, to get their names, models and remarks. The content
//! of sessions stays in memory up to a limit. The other sessions are read again when they are
//! replayed, one per thread at a time.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;

use ctxbench_core::model::Model;
use ctxbench_replay::billing::SessionCalls;
use ctxbench_replay::keys::SessionContent;
use ctxbench_replay::run::{Plan, SessionTurn, is_of_part};
use ctxbench_replay::{models, recorded};
use ctxbench_reports::is_private;
use ctxbench_scenarios as scenarios;
use ctxbench_scenarios::Scenario;

use super::remarks;
use crate::choice::Choice;
use crate::commands::corpus::{Ordinal, load_each, walk_again};

/// Maximum content of sessions that stays in memory, in bytes of JSON.
pub(super) const KEPT_BYTES: u64 = 64 << 20;

/// Summary of a session, without its name and header. Empty if the session belongs to another part
/// of the run.
#[derive(Default)]
pub(super) struct SessionSummary {
    pub(super) content: SessionContent,
    /// Place of the session in the walk, if its content was dropped from memory.
    ordinal: Option<Ordinal>,
    entries: usize,
    /// Notes on the reliability of the session's figures.
    pub(super) remarks: Vec<String>,
    /// Models for which the recording itself is a row.
    pub(super) recorded: Vec<&'static Model>,
    /// Whether a file of the session is readable by its owner only.
    pub(super) is_private: bool,
    /// Identity of its calls.
    pub(super) calls: SessionCalls,
}

/// Reads all selected sessions, and keeps at most `max_bytes` of content in memory. Sessions of
/// other parts of the run are reduced to their names and models, which are needed to make names
/// unique.
pub(super) fn list(
    inputs: &[String],
    choice: &Choice,
    named: &[&'static Model],
    shard: Option<(usize, usize)>,
    max_bytes: u64,
) -> anyhow::Result<Vec<(Scenario, SessionSummary)>> {
    let (mut kept, mut met) = (0, 0);
    let summarize = |scenario: &mut Scenario| {
        let calls = SessionCalls::new(&scenario.session);
        scenario.find_facts();
        let run_with = models::for_session(&scenario.session, named);
        let own = run_with.iter().flat_map(|m| models::remarks(&scenario.session, m));
        let warnings: Vec<String> = own.collect();
        let has_recorded = |m: &&'static Model| recorded::is_recorded(scenario, m);
        let listed = SessionSummary {
            content: SessionContent::new(scenario),
            ordinal: None,
            entries: scenario.session.entries.len(),
            remarks: remarks(scenario),
            recorded: run_with.iter().copied().filter(|m| has_recorded(m)).collect(),
            is_private: scenario.files.iter().any(|f| is_private(f)),
            calls,
        };
        scenario.warnings.extend(warnings);
        listed
    };
    let prepare = |scenario: &mut Scenario| shard.is_none().then(|| summarize(scenario));
    let mut one =
        |on_disk: Option<Ordinal>, mut scenario: Scenario, prepared: Option<SessionSummary>| {
            // The sessions of a random sample are only known after the last session.
            let elsewhere = choice.is_in_order() && !is_of_part(shard, met);
            met += 1;
            if elsewhere {
                let calls = SessionCalls::new(&scenario.session);
                scenario.session.entries = vec![];
                return (scenario, SessionSummary { calls, ..SessionSummary::default() });
            }
            let mut listed = prepared.unwrap_or_else(|| summarize(&mut scenario));
            if kept + listed.content.bytes <= max_bytes || on_disk.is_none() {
                kept += listed.content.bytes;
            } else {
                listed.ordinal = on_disk;
                drop_content(&mut scenario);
            }
            (scenario, listed)
        };
    let mut all = Vec::new();
    if inputs.is_empty() {
        all.extend(scenarios::builtin::defaults()?.into_iter().map(|s| one(None, s, None)));
    }
    all.extend(load_each(inputs, choice, &mut |_| true, &prepare, &mut one)?);
    Ok(all)
}

/// Drops the content of a session.
pub(super) fn drop_content(scenario: &mut Scenario) {
    scenario.session.entries = vec![];
    scenario.session.facts = vec![];
}

/// Returns whether a session must be loaded even if all its pairs are finished.
type Lacks<'a> = &'a dyn Fn(usize) -> bool;
/// Called with every loaded session.
type Loaded<'a> = &'a dyn Fn(usize, &Scenario);

/// Passes each session to `give`, with the pairs to run. Sessions in memory come first, the longest
/// of them before the others, so that no thread has to run a long session at the end. A session on
/// disk is loaded only if it has pairs to run or `lacks` returns true. `loaded` is called with each
/// loaded session.
pub(super) fn feed<'a>(
    plan: &'a Plan,
    inputs: &[String],
    listed: &[SessionSummary],
    todo: impl Fn(usize) -> Vec<(usize, &'static Model)>,
    (lacks, loaded): (Lacks<'_>, Loaded<'_>),
    give: &mut dyn FnMut(SessionTurn<'a>),
) {
    let mut in_memory = Vec::new();
    let (mut on_disk, mut places) = (BTreeMap::new(), HashSet::new());
    for (at, l) in listed.iter().enumerate().filter(|(at, _)| plan.is_here(*at)) {
        match &l.ordinal {
            None => in_memory.push(at),
            Some((ordinal, place)) => {
                let pairs = todo(at);
                // A session with finished rows is not read again.
                if !pairs.is_empty() || lacks(at) {
                    on_disk.insert(*ordinal, (at, pairs));
                    places.insert(&**place);
                }
            }
        }
    }
    in_memory.sort_by_key(|at| Reverse(listed[*at].entries));
    for at in in_memory {
        let scenario = &plan.scenarios[at];
        loaded(at, scenario);
        let pairs = todo(at);
        if !pairs.is_empty() {
            give(SessionTurn { at, scenario: Cow::Borrowed(scenario), broken: None, pairs });
        }
    }
    if on_disk.is_empty() {
        return;
    }
    let prepare = |place: &Path, mut scenario: Scenario| {
        let content = places.contains(place).then(|| {
            scenario.find_facts();
            SessionContent::new(&scenario)
        });
        (scenario, content)
    };
    let walked = walk_again(inputs, &prepare, &mut |ordinal, (mut scenario, content)| {
        if let Some((at, pairs)) = on_disk.remove(&ordinal) {
            let same = content.as_ref() == Some(&listed[at].content);
            let own = &plan.scenarios[at];
            scenario.id.clone_from(&own.id);
            scenario.session.header.id.clone_from(&own.session.header.id);
            scenario.warnings.clone_from(&own.warnings);
            scenario.billed_elsewhere.clone_from(&own.billed_elsewhere);
            scenario.counted_as.clone_from(&own.counted_as);
            let broken = (!same).then(|| CHANGED.to_string());
            if same {
                loaded(at, &scenario);
            }
            if !pairs.is_empty() {
                give(SessionTurn { at, scenario: Cow::Owned(scenario), broken, pairs });
            }
        }
        if on_disk.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let why = walked.err().map_or(CHANGED.to_string(), |e| e.to_string());
    for (at, pairs) in on_disk.into_values() {
        let (scenario, broken) = (Cow::Borrowed(&plan.scenarios[at]), Some(why.clone()));
        if !pairs.is_empty() {
            give(SessionTurn { at, scenario, broken, pairs });
        }
    }
}

const CHANGED: &str = "the session was changed or removed during the run; run it again";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Writes recordings. Two of the sessions have the same name.
    fn corpus() -> (tempfile::TempDir, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, id, text) in [("a/1", "s", "one"), ("b/2", "s", "two"), ("b/3", "t", "three")] {
            let lines = [
                serde_json::json!({"type": "session", "version": 1, "id": id, "title": text}),
                serde_json::json!({"type": "user", "id": "u1", "text": text.repeat(100)}),
                serde_json::json!({"type": "assistant", "id": "a1", "text": "done"}),
            ];
            let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
            let path = dir.path().join(format!("{name}.jsonl"));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let inputs = vec![dir.path().display().to_string(), "login-bug".into()];
        (dir, inputs)
    }

    /// Keeps `max_bytes` in memory, runs `change`, and returns the sessions that `feed` passes on.
    fn fed(
        max_bytes: u64,
        change: impl Fn(&std::path::Path),
    ) -> BTreeMap<String, (Scenario, bool)> {
        let (dir, inputs) = corpus();
        let specs = [ctxbench_strategies::Spec::parse("none").unwrap()];
        let (scenarios, listed): (Vec<_>, Vec<_>) =
            list(&inputs, &Choice::default(), &[], None, max_bytes).unwrap().into_iter().unzip();
        let whole = scenarios.iter().filter(|s| !s.session.entries.is_empty()).count();
        assert_eq!(whole, if max_bytes == 0 { 1 } else { 4 });
        change(dir.path());
        let plan = Plan { scenarios, specs: specs.into(), ..Plan::default() };
        let mut out = BTreeMap::new();
        let mut give = |turn: SessionTurn<'_>| {
            let scenario = Scenario { files: vec![], ..turn.scenario.into_owned() };
            assert_eq!(turn.pairs.len(), 1);
            out.insert(scenario.id.clone(), (scenario, turn.broken.is_some()));
        };
        feed(&plan, &inputs, &listed, |at| plan.pairs_of(at), (&|_| false, &|_, _| {}), &mut give);
        out
    }

    #[test]
    fn feed_session_from_disk_is_the_listed_one() {
        let again = fed(0, |_| {});
        assert_eq!(again, fed(KEPT_BYTES, |_| {}));
        assert_eq!(again.keys().collect::<Vec<_>>(), ["a-1-s", "b-2-s", "login-bug", "t"]);
        assert!(again.values().all(|(s, broken)| !broken && s.session.header.id == s.id));
    }

    #[test]
    fn list_of_part_keeps_only_names_of_other_sessions() {
        let (_dir, inputs) = corpus();
        let part = |part, choice: &Choice| list(&inputs, choice, &[], part, KEPT_BYTES).unwrap();
        let id = |(s, _): &(Scenario, SessionSummary)| s.id.clone();
        let whole: Vec<String> = part(None, &Choice::default()).iter().map(id).collect();
        let second = part(Some((2, 4)), &Choice::default());
        assert_eq!(second.iter().map(id).collect::<Vec<_>>(), whole);
        let read: Vec<bool> = second.iter().map(|(s, _)| !s.session.entries.is_empty()).collect();
        assert_eq!(read, [false, true, false, false]);
        // The drawn sessions are only known at the end.
        let drawn = part(Some((2, 4)), &Choice { sample: Some(2), ..Choice::default() });
        assert!(drawn.iter().all(|(s, _)| !s.session.entries.is_empty()));
    }

    #[test]
    fn feed_changed_or_removed_session_is_an_error() {
        let changed = fed(0, |dir| {
            let path = dir.join("b/2.jsonl");
            let text = std::fs::read_to_string(&path).unwrap().replace("two", "too");
            std::fs::write(path, text).unwrap();
            std::fs::remove_file(dir.join("b/3.jsonl")).unwrap();
        });
        let broken: Vec<(&str, bool)> = changed.iter().map(|(id, (_, b))| (&**id, *b)).collect();
        assert_eq!(broken, [("a-1-s", false), ("b-2-s", true), ("login-bug", false), ("t", true)]);
    }
}
