//! Settings of Codex CLI.

ctxbench_core::settings! {
    /// Settings, each with the source of its default.
    pub(crate) struct CodexSettings {
        /// tokens in use at which it compacts; auto = 90 % of the window, which is also the cap
        /// (0.63: no automatic compaction, and no cap)
        auto_compact_limit: limit = auto, "docs/sources/codex.md §1.2, \
            model_auto_compact_token_limit";
        /// tokens that the limit counts: all in use, or those beyond the first input that the
        /// provider reported since the last compaction, with 95 % of the window as a separate stop
        limit_scope: choice LimitScope {
            Total = "total",
            AfterPrefix = "body_after_prefix",
        } = Total,
            "docs/sources/codex.md §1.2, model_auto_compact_token_limit_scope";
        /// prompt of the summary request, instead of the built-in one
        compact_prompt: text = auto,
            "docs/sources/codex.md §1.3, compact_prompt (verified by za_custom_prompt)";
        /// budget for user messages kept verbatim, newest first
        user_message_tokens: tokens = 20_000,
            "docs/sources/codex.md §1.4, COMPACT_USER_MESSAGE_MAX_TOKENS";
        /// tool output longer than this is cut in the middle on its way in, at four bytes a token;
        /// auto = 10,000 in the unit of tool_output_policy, 0 = never
        tool_output_tokens: tokens = auto,
            "docs/sources/codex.md §3, tool_output_token_limit over the model's truncation_policy";
        /// unit in which tool output is limited: tokens for the models that the program knows,
        /// bytes for all others
        tool_output_policy: choice ToolOutputPolicy { Tokens = "tokens", Bytes = "bytes" } = Tokens,
            "docs/sources/codex.md §3, truncation_policy of bundled and of unknown models";
        /// per cent of the window at which a finished turn is followed by a compaction (0.169
        /// only); 0 = off
        post_turn_percent: percent = 0,
            "docs/sources/codex.md §1.1, model_post_turn_compact_threshold_percent";
        /// retries of a request that failed for another reason than its length, at most 100; at
        /// most 2 if the provider compacts
        stream_retries: count = 5, "docs/sources/codex.md §1.5 and §2, stream_max_retries";
        /// the provider compacts: a trigger item instead of a prompt, an opaque item instead of a
        /// summary
        remote: flag = false, "docs/sources/codex.md §2: chosen where the provider's name is \
            OpenAI";
        /// budget for user messages kept by a remote compaction
        remote_user_tokens: tokens = 64_000, "docs/sources/codex.md §2, \
            RETAINED_MESSAGE_TOKEN_BUDGET";
        /// size of the base instructions in the local estimate; auto = their size as sent
        base_estimate_bytes: bytes = auto,
            "docs/sources/codex.md §3: the estimate uses the text of session_meta, which may be \
             longer than the one sent";
    }
}
