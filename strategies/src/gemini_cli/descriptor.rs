//! Descriptor of the Gemini CLI strategy.

use crate::descriptor::{
    Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Rewind, Standing,
};

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
    formats: &[crate::gemini_cli::persist::FORMAT],
    conform: crate::gemini_cli::conform::CONFORMANCE,
    color: PlotColor::Palette(9),
    files: MemoryFiles::Read { load: crate::gemini_cli::files::load, follows: false },
    settings_file: Some(crate::gemini_cli::files::SETTINGS),
    knobs: crate::gemini_cli::knobs::KNOBS,
    page: "docs/systems/gemini-cli.md",
    factory: Factory::of::<crate::gemini_cli::GeminiCli>(),
};
