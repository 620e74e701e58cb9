//! Settings of context management by the Anthropic API.

ctxbench_core::settings! {
    /// Settings of context management by the API, with the source of each default.
    pub(crate) struct ApiSettings {
        /// ask for clear_tool_uses_20250919 where the model's provider offers it
        clear: flag = true, "ours; A: docs/sources/anthropic-api.md §2.2 describes the edit";
        /// input tokens from which old tool results are cleared
        clear_trigger: limit = 100_000, "A: docs/sources/anthropic-api.md §2.2";
        /// tool uses from which they are cleared, instead of tokens; auto = tokens decide
        clear_trigger_uses: count = auto,
            "A: docs/sources/anthropic-api.md §2.2, trigger of type tool_uses";
        /// newest tool uses that stay
        clear_keep: count = 3, "A: docs/sources/anthropic-api.md §2.2";
        /// tokens that must go for clearing to happen at all; 0 = any
        clear_at_least: tokens = 0, "A: docs/sources/anthropic-api.md §2.2, clear_at_least none";
        /// tools with results that are never cleared, joined by +; auto = none
        clear_exclude: text = auto, "A: docs/sources/anthropic-api.md §2.2, exclude_tools none";
        /// tools with call arguments that are cleared together with the results: none, all, or
        /// names joined by +
        clear_inputs: text = "none",
            "A: docs/sources/anthropic-sdk.md §3, clear_tool_inputs false";
        /// offer the memory tool; the model is warned before results are cleared and saves a note
        /// (modelled: one request for it)
        memory: flag = false,
            "A: docs/sources/anthropic-api.md §2.2, the warning; how much a model saves is not \
             documented";
        /// clear_thinking_20251015: not asked for, keep all, keep the newest turns
        thinking: choice Thinking { Default = "default", All = "all", Turns = "turns" } = Default,
            "A: docs/sources/anthropic-api.md §2.2; without the edit Opus from 4.5 and Sonnet from \
             4.6 on keep all";
        /// turns that keep their thinking with thinking=turns, at least 1
        thinking_keep: count = 1,
            "A: docs/sources/anthropic-sdk.md §3: the last turn is the older models' default";
        /// compact_20260112 within a request, a separate compaction request (on_demand), or none;
        /// on demand excludes the edits for that request
        compact: choice Compact {
            Threshold = "threshold",
            OnDemand = "on_demand",
            Off = "off",
        } = Threshold,
            "ours; A: docs/sources/anthropic-api.md §2.3 and §2.4";
        /// input tokens from which it compacts; on demand: usage of the last reply; the provider
        /// refuses a threshold below 50k
        compact_trigger: tokens = 150_000, "A: docs/sources/anthropic-api.md §2.3";
        /// pause_after_compaction: the newest messages are placed after the summary before the
        /// model continues
        pause: flag = false, "A: docs/sources/anthropic-api.md §2.3";
        /// messages placed after the summary after a pause, never a result without its call
        keep_last: count = 4, "ours: the API leaves it to its client";
        /// prompt-cache breakpoints: at the system part and the last two messages, or also before
        /// the oldest result that is still shown
        breakpoints: choice Places { Ends = "ends", Frontier = "frontier" } = Frontier,
            "ours: the API leaves it to its client; docs/findings.md shows both";
        /// replaces the provider's prompt for the summary; auto = the provider's
        instructions: text = auto, "A: docs/sources/anthropic-api.md §2.3";
    }
}
