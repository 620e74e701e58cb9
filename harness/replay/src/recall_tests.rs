//! Checks every recall metric with a hand-computed example: a session of three turns, shown
//! request by request, with one summary.

use std::sync::Arc;

use crate::conversation::SharedConversation;
use crate::observer::{AnswerSource, Observer};
use crate::options::Options;
use crate::path::Path;
use crate::record::measured;
use crate::rewind::FileRewinds;
use crate::scene::{FinishedRun, Scene, Start};
use crate::session_cache::SessionCache;
use crate::subagent_index::SubagentIndex;
use ctxbench_core::block::{Block, BlockKind, CallRef, Draft, MessageId, Role};
use ctxbench_core::compaction::CompactionKind;
use ctxbench_core::host::{Event as Noted, TimedEvent};
use ctxbench_core::model::{self, Model};
use ctxbench_core::request::{Phase, Reply, Request};
use ctxbench_mock::summarise::SummaryDesk;
use ctxbench_reports::record::{FactPlace, FactRecord, RunRecord};
use ctxbench_scenarios::Scenario;
use ctxbench_session::{Entry, FactKind, Session};
use ctxbench_strategies::Spec;

const LINES: &str = r#"{"type":"session","version":1,"id":"s"}
{"type":"user","id":"u1","text":"mend the login page. Never touch billing."}
{"type":"assistant","id":"a1","calls":[{"id":"c1","name":"read","arguments":"{}"}]}
{"type":"tool","call_id":"c1","output":"listens on port 8080\nlogs into app_old.log"}
{"type":"assistant","id":"a2","text":"seen"}
{"type":"user","id":"u2","text":"from now on port 8443, and log into app_new.log; mode strict_v2 replaces mode strict_v1"}
{"type":"assistant","id":"a3","text":"noted"}
{"type":"user","id":"u3","text":"go on"}
{"type":"assistant","id":"a4","text":"done"}
{"type":"fact","id":"goal","kind":"goal","tokens":["mend the login page"],"arises":"u1","needs":["u3"]}
{"type":"fact","id":"rule","kind":"constraint","tokens":["Never touch billing"],"arises":"u1","needs":["u3"]}
{"type":"fact","id":"port","kind":"value","tokens":["port 8443"],"arises":"u2","needs":["u3"]}
{"type":"fact","id":"log-old","kind":"superseded","tokens":["app_old.log"],"arises":"c1","superseded_by":"log-new"}
{"type":"fact","id":"log-new","kind":"value","tokens":["app_new.log"],"arises":"u2","needs":["u3"]}
{"type":"fact","id":"mode-old","kind":"superseded","tokens":["strict_v1"],"arises":"u2","superseded_by":"mode-new"}
{"type":"fact","id":"mode-new","kind":"value","tokens":["strict_v2"],"arises":"u2","needs":["u3"]}
{"type":"fact","id":"from-tool","kind":"value","tokens":["listens on"],"arises":"c1","needs":["u3"]}
"#;

/// A summary with the complete goal, two of the three terms of the rule, a different port, the old
/// log and both modes.
const SUMMARY: &str = "The user wants: mend the login page\nNever touch the tables\nport \
    8444\nlogs go to app_old.log\nstrict_v2 (lenient) after strict_v1";

fn session() -> Session {
    ctxbench_scenarios::jsonl::read(LINES.as_bytes(), "s").unwrap().session
}

fn block(kind: BlockKind, role: Role, text: &str, message: u32) -> Arc<Block> {
    Draft::text(kind, role, text).build(MessageId(message), vec![])
}

fn user(text: &str, message: u32) -> Arc<Block> {
    block(BlockKind::User, Role::User, text, message)
}

fn request(model: &Model, blocks: &[Arc<Block>]) -> Request {
    Request::new(Arc::new(model.clone()), blocks.to_vec())
}

