//! Baselines: no compaction at all, with an unlimited or the real window, and nothing kept at all.

use crate::conform::Conformance;
use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Rewind,
    Standing, Version,
};
use crate::persist::OURS;
use async_trait::async_trait;
use ctxbench_core::block::BlockKind;
use ctxbench_core::block::is_fixed;
use ctxbench_core::compaction::{CompactionKind, step_starts};
use ctxbench_core::engine::Engine;
use ctxbench_core::request::Phase;
use ctxbench_core::strategy::{Flow, Strategy};

const NOTHING: Matrix = Matrix {
    layers: "0",
    llm_calls: "none",
    user_messages: "verbatim",
    tool_results: "verbatim",
    cache: "append-only: the prefix never changes",
    afterwards: "n/a",
    token_counting: "none",
    pre_send_check: "none",
    overflow_response: "the session ends",
    thinking: "verbatim",
    memory: "none",
    undo: "n/a",
};

/// No compaction in an unlimited window: the 100 % row.
pub const REFERENCE: Descriptor = Descriptor {
    name: "reference",
    summary: "no compaction in an unlimited window (hypothetical): the 100 % row",
    sources: &["definition: docs/method.md"],
    matrix: Matrix { overflow_response: "cannot overflow", ..NOTHING },
    standing: Standing::Hypothetical,
    manual: ManualCompaction::Absent,
    rewind: Rewind::UNSUPPORTED,
    formats: OURS,
    conform: Conformance::Unrecorded,
    color: PlotColor::Grey { dashed: true },
    files: MemoryFiles::None("a control has no program that would read files"),
    settings_file: None,
    page: "docs/systems/techniques.md",
    factory: Factory::of::<Nothing>(),
};

/// No compaction in the real window.
pub const NO_COMPACTION: Descriptor = Descriptor {
    name: "none",
    summary: "no compaction in the real window: dies when it is full",
    standing: Standing::Control,
    matrix: NOTHING,
    color: PlotColor::Grey { dashed: false },
    ..REFERENCE
};

struct Nothing;

impl Product for Nothing {
    type Version = ();
    type Settings = ();
    type Words = ();
    const VERSIONS: &'static [(Version, ())] = &[(Version::ONLY, ())];

    fn build(_b: Build<Self>) -> Box<dyn Strategy> {
        Box::new(Nothing)
    }
}

#[async_trait]
impl Strategy for Nothing {
    // Nothing is forgotten, even at the end of a session.
    async fn on_new_session(&mut self, _s: &mut Engine) {}
}

/// Keeps only the newest message and step.
pub const KEEP_NOTHING: Descriptor = Descriptor {
    name: "keep-nothing",
    summary: "shows the newest user message and step only: the other end of the scale",
    standing: Standing::Control,
    matrix: Matrix {
        layers: "1: drop everything old",
        user_messages: "only the newest",
        tool_results: "only the newest step's",
        cache: "only the system part stays",
        afterwards: "nothing",
        ..NOTHING
    },
    factory: Factory::of::<KeepNothing>(),
    ..REFERENCE
};

struct KeepNothing;

impl Product for KeepNothing {
    type Version = ();
    type Settings = ();
    type Words = ();
    const VERSIONS: &'static [(Version, ())] = &[(Version::ONLY, ())];

    fn build(_b: Build<Self>) -> Box<dyn Strategy> {
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
