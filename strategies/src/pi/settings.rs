//! Settings of pi.

ctxbench_core::settings! {
    /// Settings of pi, with the source of each default.
    pub(crate) struct PiSettings {
        /// compact automatically
        auto: flag = true, "docs/sources/pi.md §1, compaction.enabled";
        /// part of the window that is kept free; a prompt larger than the rest of the window
        /// compacts
        reserve: tokens = 16_384, "docs/sources/pi.md §1, compaction.reserveTokens";
        /// newest messages that are kept at least
        keep_recent: tokens = 20_000, "docs/sources/pi.md §2, compaction.keepRecentTokens";
        /// retries of a request after transient failures
        retries: count = 3, "docs/sources/pi.md §6, retry.maxRetries";
        /// the program's estimate of the tokens of system prompt and tools; auto = their length / 4
        base_estimate: tokens = auto, "docs/sources/pi.md §1; told by recorded cases";
    }
}
