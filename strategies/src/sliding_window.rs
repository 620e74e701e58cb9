//! Sliding window: when the window is nearly full, the oldest turns are dropped.
//!
//! This is the simplest technique. The oldest whole turns (or, in the newest turn, the oldest whole
//! steps) are dropped until a share of the window is free again. Calls and results are always
//! dropped together.

use crate::descriptor::{About, BuildRequest, Product};
use async_trait::async_trait;
use ctxbench_core::block::is_fixed;
use ctxbench_core::compaction::{CompactionKind, step_starts, turn_starts};
use ctxbench_core::engine::Engine;
use ctxbench_core::request::{ModelError, Phase};
use ctxbench_core::strategy::{Flow, PASSING_RETRIES, Strategy, again_if_passing};
use serde::Deserialize;

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Window {
    /// Share of the window at which turns are dropped.
    high: f64,
    /// Share of the window that stays filled after dropping.
    low: f64,
}

pub(crate) struct SlidingWindow;

impl Product for SlidingWindow {
    fn about(&self) -> About {
        About::read(include_str!("sliding_window.toml"))
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        Box::new(b.settings::<Window>())
    }
}

impl Window {
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
impl Strategy for Window {
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
