use proptest::prelude::{Just, ProptestConfig, prop};
use proptest::strategy::Strategy as _;
use proptest::{prop_assert_eq, prop_oneof, proptest};

use super::*;
use crate::content::{Part, ToolCall};
use crate::request::ErrorKind;

struct Nowhere;

#[async_trait::async_trait]
impl World for Nowhere {
    async fn next(&mut self) -> Option<Action> {
        None
    }
    async fn send(&mut self, _: &Request) -> Result<Reply, ModelError> {
        Err(ModelError { kind: ErrorKind::Ended, status: 0, code: None, message: String::new() })
    }
    async fn run(&mut self, _: &[ToolCall]) -> Vec<Incoming> {
        vec![]
    }
    async fn spawn(&mut self, _: &Request) -> Task {
        Task(0)
    }
    async fn collect(&mut self, _: Task, _: bool) -> Option<Result<Reply, ModelError>> {
        None
    }
    fn now(&self) -> Millis {
        0
    }
}

struct Plain;
impl Strategy for Plain {}

fn engine() -> Engine {
    Engine::new(
        Arc::new(crate::model::find("claude-sonnet-4-6").unwrap().clone()),
        Box::new(Nowhere),
    )
}

fn texts(s: &Engine) -> Vec<String> {
    s.context.blocks().iter().map(|b| b.text.to_string()).collect()
}

fn say(s: &mut Engine, n: usize) -> MessageId {
    s.record_user(
        &Plain,
        &Incoming { key: format!("u{n}").into(), parts: vec![Part::Text(format!("m{n}").into())] },
    )
}

/// Replaces the first `n` blocks by a summary.
fn compact(s: &mut Engine, n: usize) {
    let (gone, kept) = s.context.blocks().split_at(n);
    let (origin, kept) = (crate::compaction::origins(gone), kept.to_vec());
    let summary = s.synthetic(BlockKind::Summary, Role::User, format!("summary of {n}"), origin);
    s.compacted(CompactionKind::Summarise, "test", Phase::MidTurn, [vec![summary], kept].concat())
        .unwrap();
}

#[test]
fn a_compaction_is_taken_back_with_what_was_said_since() {
    let mut s = engine();
    for n in 0..4 {
        say(&mut s, n);
    }
    compact(&mut s, 3);
    say(&mut s, 4);
    assert_eq!(texts(&s), ["summary of 3", "m3", "m4"]);
    let logged = s.history.messages().len();
    s.undo_compaction().unwrap();
    assert_eq!(texts(&s), ["m0", "m1", "m2", "m3", "m4"]);
    assert_eq!(s.history.messages().len(), logged, "the log only grows");
    assert_eq!(s.undo_compaction(), Err(UndoError::Nothing));
    assert!(matches!(
        s.events.last().unwrap().event,
        Event::CompactionUndone { mechanism: "test" }
    ));
}

#[test]
fn what_was_changed_since_is_not_taken_back() {
    let mut s = engine();
    for n in 0..4 {
        say(&mut s, n);
    }
    compact(&mut s, 2);
    let view = s.context.blocks()[1..].to_vec();
    s.context.set(view).unwrap();
    assert_eq!(s.undo_compaction(), Err(UndoError::Changed));
    assert_eq!(texts(&s), ["m2", "m3"]);
}

#[test]
fn an_engine_that_keeps_no_events_lets_go_of_what_left_the_context() {
    for (keeps_events, undone) in [(true, Ok(())), (false, Err(UndoError::Nothing))] {
        let mut s = engine();
        s.keeps_events = keeps_events;
        say(&mut s, 0);
        say(&mut s, 1);
        let gone = Arc::downgrade(&s.context.blocks()[0]);
        compact(&mut s, 1);
        assert_eq!(gone.upgrade().is_some(), keeps_events);
        assert_eq!(s.undo_compaction(), undone);
        assert_eq!(s.events.len(), if keeps_events { 2 } else { 0 });
    }
}

#[derive(Clone, Debug)]
enum Op {
    Say,
    Compact(usize),
    Undo,
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The model: a stack of views, each with what was said after it.
    #[test]
    fn undo_gives_the_context_before_each_compaction(
        ops in prop::collection::vec(prop_oneof![3 => Just(Op::Say), 2 => (1..6_usize).prop_map(Op::Compact), 2 => Just(Op::Undo)], 1..50)
    ) {
        let mut s = engine();
        let mut stack: Vec<Vec<String>> = Vec::new();
        let mut said = 0;
        for op in ops {
            match op {
                Op::Say => {
                    say(&mut s, said);
                    stack.iter_mut().for_each(|view| view.push(format!("m{said}")));
                    said += 1;
                }
                Op::Compact(n) => {
                    let n = n.min(s.context.blocks().len());
                    if n > 0 {
                        stack.push(texts(&s));
                        compact(&mut s, n);
                    }
                }
                Op::Undo => match stack.pop() {
                    Some(view) => {
                        s.undo_compaction().unwrap();
                        prop_assert_eq!(texts(&s), view);
                        prop_assert_eq!(s.context.tokens(), total(&s));
                    }
                    None => prop_assert_eq!(s.undo_compaction(), Err(UndoError::Nothing)),
                },
            }
        }
        while let Some(view) = stack.pop() {
            s.undo_compaction().unwrap();
            prop_assert_eq!(texts(&s), view);
        }
    }
}

fn total(s: &Engine) -> u64 {
    s.tokens_of(s.context.blocks())
}
