//! Versions of Codex CLI.

use crate::descriptor::{Reads, Version, Versions};

use crate::codex::count::Release;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodexVersion {
    Program(Release),
    /// Trims the oldest items and never summarises.
    Trims,
    /// Replaces the history with a note as a message of the assistant.
    HandsOver,
}

/// Only 0.169 compacts after a turn.
const OLDER: Reads = Reads::AllBut(&["post_turn_percent"]);

impl Versions for CodexVersion {
    const TABLE: &'static [(Version, Self)] = &[
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
            CodexVersion::Trims,
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
            CodexVersion::HandsOver,
        ),
    ];
}
