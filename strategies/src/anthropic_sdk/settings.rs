//! Settings of the Anthropic SDK's tool runner.

ctxbench_core::settings! {
    /// Settings of the tool runner, with the source of each default.
    pub(crate) struct SdkSettings {
        /// 0.125: typescript also checks refusals, and keeps every block of the summary and the
        /// messages that the caller appended
        language: choice Language { Python = "python", Typescript = "typescript" } = Python,
            "docs/sources/anthropic-sdk.md §2.3";
        /// 0.125: compact at all
        enabled: flag = true, "docs/sources/anthropic-sdk.md §2.2, CompactionControl.enabled";
        /// 0.125: usage of one reply from which it compacts
        threshold: limit = 100_000,
            "docs/sources/anthropic-sdk.md §2.2, context_token_threshold";
        /// 0.125: model of the summary; auto = the runner's
        model: model = auto, "docs/sources/anthropic-sdk.md §2.2, CompactionControl.model";
        /// 0.125: prompt for the summary instead of the built-in one
        summary_prompt: text = auto,
            "docs/sources/anthropic-sdk.md §2.2, CompactionControl.summary_prompt";
        /// largest reply, also of the summary; auto = the model's
        max_tokens: limit = auto, "docs/sources/anthropic-sdk.md §2.2: the caller's max_tokens";
        /// replies of one turn after which the runner stops, checked before each request; auto = no
        /// limit
        max_iterations: count = auto,
            "docs/sources/anthropic-sdk.md §2.2, the caller's max_iterations";
        /// 2.12: usage of one reply from which our caller asks for a compaction before the next
        /// turn; 0 = never
        compact_at: tokens = 100_000,
            "our caller, since the SDK leaves the moment to its user; the threshold of 0.125 \
             (docs/sources/anthropic-sdk.md §2.2)";
        /// 2.12: the provider keeps the conversation, and only new messages are sent
        threads: flag = true, "docs/sources/anthropic-sdk.md §2.4";
        /// 2.12: context_management that the caller passes through, with the API's defaults; with
        /// compact our caller never asks
        edits: choice Edits {
            None = "none",
            ClearToolUses = "clear_tool_uses",
            Compact = "compact",
        } = None,
            "docs/sources/anthropic-sdk.md §2.4 and §3";
    }
}
