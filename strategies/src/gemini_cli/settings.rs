//! Settings of Gemini CLI.

ctxbench_core::settings! {
    /// Settings of Gemini CLI, with the source of each default.
    pub(crate) struct GeminiCliSettings {
        /// share of the window at which the history is compressed
        threshold: share = 0.5, "docs/sources/gemini-cli.md §1, model.compressionThreshold";
        /// newest share of the history, by characters, that is kept at most
        keep: share = 0.3, "docs/sources/gemini-cli.md §2, COMPRESSION_PRESERVE_THRESHOLD";
        /// newest tool results that a compression does not cut
        results_budget: tokens = 50_000,
            "docs/sources/gemini-cli.md §2, COMPRESSION_FUNCTION_RESPONSE_TOKEN_BUDGET";
        /// length that older results are cut to, characters
        cut_to: bytes = 40_000, "docs/sources/gemini-cli.md §2, truncateToolOutputThreshold";
        /// replace old tool results by a preview before each request
        mask: flag = true, "docs/sources/gemini-cli.md §5; false: a proposal, cannot be set";
        /// newest tool results that are not masked
        mask_protect: tokens = 50_000, "docs/sources/gemini-cli.md §5, protectionThresholdTokens";
        /// minimum of maskable results; below it nothing is masked
        mask_minimum: tokens = 30_000, "docs/sources/gemini-cli.md §5, minPrunableThresholdTokens";
        /// maximum attempts at a request with transient failures, including the first
        attempts: count = 10, "docs/sources/gemini-cli.md §4, general.maxAttempts";
    }
}
