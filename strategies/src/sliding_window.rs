//! Sliding window: when the window is nearly full, the oldest turns are dropped.
//!
//! This is the simplest technique. The oldest whole turns (or, in the newest turn, the oldest whole
//! steps) are dropped until a share of the window is free again. Calls and results are always
//! dropped together.

use crate::conform::Conformance;
use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Rewind,
    Standing, Version,
};
use crate::persist::OURS;
use async_trait::async_trait;
use ctxbench_core::block::is_fixed;
use ctxbench_core::compaction::{CompactionKind, step_starts, turn_starts};
use ctxbench_core::engine::Engine;
use ctxbench_core::request::{ModelError, Phase};
use ctxbench_core::strategy::{Flow, PASSING_RETRIES, Strategy, again_if_passing};

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "sliding-window",
    summary: "drops the oldest turns when the window is nearly full",
    sources: &["the plain technique; figures are ours"],
    matrix: Matrix {
        layers: "1: drop oldest turns",
        llm_calls: "none",
        user_messages: "oldest go with their turn",
        tool_results: "oldest go with their turn",
        cache: "the prefix breaks at each drop; the gap between high and low keeps drops rare",
        afterwards: "nothing",
        token_counting: "exact",
        pre_send_check: "before every request",
        overflow_response: "drops further",
        thinking: "goes with its turn",
        memory: "none",
        undo: "none",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Absent,
    rewind: Rewind::UNSUPPORTED,
    formats: OURS,
    conform: Conformance::Unrecorded,
    color: PlotColor::Palette(6),
    files: MemoryFiles::None("a technique has no program that would read files"),
    settings_file: None,
    page: "docs/systems/techniques.md",
    factory: Factory::of::<SlidingWindow>(),
};

ctxbench_core::settings! {
    /// Settings, each with the source of its default.
    struct SlidingWindowSettings {
        /// share of the window at which turns are dropped
        high: share = 0.9, "ours: Codex's 90 % (docs/sources/codex.md §1.2)";
        /// share of the window that stays filled after dropping
        low: share = 0.7,
            "ours: dropping one turn at a time would break the prompt cache at every request";
    }
}

impl Product for SlidingWindow {
    type Version = ();
    type Settings = SlidingWindowSettings;
    type Words = ();
    const VERSIONS: &'static [(Version, ())] = &[(Version::ONLY, ())];

    fn build(b: Build<Self>) -> Box<dyn Strategy> {
        Box::new(SlidingWindow { high: b.settings.high, low: b.settings.low })
    }
}

struct SlidingWindow {
    high: f64,
    low: f64,
}

impl SlidingWindow {
    /// Drops the oldest turns, then the oldest steps of the newest turn, until `target` tokens are
    /// left or nothing more can be dropped.
    fn slide(s: &mut Engine, target: u64) -> bool {
        let blocks = s.context.blocks();
        let turns = turn_starts(blocks);
        let Some(&newest) = turns.last() else { return false };
        let user_end = newest
            + blocks[newest..].iter().take_while(|b| b.message == blocks[newest].message).count();
        let steps: Vec<usize> = step_starts(blocks).into_iter().filter(|&i| i > newest).collect();
        // Cut points: before each later turn, and then before each later step of the newest turn,
        // with its user message kept.
        let by_turn = turns.iter().skip(1).map(|&t| (t, t));
        let by_step = steps.iter().skip(1).map(|&p| (newest, p));
        let mut best = None;
        for (turn, step) in by_turn.chain(by_step) {
            let kept: Vec<_> = blocks
                .iter()
                .enumerate()
                .filter(|(i, b)| {
                    is_fixed(b) || *i >= step || (*i >= turn && *i < user_end && turn == newest)
                })
                .map(|(_, b)| b.clone())
                .collect();
            let fits = s.prompt_tokens(&kept) <= target;
            best = Some(kept);
            if fits {
                break;
            }
        }
        match best {
            Some(kept) if kept.len() < blocks.len() => {
                s.compacted(CompactionKind::Drop, "slide", Phase::MidTurn, kept).is_ok()
            }
            _ => false,
        }
    }
}

#[async_trait]
impl Strategy for SlidingWindow {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let used = s.billed_tokens();
        let limit = (s.model.window as f64 * self.high) as u64;
        if used >= limit {
            s.trigger("before_request", used, limit);
            let target = (s.model.window as f64 * self.low) as u64;
            Self::slide(s, target);
        }
        Flow::Proceed
    }

    async fn on_error(&mut self, s: &mut Engine, e: &ModelError, attempt: u32) -> Flow {
        let target = (s.model.window as f64 * self.low / f64::from(attempt + 1)) as u64;
        if e.is_overflow() && attempt <= 4 && Self::slide(s, target) {
            Flow::Again
        } else {
            again_if_passing(e, attempt, PASSING_RETRIES)
        }
    }
}
