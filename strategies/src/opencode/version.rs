//! Versions of OpenCode.

use crate::descriptor::{Reads, Version, Versions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenCodeVersion {
    V1_18,
    V1_3,
    Described001,
    Described002,
}

impl Versions for OpenCodeVersion {
    const TABLE: &'static [(Version, Self)] = &[
        (Version::released("1.18"), OpenCodeVersion::V1_18),
        (
            // No verbatim tail, and no plugin decides about continuing.
            Version::released("1.3").reading(Reads::AllBut(&[
                "autocontinue",
                "tail_turns",
                "preserve_recent_tokens",
                "tail_least",
                "tail_most",
                "model_input",
            ])),
            OpenCodeVersion::V1_3,
        ),
        (
            Version::described(
                "described-001",
                "published description (docs/sources/opencode-vs-claude-code.md §2 and §7): \
                 everything summarised by a plain prompt beyond the window less the reply, judged \
                 before the next request; no tail, no message afterwards, pruning on, no tool \
                 exempt. In fact (1.18) pruning is off and a tail stays verbatim",
                Reads::Only(&["auto", "prune", "prune_protect", "prune_minimum", "prompt"]),
            ),
            OpenCodeVersion::Described001,
        ),
        (
            Version::described(
                "described-002",
                "published description (docs/sources/login-bug.md §4): old results vanish with \
                 their calls, then a summary under five headings and always the last user message \
                 again. In fact (1.18) pruning is off and leaves placeholders, and only a refused \
                 prompt is repeated",
                Reads::Only(&[
                    "auto",
                    "prune",
                    "prune_protect",
                    "prune_minimum",
                    "prompt",
                    "reserved",
                ]),
            ),
            OpenCodeVersion::Described002,
        ),
    ];
}
