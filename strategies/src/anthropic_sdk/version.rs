//! Versions of the Anthropic SDK for Python (and 0.124 for TypeScript).

use crate::descriptor::{Reads, Version, Versions};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SdkVersion {
    V0_125,
    V2_12,
    Described001,
}

impl Versions for SdkVersion {
    const TABLE: &'static [(Version, Self)] = &[
        (
            Version::released("0.125").reading(Reads::Only(&[
                "language",
                "enabled",
                "threshold",
                "model",
                "summary_prompt",
                "max_tokens",
                "max_iterations",
            ])),
            SdkVersion::V0_125,
        ),
        (
            Version::released("2.12").reading(Reads::Only(&[
                "max_tokens",
                "max_iterations",
                "compact_at",
                "threads",
                "edits",
            ])),
            SdkVersion::V2_12,
        ),
        (
            Version::described(
                "described-001",
                "published description (docs/sources/opencode-vs-claude-code.md §8): more than the \
                 threshold in all messages, checked after the step, nothing lost. In fact the \
                 usage of the last reply counts, and that reply is lost \
                 (docs/sources/anthropic-sdk.md §2.2)",
                Reads::Only(&["threshold", "max_tokens", "max_iterations"]),
            ),
            SdkVersion::Described001,
        ),
    ];
}
