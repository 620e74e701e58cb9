//! What the strategy that leaves context management to the Anthropic API says of itself, and its prompt texts.

use ctxbench_core::descriptor::{Descriptor, Matrix, Recovery, Standing};
use ctxbench_core::provider::{Model, Wire};
use ctxbench_core::settings::{Default, Kind, Setting, Settings};

const fn setting(name: &'static str, kind: Kind, default: Default, help: &'static str, source: &'static str) -> Setting {
    Setting { name, kind, default, help, source }
}

/// What the strategy says of itself. Sources are graded as in the facts: A documented; "ours" = a choice the API leaves to its client.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "claude-code-api",
    summary: "Anthropic API: clears old tool results at 100k and compacts at 150k tokens on the provider's side",
    versions: &["2026-09"],
    sources: &[
        "facts/claude-code-and-apis.md §2.2 to §2.5: the API's documentation (A)",
        "facts/aider-and-anthropic-sdk.md §3: JSON shapes of anthropic 2.12.0",
    ],
    settings: &[
        setting(
            "clear",
            Kind::Flag,
            Default::Flag(true),
            "ask for clear_tool_uses_20250919 where the model's provider offers it",
            "ours; A: facts/claude-code-and-apis.md §2.2 describes the edit",
        ),
        setting(
            "clear_trigger",
            Kind::Tokens,
            Default::Int(100_000),
            "input tokens from which old tool results are cleared",
            "A: facts/claude-code-and-apis.md §2.2",
        ),
        setting(
            "clear_trigger_uses",
            Kind::Count,
            Default::Auto,
            "tool uses from which they are cleared, instead of tokens; auto = tokens decide",
            "A: facts/claude-code-and-apis.md §2.2, trigger of type tool_uses",
        ),
        setting("clear_keep", Kind::Count, Default::Int(3), "newest tool uses that stay", "A: facts/claude-code-and-apis.md §2.2"),
        setting(
            "clear_at_least",
            Kind::Tokens,
            Default::Int(0),
            "tokens that must go for clearing to happen at all; 0 = any",
            "A: facts/claude-code-and-apis.md §2.2, clear_at_least none",
        ),
        setting(
            "clear_exclude",
            Kind::Text,
            Default::Auto,
            "tools whose results stay, joined by +; auto = none",
            "A: facts/claude-code-and-apis.md §2.2, exclude_tools none",
        ),
        setting(
            "clear_inputs",
            Kind::Text,
            Default::Word("none"),
            "whose call arguments go with the results: none, all, or tools joined by +",
            "A: facts/aider-and-anthropic-sdk.md §3, clear_tool_inputs false",
        ),
        setting(
            "memory",
            Kind::Flag,
            Default::Flag(false),
            "offer the memory tool; the model is warned before results are cleared and saves a note (modelled: one request for it)",
            "A: facts/claude-code-and-apis.md §2.2, the warning; how much a model saves is not documented",
        ),
        setting(
            "thinking",
            Kind::Choice(&["default", "all", "turns"]),
            Default::Word("default"),
            "clear_thinking_20251015: not asked for, keep all, keep the newest turns",
            "A: facts/claude-code-and-apis.md §2.2; without the edit Opus from 4.5 and Sonnet from 4.6 on keep all",
        ),
        setting(
            "thinking_keep",
            Kind::Count,
            Default::Int(1),
            "turns that keep their thinking with thinking=turns, at least 1",
            "A: facts/aider-and-anthropic-sdk.md §3: the last turn is the older models' default",
        ),
        setting(
            "compact",
            Kind::Choice(&["threshold", "on_demand", "off"]),
            Default::Word("threshold"),
            "compact_20260112 within a request, a compaction by a request of its own, or none; on demand excludes the edits for that request",
            "ours; A: facts/claude-code-and-apis.md §2.3 and §2.4",
        ),
        setting(
            "compact_trigger",
            Kind::Tokens,
            Default::Int(150_000),
            "input tokens from which it compacts; on demand: usage of the last reply; the provider refuses a threshold below 50k",
            "A: facts/claude-code-and-apis.md §2.3",
        ),
        setting(
            "pause",
            Kind::Flag,
            Default::Flag(false),
            "pause_after_compaction: the newest messages are put behind the summary before the model goes on",
            "A: facts/claude-code-and-apis.md §2.3",
        ),
        setting(
            "keep_last",
            Kind::Count,
            Default::Int(4),
            "messages put behind the summary after a pause, never a result without its call",
            "ours: the API leaves it to its client",
        ),
        setting(
            "instructions",
            Kind::Text,
            Default::Auto,
            "replaces the provider's prompt for the summary; auto = the provider's",
            "A: facts/claude-code-and-apis.md §2.3",
        ),
    ],
    matrix: Matrix {
        layers: "3: clear thinking, clear old tool results, summary, all by the provider",
        llm_calls: "1 per compaction, billed as an iteration of the request (on demand: a request of its own)",
        user_messages: "in the provider's summary; after a pause the newest are kept",
        tool_results: "oldest beyond 3 become a placeholder from 100k tokens on",
        cache: "clearing rewrites from the first cleared result on; the summary reads the warm prefix; the system prompt stays cached",
        afterwards: "the provider answers from its summary in the same reply",
        token_counting: "the provider's own",
        pre_send_check: "none: the provider acts on arrival",
        overflow_response: "the error goes to the caller",
        thinking: "kept, or cleared in older turns; never within an unfinished tool cycle",
        memory: "memory tool, off by default",
        undo: "none",
    },
    wording: &[
        (
            "claude-code-api.memory_warning",
            "Old tool results are about to be removed from this conversation. Write down now what is still needed of them: the task, what was \
             found out, what was decided and why, file paths, names and values, and what comes next.",
        ),
        ("claude-code-api.memory_saved", "The note was written."),
    ],
    standing: Standing::Contender,
    manual: false,
    recovery: Recovery::Log,
    unfit,
    build: crate::claude_code_api::build,
};

fn unfit(_version: &str, _settings: &Settings, model: &Model) -> Option<&'static str> {
    (model.wire != Wire::AnthropicMessages).then_some("context editing of this kind exists on the Anthropic API only")
}
