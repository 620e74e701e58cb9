//! Keeps the fixed beginning and the newest turns.

use ctxbench_harness::own::core::block::{Block, BlockKind, is_fixed};
use ctxbench_harness::own::core::compaction::CompactionKind;
use ctxbench_harness::own::core::engine::Engine;
use ctxbench_harness::own::core::request::Phase;
use ctxbench_harness::own::core::strategy::{Flow, Strategy};
use ctxbench_harness::own::descriptor::{Build, Descriptor, Product, Version};
use ctxbench_harness::own::{async_trait, settings};

pub const DESCRIPTOR: Descriptor =
    Descriptor::own::<NewestTurns>("newest-turns", "shows the newest turns only");

settings! {
    /// Settings.
    pub struct NewestTurnsSettings {
        /// newest turns that stay
        keep: count = 3, "ours";
    }
}

pub struct NewestTurns {
    keep: usize,
}

impl Product for NewestTurns {
    type Version = ();
    type Settings = NewestTurnsSettings;
    type Words = ();
    const VERSIONS: &'static [(Version, ())] = &[(Version::ONLY, ())];

    fn needs(_version: (), _settings: &NewestTurnsSettings) -> Option<Requirement> {
        None
    }

    fn build(b: Build<Self>) -> Box<dyn Strategy> {
        Box::new(NewestTurns { keep: b.settings.keep as usize })
    }
}

#[async_trait]
impl Strategy for NewestTurns {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let blocks = s.context.blocks();
        let starts = |b: &Block| b.kind == BlockKind::User;
        let turns: Vec<usize> = (0..blocks.len()).filter(|&i| starts(&blocks[i])).collect();
        if let Some(&from) = turns.len().checked_sub(self.keep).and_then(|i| turns.get(i)) {
            let stays = blocks.iter().enumerate().filter(|(i, b)| *i >= from || is_fixed(b));
            let kept = stays.map(|(_, b)| b.clone()).collect();
            // Whole turns go, so no call is parted from its result.
            let _ = s.compacted(CompactionKind::Drop, "newest-turns", Phase::MidTurn, kept);
        }
        Flow::Proceed
    }
}
