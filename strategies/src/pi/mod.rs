//! pi: replaces the history with a summary and keeps a tail of about 20,000 tokens. The cut may lie
//! within a turn.
//!
//! The session is a log of entries (`log.rs`) from which `projection.rs` derives the view.
//! `rules.rs` contains the rules without state, and `strategy.rs` the hooks.

mod conform;
mod files;
mod log;
pub(crate) mod persist;
mod projection;
mod record;
mod rules;
mod settings;
mod strategy;
mod summary;
#[cfg(test)]
mod tests;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Rewind,
    Standing, Version,
};
use settings::PiSettings;
use strategy::PiProgram;
use words::PiWords;

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "pi",
    summary: "pi: one summary in front of the newest 20,000 tokens, brought up to date each time; \
        a turn may be cut in two",
    sources: &["docs/sources/pi.md: released program 1.5.2 read and observed"],
    matrix: Matrix {
        layers: "1: summary with a verbatim tail",
        llm_calls: "1 per compaction, 2 where the cut lies inside a turn",
        user_messages: "in the summary, except those in the tail",
        tool_results: "tail verbatim; cut to 2,000 characters for the summariser",
        cache: "summary request has its own system prompt, so it reads nothing and writes nothing; \
            the prefix is rewritten after it",
        afterwards: "nothing is added; the tail continues",
        token_counting: "usage of the last reply since the newest compaction or edit, and UTF-16 \
            length / 4 of what came since",
        pre_send_check: "after each batch of tools and before each prompt, by that count",
        overflow_response: "hides the refused reply, compacts and goes on, once per turn; so too \
            after a reply cut off below its limit",
        thinking: "kept in the tail, left out of the transcript",
        memory: "AGENTS.md / CLAUDE.md in the system prompt",
        undo: "the session is a tree, and going back before a compaction undoes it",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::WithInstructions,
    // A rewind returns to a message in the tree and does not change files (docs/sources/pi.md §7).
    rewind: Rewind { conversation: true, code: None, summaries: false },
    formats: &[persist::FORMAT],
    conform: conform::CONFORMANCE,
    color: PlotColor::Palette(8),
    files: MemoryFiles::Read { load: files::load, follows: false },
    settings_file: Some(files::SETTINGS),
    page: "docs/systems/pi.md",
    factory: Factory::of::<Pi>(),
};

pub(crate) struct Pi;

impl Product for Pi {
    type Version = ();
    type Settings = PiSettings;
    type Words = PiWords;

    const VERSIONS: &'static [(Version, Self::Version)] = &[(Version::released("1.5"), ())];

    fn build(b: Build<Pi>) -> Box<dyn Strategy> {
        Box::new(PiProgram::new(b.settings, b.words, b.scale))
    }
}
