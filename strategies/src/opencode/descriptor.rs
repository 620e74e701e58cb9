//! Descriptor of the OpenCode strategy: settings, sources, prompt texts.

use crate::descriptor::{
    Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Rewind, SnapshotKind,
    Standing,
};

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "opencode",
    summary: "OpenCode: summary of the head behind a marker, newest steps verbatim; optional \
        pruning of old tool results",
    sources: &["docs/sources/opencode.md: released programs 1.18.33 and 1.3.2 read and observed"],
    matrix: Matrix {
        layers: "2: clear old tool results (off by default), summary with a verbatim tail",
        llm_calls: "1 per compaction",
        user_messages: "in the summary, except those in the tail; repeated after a provider \
            overflow",
        tool_results: "tail verbatim; cut to 2,000 characters for the summariser; clearing keeps \
            the call",
        cache: "summary request has its own system prompt, so it reads nothing; the prefix is \
            rewritten after it",
        afterwards: "a synthetic message asks the model to continue",
        token_counting: "usage reported by the provider; UTF-16 length / 4 for pruning and tail",
        pre_send_check: "none: only after a step, by reported usage",
        overflow_response: "compacts without the last user message and repeats it",
        thinking: "kept in the tail, written into the transcript",
        memory: "AGENTS.md / CLAUDE.md in the system prompt",
        undo: "everything stays in the store; reverting past a compaction undoes it",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Plain,
    // A revert restores messages and files together (docs/sources/opencode.md §7).
    rewind: Rewind { conversation: true, code: Some(SnapshotKind::ShadowGit), summaries: false },
    formats: &[crate::opencode::persist_tables::FORMAT, crate::opencode::persist_files::FORMAT],
    conform: crate::opencode::conform::CONFORMANCE,
    color: PlotColor::Palette(2),
    files: MemoryFiles::Read { load: crate::opencode::files::load, follows: false },
    settings_file: Some(crate::opencode::files::SETTINGS),
    knobs: crate::opencode::knobs::KNOBS,
    page: "docs/systems/opencode.md",
    factory: Factory::of::<crate::opencode::OpenCode>(),
};