/// Runs the session with a summary in place of everything before the last user message.
fn run() -> RunRecord {
    let model = model::find("claude-sonnet-4-6").unwrap().clone();
    let session = session();
    let path = Path::recorded(&session);
    let log = SharedConversation::default();
    let scenario = Scenario { id: "s".into(), scale: 1.0, session, ..Default::default() };
    let session = &scenario.session;
    let spec = Spec::parse("none").unwrap();
    let known = Arc::new(SessionCache::from_session(session));
    let scene = Scene {
        scenario: &scenario,
        session,
        agent: None,
        spec: &spec,
        model: &Arc::new(model.clone()),
        options: &Options::default(),
        desk: &SummaryDesk::default(),
        known: known.clone(),
        keeps_events: false,
    };
    let mut o = Observer::new(&scene, &path, Start::default(), log.clone());
    let said = |n: usize| match &session.entries[n] {
        Entry::User(u) => u.text.clone().unwrap(),
        Entry::Tool(o) => o.output.clone().unwrap(),
        _ => unreachable!(),
    };
    let ask = |o: &mut Observer, blocks: &[Arc<Block>], key: &str, message: u32| {
        o.request(
            &request(&model, blocks),
            &Ok(Reply::default()),
            &AnswerSource::Step(key.into()),
            (0, 0),
            true,
        );
        o.recorded(key, MessageId(message));
    };
    let mut shown = vec![user(&said(0), 1)];
    o.moved(&path.moves[0]);
    ask(&mut o, &shown, "a1", 2);
    let call = Some(Arc::new(CallRef { id: "c1".into(), name: "read".into() }));
    shown.push(
        Draft { call: call.clone(), ..Draft::text(BlockKind::Call, Role::Assistant, "{}") }
            .build(MessageId(2), vec![]),
    );
    shown.push(
        Draft { call, ..Draft::text(BlockKind::Output, Role::Tool, said(2)) }
            .build(MessageId(3), vec![]),
    );
    ask(&mut o, &shown, "a2", 4);
    shown.push(block(BlockKind::Assistant, Role::Assistant, "seen", 4));
    o.moved(&path.moves[1]);
    shown.push(user(&said(4), 5));
    ask(&mut o, &shown, "a3", 6);
    shown.push(block(BlockKind::Assistant, Role::Assistant, "noted", 6));
    let after =
        vec![Draft::synthetic(BlockKind::Summary, Role::User, SUMMARY).build(MessageId(7), vec![])];
    let event = Noted::Compaction {
        kind: CompactionKind::Summarise,
        mechanism: "summary",
        phase: Phase::PreTurn,
        before: shown,
        after: after.clone(),
        new: 0,
    };
    o.noted(&Arc::new(TimedEvent { before_request: 3, at_ms: 0, event }));
    o.moved(&path.moves[2]);
    ask(&mut o, &[after[0].clone(), user("go on", 8)], "a4", 9);
    let run = FinishedRun {
        scene: &scene,
        files: &FileRewinds::default(),
        subagents: &SubagentIndex::default(),
        refused: None,
    };
    measured(&run, log.take(), Vec::new()).record
}

fn pair<'a>(r: &'a RunRecord, fact: &str) -> &'a FactRecord {
    r.facts.iter().find(|f| f.fact == fact).unwrap()
}

#[test]
fn tiers_places_and_marks_by_hand() {
    let r = run();
    let told = |fact: &str| {
        let f = pair(&r, fact);
        (f.place, f.stale, f.both)
    };
    assert_eq!(told("goal"), (FactPlace::Summary, false, false));
    assert_eq!(told("rule"), (FactPlace::Nowhere, false, false));
    assert_eq!(told("log-new"), (FactPlace::Nowhere, true, false), "only the old one is there");
    assert_eq!(told("mode-new"), (FactPlace::Summary, false, true), "both are there");
    assert_eq!(told("from-tool"), (FactPlace::Nowhere, false, false));
}

#[test]
fn shares_by_hand() {
    let r = run();
    let s = &r.summary;
    let third = 100.0 / 3.0;
    let near = |a: Option<f64>, b: f64, what: &str| {
        assert!(a.is_some_and(|a| (a - b).abs() < 1e-9), "{what}: {a:?} and by hand {b}")
    };
    near(r.pair_recall_pct(None), third, "goal and mode-new of six pairs");
    near(s.recall_at_risk_pct, third, "a user message needs all six");
    assert_eq!(s.at_risk, Some(1), "the summary took away what showed them");
    near(s.recall_pct, third, "all needs were at risk");
    near(r.pair_recall_pct(Some(FactKind::Goal)), 100.0, "one goal");
    near(r.pair_recall_pct(Some(FactKind::Constraint)), 0.0, "one rule");
    near(
        r.pair_recall_pct(Some(FactKind::Value)),
        25.0,
        "mode-new of port, log-new, mode-new, from-tool",
    );
}

#[test]
fn the_curve_and_the_lives_by_hand() {
    let r = run();
    let c = &r.compactions[0];
    assert_eq!(
        (c.facts_lost_verbatim, c.facts_carried, c.facts_needed_later),
        (Some(8), Some(4), Some(6))
    );
    assert!((c.retained_pct.unwrap() - 100.0 / 3.0).abs() < 1e-9);
    let life = |fact: &str| r.lives.iter().find(|l| l.fact == fact).unwrap();
    let port = life("port");
    assert_eq!((port.first_shown, port.arises.as_str(), port.moves.len()), (Some(2), "u2", 1));
    let moved = &port.moves[0];
    assert_eq!((moved.from, moved.to), (FactPlace::Verbatim, FactPlace::Nowhere));
    assert!(moved.before.contains("from now on port 8443, and log"), "{}", moved.before);
    assert_eq!(
        &*moved.after, "port 8444",
        "the line with a word of its own, before lines with words around it"
    );
    let goal = &life("goal").moves[0];
    assert!(
        goal.to == FactPlace::Summary
            && goal.after.starts_with("The user wants: mend the login page Never"),
        "{}",
        goal.after
    );
}
