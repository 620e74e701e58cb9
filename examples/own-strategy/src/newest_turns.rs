//! Keeps the fixed beginning and the newest turns.

use ctxbench_harness::own::core::block::is_fixed;
use ctxbench_harness::own::core::prelude::*;
use ctxbench_harness::own::descriptor::{About, BuildRequest, Product};
use serde::Deserialize;

pub struct NewestTurns;

impl Product for NewestTurns {
    fn about(&self) -> About {
        About::read(include_str!("about.toml"))
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(b.settings::<NewestTurnsStrategy>())
    }
}

/// The settings are the only state.
#[derive(Deserialize)]
struct NewestTurnsStrategy {
    /// Newest turns that stay.
    keep: usize,
}

#[async_trait]
impl Strategy for NewestTurnsStrategy {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let blocks = s.context.blocks();
        let turns = turn_starts(blocks);
        if let Some(&from) = turns.len().checked_sub(self.keep).and_then(|i| turns.get(i)) {
            let stays = blocks.iter().enumerate().filter(|(i, b)| *i >= from || is_fixed(b));
            let kept = stays.map(|(_, b)| b.clone()).collect();
            // Whole turns go, so no call is parted from its result.
            s.compacted(CompactionKind::Drop, "newest-turns", Phase::MidTurn, kept)
                .expect("whole turns");
        }
        Flow::Proceed
    }
}
