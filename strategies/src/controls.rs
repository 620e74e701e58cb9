//! Baselines: no compaction at all, with an unlimited or the real window, and nothing kept at all.

use crate::descriptor::{About, BuildRequest, Product};
use async_trait::async_trait;
use ctxbench_core::block::{BlockKind, is_fixed};
use ctxbench_core::compaction::{CompactionKind, step_starts};
use ctxbench_core::engine::Engine;
use ctxbench_core::request::Phase;
use ctxbench_core::strategy::{Flow, Strategy};

/// No compaction in an unlimited window: the 100 % row.
pub(crate) struct Reference;

impl Product for Reference {
    fn about(&self) -> About {
        About::read(include_str!("controls/reference.toml"))
    }

    fn build(&self, _b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(Nothing)
    }
}

/// No compaction in the real window.
pub(crate) struct NoCompaction;

impl Product for NoCompaction {
    fn about(&self) -> About {
        About::read(include_str!("controls/none.toml"))
    }

    fn build(&self, _b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(Nothing)
    }
}

struct Nothing;

#[async_trait]
impl Strategy for Nothing {
    // Nothing is forgotten, even at the end of a session.
    async fn on_new_session(&mut self, _s: &mut Engine) {}
}

/// Keeps only the newest message and step.
pub(crate) struct KeepNothing;

impl Product for KeepNothing {
    fn about(&self) -> About {
        About::read(include_str!("controls/keep-nothing.toml"))
    }

    fn build(&self, _b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(KeepNothing)
    }
}

#[async_trait]
impl Strategy for KeepNothing {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let blocks = s.context.blocks();
        let last_user = blocks.iter().rposition(|b| b.kind == BlockKind::User);
        let last_message = last_user.map(|i| blocks[i].message);
        let step = step_starts(blocks)
            .last()
            .copied()
            .filter(|i| Some(*i) > last_user)
            .unwrap_or(blocks.len());
        let kept: Vec<_> = blocks
            .iter()
            .enumerate()
            .filter(|(i, b)| is_fixed(b) || Some(b.message) == last_message || *i >= step)
            .map(|(_, b)| b.clone())
            .collect();
        if kept.len() < blocks.len() {
            // Whole steps are removed, so the edit is always valid.
            let _ = s.compacted(CompactionKind::Drop, "drop_all", Phase::MidTurn, kept);
        }
        Flow::Proceed
    }
}
