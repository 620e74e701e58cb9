use super::*;
use crate::content::{Part, ToolCall};
use crate::host::{Action, Incoming};
use crate::strategy::Strategy;

struct Nowhere;

#[async_trait::async_trait]
impl Host for Nowhere {
    async fn next(&mut self) -> Option<Action> {
        None
    }
    async fn send(&mut self, _: &Request) -> Result<Reply, ModelError> {
        Err(ModelError::ended())
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

fn engine(keeps_events: bool) -> Engine {
    let model = Arc::new(crate::model::find("claude-sonnet-4-6").unwrap().clone());
    let options = EngineOptions { keeps_events, ..EngineOptions::default() };
    Engine::with_options(model, Box::new(Nowhere), options)
}

fn append_message(s: &mut Engine, n: usize) -> MessageId {
    s.record_user(
        &mut Plain,
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
fn engine_without_events_drops_replaced_blocks() {
    for keeps_events in [true, false] {
        let mut s = engine(keeps_events);
        append_message(&mut s, 0);
        append_message(&mut s, 1);
        let replaced = Arc::downgrade(&s.context.blocks()[0]);
        compact(&mut s, 1);
        assert_eq!(replaced.upgrade().is_some(), keeps_events);
        assert_eq!(s.events.len(), usize::from(keeps_events));
    }
}
