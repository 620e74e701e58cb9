//! Descriptor of the Codex strategy: settings, sources, prompt texts.

use crate::descriptor::{
    Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Rewind, Standing,
};

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "codex",
    summary: "Codex CLI: user messages verbatim, everything else becomes one handoff summary",
    sources: &[
        "docs/sources/codex.md §1-3: released programs 0.169, 0.104 and 0.63 observed, source at \
         6c0c6759 and 54d22e3f read",
    ],
    matrix: Matrix {
        layers: "1: handoff summary",
        llm_calls: "1 per compaction (more when the summary request itself overflows)",
        user_messages: "kept verbatim, newest first, 20k tokens; the oldest that fits partly is \
            cut in the middle",
        tool_results: "dropped with the rest; long ones cut in the middle on arrival",
        cache: "summary request repeats the conversation but offers no tools: read from the cache \
            only where tools are not its beginning; rewritten after it",
        afterwards: "context rebuilt, the turn goes on from the summary",
        token_counting: "last usage reported + bytes / 4 of what is new",
        pre_send_check: "before a turn and between steps, >= 90 % of the window",
        overflow_response: "turn fails, the count is filled up to 95 % of the window for the whole \
            session; in a compaction the oldest item goes and it tries again",
        thinking: "encrypted reasoning is kept until the compaction and counted",
        memory: "AGENTS.md shown again",
        undo: "whole turns of the user; going back past a compaction brings the old history back \
            from the rollout",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Plain,
    // Codex rewinds the conversation only; release 3 removed the undo of files
    // (docs/sources/codex.md §1).
    rewind: Rewind { conversation: true, ..Rewind::UNSUPPORTED },
    formats: &[crate::codex::persist::FORMAT],
    conform: crate::codex::conform::CONFORMANCE,
    color: PlotColor::Palette(1),
    files: MemoryFiles::Read { load: crate::codex::files::load, follows: false },
    settings_file: Some(crate::codex::files::SETTINGS),
    knobs: crate::codex::knobs::KNOBS,
    page: "docs/systems/codex.md",
    factory: Factory::of::<crate::codex::Codex>(),
};
