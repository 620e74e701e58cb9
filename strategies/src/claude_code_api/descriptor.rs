//! Descriptor of the strategy that leaves context management to the Anthropic API, and its prompts.

use crate::conform::Conformance;
use crate::descriptor::{
    Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Rewind, Standing,
};

/// Descriptor of the strategy. Grades in the sources: A documented; "ours" = a choice that the API
/// leaves to its client.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "claude-code-api",
    summary: "Anthropic API: clears old tool results at 100k and compacts at 150k tokens on the \
        provider's side",
    sources: &[
        "docs/sources/anthropic-api.md §2.2 to §2.5: the API's documentation (A)",
        "docs/sources/anthropic-sdk.md §3: JSON shapes of anthropic 2.12.0",
    ],
    matrix: Matrix {
        layers: "3: clear thinking, clear old tool results, summary, all by the provider",
        llm_calls: "1 per compaction, billed as an iteration of the request (on demand: a request \
            of its own)",
        user_messages: "in the provider's summary; after a pause the newest are kept",
        tool_results: "oldest beyond 3 become a placeholder from 100k tokens on",
        cache: "clearing rewrites from the first cleared result on; the summary reads the warm \
            prefix; the system prompt stays cached",
        afterwards: "the provider answers from its summary in the same reply",
        token_counting: "the provider's own",
        pre_send_check: "none: the provider acts on arrival",
        overflow_response: "the error goes to the caller",
        thinking: "kept, or cleared in older turns; never within an unfinished tool cycle",
        memory: "memory tool, off by default",
        undo: "none",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::Absent,
    rewind: Rewind::UNSUPPORTED,
    formats: &[crate::claude_code::persist::FORMAT],
    conform: Conformance::Unrecorded,
    color: PlotColor::Palette(3),
    files: MemoryFiles::None("the API reads no files; what is remembered is its client's matter"),
    settings_file: None,
    knobs: &[],
    page: "docs/systems/claude-code-api.md",
    factory: Factory::of::<crate::claude_code_api::Api>(),
};

crate::words::words! {
    /// Texts that the strategy adds to requests.
    pub(crate) struct ApiWords {
        memory_warning = "Old tool results are about to be removed from this conversation. Write \
            down now what is still needed of them: the task, what was found out, what was decided \
            and why, file paths, names and values, and what comes next.";
        memory_saved = "The note was written.";
    }
}
