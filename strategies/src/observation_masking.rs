//! Observation masking: every tool result except the newest M shows a placeholder.
//!
//! This is the baseline of "The Complexity Trap" (arXiv 2508.21433, M = 10), which halved the cost
//! and solved as many tasks as a run without compaction (docs/sources/peers-and-metrics.md §1b).
//! Results are masked in batches, because masking one result per step would break the prompt cache
//! each time.

use std::sync::Arc;

use crate::descriptor::{About, BuildRequest, Product};
use async_trait::async_trait;
use ctxbench_core::block::{BlockForm, BlockKind};
use ctxbench_core::breakpoints::frontier_breakpoints;
use ctxbench_core::compaction::{CompactionKind, clear_outputs};
use ctxbench_core::engine::Engine;
use ctxbench_core::request::{Phase, Request};
use ctxbench_core::strategy::{Flow, Strategy};
use serde::Deserialize;

/// Texts in `observation_masking.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MaskingWords {
    placeholder: Arc<str>,
}

/// Values of the settings in `about.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ObservationMaskingSettings {
    keep: u64,
    batch: u64,
    breakpoints: Places,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Places {
    Ends,
    Frontier,
}

pub(crate) struct ObservationMasking;

impl Product for ObservationMasking {
    fn about(&self) -> About {
        About::read(include_str!("observation_masking.toml"))
    }

    fn build(&self, b: &BuildRequest<'_>) -> Box<dyn Strategy> {
        let s: ObservationMaskingSettings = b.settings();
        Box::new(Masking {
            keep: s.keep as usize,
            batch: (s.batch as usize).max(1),
            marks_frontier: s.breakpoints == Places::Frontier,
            placeholder: b.texts::<MaskingWords>().placeholder,
        })
    }
}

struct Masking {
    keep: usize,
    batch: usize,
    marks_frontier: bool,
    placeholder: Arc<str>,
}

#[async_trait]
impl Strategy for Masking {
    async fn before_request(&mut self, s: &mut Engine) -> Flow {
        let blocks = s.context.blocks();
        let live: Vec<usize> = (0..blocks.len())
            .filter(|&i| {
                blocks[i].kind == BlockKind::Output && blocks[i].form != BlockForm::Cleared
            })
            .collect();
        if live.len() >= self.keep.saturating_add(self.batch) {
            let old = &live[..live.len() - self.keep];
            let masked = clear_outputs(blocks, old, &self.placeholder);
            // Clearing does not separate calls from results.
            let _ = s.compacted(CompactionKind::Clear, "mask", Phase::MidTurn, masked);
        }
        Flow::Proceed
    }

    fn request(&mut self, s: &Engine) -> Request {
        let mut r = s.sample_request();
        if self.marks_frontier && s.options().default_breakpoints {
            let outputs =
                || r.blocks.iter().enumerate().filter(|(_, b)| b.kind == BlockKind::Output);
            // The oldest are masked first.
            let masked = outputs().take_while(|(_, b)| b.form == BlockForm::Cleared).count();
            let next = outputs().nth(masked).filter(|_| masked > 0).map(|(at, _)| at);
            r.breakpoints = frontier_breakpoints(&r.blocks, next);
        }
        r
    }
}
