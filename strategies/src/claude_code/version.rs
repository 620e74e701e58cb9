//! Versions of Claude Code.

use crate::descriptor::{Reads, Version, Versions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaudeCodeVersion {
    Program,
    Described001,
    Described002,
}

impl Versions for ClaudeCodeVersion {
    const TABLE: &'static [(Version, Self)] = &[
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
}
