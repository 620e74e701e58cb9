//! Gemini CLI: a snapshot, checked by a second request, replaces the oldest 70 % of the history.
//! Old tool results move to files.
//!
//! `contents.rs` models the history, `sizes.rs` measures it, `rules.rs` contains the rules that
//! depend on these sizes, and `strategy.rs` decides when to apply them.

mod conform;
mod contents;
mod files;
pub(crate) mod persist;
mod preview;
mod record;
mod resumed;
mod rules;
mod settings;
mod sizes;
mod strategy;
#[cfg(test)]
mod tests;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Rewind,
    Standing, Version,
};
use settings::GeminiCliSettings;
use strategy::GeminiCliProgram;
use words::GeminiCliWords;

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "gemini-cli",
    summary: "Gemini CLI: the older 70 % become a snapshot that a second request checks; old tool \
        results go to files",
    sources: &["docs/sources/gemini-cli.md: released program 0.61.0 read and observed"],
    matrix: Matrix {
        layers: "3: previews of old tool results, cut of those beyond a budget, snapshot with a \
            verbatim tail",
        llm_calls: "2 per compaction: a draft and its check",
        user_messages: "in the snapshot, except those in the tail",
        tool_results: "newest 50,000 tokens whole; older ones become a preview, or are cut to \
            40,000 characters in the tail",
        cache: "summary requests have another system prompt, no tools and other call ids, so they \
            read nothing; the prefix is rewritten after them",
        afterwards: "a constant reply of the model acknowledges the snapshot",
        token_counting: "prompt size of the last reply; after a change of the history its texts \
            alone (ASCII / 4, others 1.5 tokens)",
        pre_send_check: "before every request, also between tools: half of the window",
        overflow_response: "none: the error stands, and the message is taken back",
        thinking: "never sent again",
        memory: "GEMINI.md in the system prompt and the first message",
        undo: "the stored messages are rewritten: what was compressed does not come back",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Plain,
    // A rewind is possible within the stored messages (docs/sources/gemini-cli.md §6).
    rewind: Rewind { conversation: true, code: None, summaries: false },
    formats: &[persist::FORMAT],
    conform: conform::CONFORMANCE,
    color: PlotColor::Palette(9),
    files: MemoryFiles::Read { load: files::load, follows: false },
    settings_file: Some(files::SETTINGS),
    page: "docs/systems/gemini-cli.md",
    factory: Factory::of::<GeminiCli>(),
};

pub(crate) struct GeminiCli;

impl Product for GeminiCli {
    type Version = ();
    type Settings = GeminiCliSettings;
    type Words = GeminiCliWords;

    const VERSIONS: &'static [(Version, Self::Version)] = &[(Version::released("0.61"), ())];

    fn build(b: Build<GeminiCli>) -> Box<dyn Strategy> {
        Box::new(GeminiCliProgram::new(b.settings, b.words))
    }
}
