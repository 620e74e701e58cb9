//! Observation masking: every tool result except the newest M shows a placeholder.
//!
//! This is the baseline of "The Complexity Trap" (arXiv 2508.21433, M = 10), which halved the cost
//! and solved as many tasks as a run without compaction (docs/sources/peers-and-metrics.md §1b).
//! Results are masked in batches, because masking one result per step would break the prompt cache
//! each time.

use crate::conform::Conformance;
use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Rewind,
    Standing, Version,
};
use crate::persist::OURS;
use async_trait::async_trait;
use ctxbench_core::block::{BlockForm, BlockKind};
use ctxbench_core::breakpoints::frontier_breakpoints;
use ctxbench_core::compaction::{CompactionKind, clear_outputs};
use ctxbench_core::engine::Engine;
use ctxbench_core::request::{Phase, Request};
use ctxbench_core::strategy::{Flow, Strategy};

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "observation-masking",
    summary: "all tool results but the newest M show a placeholder",
    sources: &["docs/sources/peers-and-metrics.md §1b: arXiv 2508.21433, masking with M = 10"],
    matrix: Matrix {
        layers: "1: mask old tool results",
        llm_calls: "none",
        user_messages: "verbatim",
        tool_results: "newest M verbatim, older ones a placeholder",
        cache: "the prefix breaks at the newest masked result, at every step",
        afterwards: "nothing",
        token_counting: "none: counts results",
        pre_send_check: "none",
        overflow_response: "the session ends",
        thinking: "verbatim",
        memory: "none",
        undo: "results stay in the history",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Absent,
    rewind: Rewind::UNSUPPORTED,
    formats: OURS,
    conform: Conformance::Unrecorded,
    color: PlotColor::Palette(7),
    files: MemoryFiles::None("a technique has no program that would read files"),
    settings_file: None,
    page: "docs/systems/techniques.md",
    factory: Factory::of::<ObservationMasking>(),
};

crate::words::words! {
    /// Texts that the strategy adds to requests.
    struct MaskingWords {
        placeholder = "(this output was left out to save space)";
    }
}

ctxbench_core::settings! {
    /// Settings, each with the source of its default.
    struct ObservationMaskingSettings {
        /// newest tool results that are not masked
        keep: count = 10, "docs/sources/peers-and-metrics.md §1b: M = 10";
        /// number of results that are masked at a time
        batch: count = 1, "arXiv 2508.21433 masks at every step";
        /// prompt-cache breakpoints: at the end of the system prompt and of the last two messages,
        /// or also before the oldest result that is still shown
        breakpoints: choice Places { Ends = "ends", Frontier = "frontier" } = Frontier,
            "ours: none is published for a client that masks; docs/findings.md shows both";
    }
}

impl Product for ObservationMasking {
    type Version = ();
    type Settings = ObservationMaskingSettings;
    type Words = MaskingWords;
    const VERSIONS: &'static [(Version, ())] = &[(Version::ONLY, ())];

    fn build(b: Build<Self>) -> Box<dyn Strategy> {
        Box::new(ObservationMasking {
            keep: b.settings.keep as usize,
            batch: (b.settings.batch as usize).max(1),
            marks_frontier: b.settings.breakpoints == Places::Frontier,
            placeholder: b.words.placeholder.clone(),
        })
    }
}

struct ObservationMasking {
    keep: usize,
    batch: usize,
    marks_frontier: bool,
    placeholder: std::sync::Arc<str>,
}

#[async_trait]
impl Strategy for ObservationMasking {
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
