//! The Anthropic SDK's tool runner: above a threshold, a summary replaces the whole conversation,
//! and the turn that crossed the threshold is lost.
//!
//! `old_runner.rs` follows Python 0.125 and TypeScript 0.124, and the published description of them;
//! `runner.rs` follows Python 2.12.

mod conform;
mod errors;
mod old_runner;
mod runner;
mod settings;
mod shared;
#[cfg(test)]
mod tests;
mod words;

use ctxbench_core::strategy::Strategy;

use crate::descriptor::{
    Build, Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Product, Reads,
    Requirement, Rewind, Standing, Version,
};
use old_runner::Old;
use runner::Runner;
use settings::SdkSettings;
use words::SdkWords;

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "anthropic-sdk",
    summary: "Anthropic SDK tool runner: at 100k tokens everything becomes one summary; the \
        crossing turn is lost",
    sources: &[
        "docs/sources/anthropic-sdk.md §2.2: PyPI anthropic 0.125.0 read and observed",
        "docs/sources/anthropic-sdk.md §2.3: npm @anthropic-ai/sdk 0.124.0 read and observed",
        "docs/sources/anthropic-sdk.md §2.4: PyPI anthropic 2.12.0 read and observed",
        "docs/sources/opencode-vs-claude-code.md §8: the description, for described-001",
    ],
    matrix: Matrix {
        layers: "1: summary of everything",
        llm_calls: "1 per compaction",
        user_messages: "gone; only the summary is left",
        tool_results: "gone; those of the crossing turn never ran (2.12: they ran and are in the \
            summary)",
        cache: "summary request without system and tools reads nothing; everything is rewritten \
            after it (2.12: reads the warm prefix)",
        afterwards: "the model is asked again with the summary as the only message",
        token_counting: "usage of the last reply",
        pre_send_check: "none: after each reply",
        overflow_response: "the error goes to the caller",
        thinking: "not passed to the summary request's parameters",
        memory: "none",
        undo: "none",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Absent,
    rewind: Rewind::UNSUPPORTED,
    // The program that embeds the SDK stores sessions.
    formats: &[],
    conform: conform::CONFORMANCE,
    color: PlotColor::Palette(4),
    files: MemoryFiles::None("the library reads no files; the program around it may"),
    settings_file: None,
    page: "docs/systems/anthropic-sdk.md",
    factory: Factory::of::<AnthropicSdk>(),
};

pub(crate) struct AnthropicSdk;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SdkVersion {
    V0_125,
    V2_12,
    Described001,
}

impl Product for AnthropicSdk {
    type Version = SdkVersion;
    type Settings = SdkSettings;
    type Words = SdkWords;

    const VERSIONS: &'static [(Version, Self::Version)] = &[
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

    /// Returns the capabilities that a version needs. The client of 0.125 compacts by itself and
    /// works with any wire. Threads and compaction on demand need the Anthropic API.
    fn needs(version: SdkVersion, _settings: &SdkSettings) -> Option<Requirement> {
        (version == SdkVersion::V2_12).then_some(Requirement {
            is_met: |c| c.message_threads,
            reason: "threads and compaction on demand exist on the Anthropic API only",
        })
    }

    fn build(b: Build<AnthropicSdk>) -> Box<dyn Strategy> {
        match b.version {
            SdkVersion::V0_125 => Box::new(Old::new(false, b.settings, b.words)),
            SdkVersion::V2_12 => Box::new(Runner::new(&b.settings, b.scale)),
            SdkVersion::Described001 => Box::new(Old::new(true, b.settings, b.words)),
        }
    }
}
