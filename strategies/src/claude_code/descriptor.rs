//! Descriptor of the Claude Code strategy, and its prompt texts.

use crate::conform::Conformance;
use crate::descriptor::{
    Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Rewind, SnapshotKind,
    Standing,
};

/// Descriptor of the strategy. Grades in the sources: A documented, B measured, C reported.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "claude-code",
    summary: "Claude Code: one summary on the warm prefix below the window; up to five recent \
        files come back",
    sources: &[
        "docs/sources/claude-code.md §1: documentation and changelog to 2.1.240 (A), measurements \
         (B), reports (C); the program itself was not read",
    ],
    matrix: Matrix {
        layers: "1: summary; notes in its place where session memory is on, old results cleared \
            first where microcompact is",
        llm_calls: "1 per compaction (more when the summary request itself overflows); with \
            session memory 1 per update of the notes",
        user_messages: "in the summary, which has a section for all of them",
        tool_results: "large ones go to a file on arrival",
        cache: "summary request reads the whole warm prefix; afterwards system and memory stay \
            cached and the rest is rewritten",
        afterwards: "summary with a lead-in, recent files, skills, the plan; the turn continues",
        token_counting: "last usage reported + bytes / 4 of what is new",
        pre_send_check: "before every request: window - min(largest reply, 20k) - 13k",
        overflow_response: "compacts, the oldest part left out, and sends again; three refills or \
            failures in a row end it",
        thinking: "goes with the conversation",
        memory: "CLAUDE.md stays; rules for some paths come back with a matching file",
        undo: "going back behind a compaction brings the messages back",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::WithInstructions,
    // docs/sources/claude-code.md §1.5; docs/sources/chat-history.md
    rewind: Rewind { conversation: true, code: Some(SnapshotKind::EditTools), summaries: true },
    formats: &[crate::claude_code::persist::FORMAT],
    conform: Conformance::Unrecorded,
    color: PlotColor::Palette(3),
    files: MemoryFiles::Read { load: crate::claude_code::files::load, follows: true },
    settings_file: Some(crate::claude_code::files::SETTINGS),
    knobs: crate::claude_code::knobs::KNOBS,
    page: "docs/systems/claude-code.md",
    factory: Factory::of::<crate::claude_code::ClaudeCode>(),
};
