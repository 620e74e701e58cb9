//! Codex CLI: the user's messages and one handoff summary replace the whole history.
//!
//! `program.rs` follows the releases, `described.rs` follows two published descriptions.

mod conform;
mod count;
mod cut;
mod described;
mod files;
mod items;
pub(crate) mod persist;
mod program;
mod record;
#[cfg(test)]
mod recorded_tests;
mod settings;
#[cfg(test)]
mod tests;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Reads,
    Requirement, Rewind, Standing, Version,
};
use count::Release;
use described::DescribedCodex;
use program::CodexProgram;
use settings::CodexSettings;
use words::CodexWords;

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
        afterwards: "context rebuilt, the turn continues from the summary",
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
    formats: &[persist::FORMAT],
    conform: conform::CONFORMANCE,
    color: PlotColor::Palette(1),
    files: MemoryFiles::Read { load: files::load, follows: false },
    settings_file: Some(files::SETTINGS),
    page: "docs/systems/codex.md",
    factory: Factory::of::<Codex>(),
};

pub(crate) struct Codex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodexVersion {
    Program(Release),
    /// Replaces the history with a note as a message of the assistant, or trims the oldest items.
    Described {
        hands_over: bool,
    },
}

/// Only 0.169 compacts after a turn.
const OLDER: Reads = Reads::AllBut(&["post_turn_percent"]);

impl Product for Codex {
    type Version = CodexVersion;
    type Settings = CodexSettings;
    type Words = CodexWords;

    const VERSIONS: &'static [(Version, Self::Version)] = &[
        (Version::released("0.169"), CodexVersion::Program(Release::V169)),
        (Version::released("0.104").reading(OLDER), CodexVersion::Program(Release::V104)),
        (Version::released("0.63").reading(OLDER), CodexVersion::Program(Release::V063)),
        (
            Version::described(
                "described-000",
                "published description (docs/sources/chat-history.md, \
                 docs/sources/token-budgeting.md §3): above 95 % of the window the oldest items \
                 are removed, no summary; the newest message of the user stays. In fact it \
                 summarises at 90 %, and removes items only inside a refused summary request \
                 (docs/sources/codex.md §6)",
                Reads::Only(&["tool_output_tokens", "tool_output_policy", "stream_retries"]),
            ),
            CodexVersion::Described { hands_over: false },
        ),
        (
            Version::described(
                "described-002",
                "published description (docs/sources/login-bug.md §2): system prompt, the user's \
                 messages and an assistant message with the note, then trimming from the head if \
                 that is not enough. In fact the note is a user message behind a fixed prefix, the \
                 context is rebuilt before the last user message, and nothing is trimmed after a \
                 compaction (docs/sources/codex.md §6)",
                Reads::Only(&[
                    "auto_compact_limit",
                    "user_message_tokens",
                    "tool_output_tokens",
                    "tool_output_policy",
                    "stream_retries",
                ]),
            ),
            CodexVersion::Described { hands_over: true },
        ),
    ];

    /// Remote compaction is an item of the Responses API; compaction blocks of other providers
    /// differ.
    fn needs(version: CodexVersion, s: &CodexSettings) -> Option<Requirement> {
        (matches!(version, CodexVersion::Program(_)) && s.remote).then_some(Requirement {
            is_met: |c| c.compaction_items,
            reason: "remote compaction exists on the OpenAI Responses API only",
        })
    }

    fn build(b: Build<Codex>) -> Box<dyn Strategy> {
        let (s, words, scale) = (b.settings, b.words, b.scale);
        match b.version {
            CodexVersion::Program(release) => Box::new(CodexProgram::new(release, s, words, scale)),
            CodexVersion::Described { hands_over } => {
                Box::new(DescribedCodex::new(hands_over, s, words, scale))
            }
        }
    }
}
