//! Descriptor of the strategy for the Anthropic SDK's tool runner, and its prompt.

use crate::descriptor::{
    Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Rewind, Standing,
};

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
    conform: crate::anthropic_sdk::conform::CONFORMANCE,
    color: PlotColor::Palette(4),
    files: MemoryFiles::None("the library reads no files; the program around it may"),
    settings_file: None,
    knobs: &[],
    page: "docs/systems/anthropic-sdk.md",
    factory: Factory::of::<crate::anthropic_sdk::AnthropicSdk>(),
};
