//! Claude Code: a summary, requested on the cached prefix, replaces the conversation, and recently
//! used files are restored.
//!
//! Follows the documented, measured and reported behaviour of 2.1 (docs/sources/claude-code.md §1).
//! The program is closed source, so every setting has a grade: A documented, B measured, C
//! reported. Before a request, the strategy estimates the size from the last usage and the new
//! blocks. If `microcompact` names a rule, old tool results are cleared. Above the threshold, the
//! same model summarises the conversation over the same prefix, or the notes of a session memory
//! replace it if that is on. After an overflow error the same happens with one end of the
//! conversation left out.
//!
//! A large session that idles on the one-hour cache is compacted before the cache entry expires
//! (`strategy/idle.rs`).
//!
//! The user's hooks can add to a compaction or block it (`hooks.rs`). A large session that is
//! resumed after a long pause may continue from a summary (`strategy/resume.rs`).
//!
//! Not modelled: images too large for a summary request (docs/sources/claude-code.md §1.3).

mod described;
mod files;
mod hooks;
mod memory;
mod micro;
pub(crate) mod persist;
mod restore;
mod rules;
mod settings;
mod strategy;
mod summary;
#[cfg(test)]
mod tests;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::conform::Conformance;
use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Reads,
    Requirement, Rewind, SnapshotKind, Standing, Version,
};
use described::{Wu2, three_tiers};
use settings::{ClaudeCodeSettings, Micro};
use strategy::ClaudeCodeProgram;
use words::ClaudeCodeWords;

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
    formats: &[persist::FORMAT],
    conform: Conformance::Unrecorded,
    color: PlotColor::Palette(3),
    files: MemoryFiles::Read { load: files::load, follows: true },
    settings_file: Some(files::SETTINGS),
    page: "docs/systems/claude-code.md",
    factory: Factory::of::<ClaudeCode>(),
};

pub(crate) struct ClaudeCode;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaudeCodeVersion {
    Program,
    Described001,
    Described002,
}

impl Product for ClaudeCode {
    type Version = ClaudeCodeVersion;
    type Settings = ClaudeCodeSettings;
    type Words = ClaudeCodeWords;

    const VERSIONS: &'static [(Version, Self::Version)] = &[
        (Version::released("2.1"), ClaudeCodeVersion::Program),
        (
            Version::described(
                "described-001",
                "published description (docs/sources/opencode-vs-claude-code.md §2): from 92 % of \
                 the window one summary, the last ten messages verbatim, at most half the window \
                 full, key facts moved to CLAUDE.md. In fact 83.5 % of 200k (with the reply's \
                 room), no such tail and nothing written to CLAUDE.md (docs/sources/claude-code.md \
                 §1.1)",
                Reads::Only(&["summary_max_tokens", "overflow_retries", "trim", "cache_ttl"]),
            ),
            ClaudeCodeVersion::Described001,
        ),
        (
            Version::described(
                "described-002",
                "published description (docs/sources/login-bug.md §3): old results cleared \
                     before every request, then only the unsent end cut, then notes before a \
                     summary. In fact recordings show no clearing by count, nothing cuts the \
                     end, and notes are off (docs/sources/claude-code.md §1.2, §1.5)",
                // Each tier has one mechanism: no other way of clearing, no files for long results,
                // no idle compaction.
                Reads::AllBut(&[
                    "microcompact",
                    "micro_minimum",
                    "micro_gap_ms",
                    "micro_gap_keep",
                    "micro_active",
                    "output_chars",
                    "shell_chars",
                    "search_chars",
                    "results_chars",
                    "hook_before",
                    "hook_blocks",
                    "hook_after",
                    "resume",
                    "resume_idle_ms",
                    "resume_min_tokens",
                    "resume_keep_messages",
                    "session_memory",
                    "trim",
                    "idle_compaction",
                    "idle_min_tokens",
                    "idle_share",
                ]),
            ),
            ClaudeCodeVersion::Described002,
        ),
    ];

    fn needs(_version: ClaudeCodeVersion, s: &ClaudeCodeSettings) -> Option<Requirement> {
        (s.microcompact == Micro::CacheEdits).then_some(Requirement {
            is_met: |c| c.context_editing,
            reason: "edits of a cached prefix exist on the Anthropic API only",
        })
    }

    fn build(b: Build<ClaudeCode>) -> Box<dyn Strategy> {
        let (s, words) = (b.settings, b.words);
        match b.version {
            ClaudeCodeVersion::Described001 => Box::new(Wu2::new(s, words)),
            ClaudeCodeVersion::Described002 => {
                Box::new(ClaudeCodeProgram::new(three_tiers(s), words, true))
            }
            ClaudeCodeVersion::Program => Box::new(ClaudeCodeProgram::new(s, words, false)),
        }
    }
}
