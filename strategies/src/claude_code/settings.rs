//! Settings of Claude Code. Grades in the sources: A documented, B measured, C reported.

ctxbench_core::settings! {
    /// Settings of Claude Code, with the source of each default.
    pub(crate) struct ClaudeCodeSettings {
        /// compact automatically
        auto: flag = true, "A: docs/sources/claude-code.md §1.1, autoCompactEnabled";
        /// window to compact within; auto = the model's
        auto_compact_window: limit = auto,
            "A: docs/sources/claude-code.md §1.1, autoCompactWindow; measured triggers vary (B)";
        /// largest room kept for a reply
        output_reserve: tokens = 20_000,
            "C: docs/sources/claude-code.md §1.1; 967k of 1M agrees (A)";
        /// room below the effective window at which it compacts
        buffer: tokens = 13_000,
            "C: docs/sources/claude-code.md §1.1; preTokens 167,189 agrees (A)";
        /// per cent of the effective window that may lower the threshold, never raise it
        threshold_percent: percent = 100,
            "A: docs/sources/claude-code.md §1.1, CLAUDE_AUTOCOMPACT_PCT_OVERRIDE; 100 = not set";
        /// distance of the warning level below the threshold
        warning_distance: tokens = 20_000, "C: docs/sources/claude-code.md §1.1";
        /// room below the effective window at which the user is stopped when nothing compacts by
        /// itself
        blocking_buffer: tokens = 3_000, "C: docs/sources/claude-code.md §1.1";
        /// rule for clearing old tool results: their number above the warning level, a long pause,
        /// or the provider within its cached prefix (where it edits contexts)
        microcompact: choice Micro {
            /// Nothing: tokens go by compaction alone.
            Off = "off",
            /// Above the warning level, if it saves enough.
            Count = "count",
            /// After a pause that outlasts the cache.
            Time = "time",
            /// When too many results are active: the provider takes them out and its cached prefix
            /// stays valid.
            CacheEdits = "cache-edits",
        } = Off,
            "B: docs/sources/claude-code.md §1.2, recordings of 2.1.39 in which no prompt shrinks \
             before its compaction, far above the level of the count rule; that results are \
             cleared first is A; the count rule is reported (C), the time rule reported off and \
             the server-side rule gated; that the latter leaves the cache whole is B against B";
        /// newest clearable results that stay (count)
        micro_keep: count = 3, "C: docs/sources/claude-code.md §1.2, path 3";
        /// least tokens that must go (count)
        micro_minimum: tokens = 20_000, "C: docs/sources/claude-code.md §1.2, path 3";
        /// pause after the last reply from which results go (time)
        micro_gap_ms: millis = 3_600_000, "C: docs/sources/claude-code.md §1.2, path 1";
        /// newest clearable results that stay (time)
        micro_gap_keep: count = 5, "C: docs/sources/claude-code.md §1.2, path 1";
        /// maximum number of clearable results (cache-edits); older ones are removed
        micro_active: count = 12,
            "C: docs/sources/claude-code.md §1.2, path 2; that exactly the excess goes is ours";
        /// size from which tool output is saved to a file and leaves a note; 0 = never
        output_chars: bytes = 50_000, "A: docs/sources/claude-code.md §1.2, changelog 2.1.51";
        /// the same for output of a shell; 0 = only output_chars counts
        shell_chars: bytes = 30_000,
            "B: docs/sources/claude-code.md §1.2, remote flags of 2026-04";
        /// the same for a search in files; 0 = only output_chars counts
        search_chars: bytes = 20_000,
            "B: docs/sources/claude-code.md §1.2, remote flags of 2026-04";
        /// output of all calls of one reply together, files that were read left out; beyond it the
        /// largest go to a file; 0 = no limit
        results_chars: bytes = 200_000,
            "B: docs/sources/claude-code.md §1.2, remote flags of 2026-04; that the largest go \
             first is ours";
        /// size limit of a summary
        summary_max_tokens: tokens = 20_000, "C: docs/sources/claude-code.md §1.3";
        /// most recently read or edited files that come back
        restore_files: count = 5, "A: docs/sources/claude-code.md §1.4, up to five";
        /// a larger file comes back as its path
        restore_file_tokens: tokens = 5_000, "A at second hand: docs/sources/claude-code.md §1.4";
        /// budget of all restored files
        restore_total_tokens: tokens = 50_000, "C: docs/sources/claude-code.md §1.4";
        /// beginning of each invoked skill that comes back
        restore_skill_tokens: tokens = 5_000, "A: docs/sources/claude-code.md §1.4";
        /// budget of all skills, the newest first
        restore_skills_tokens: tokens = 25_000, "A: docs/sources/claude-code.md §1.4";
        /// the newest plan of plan mode comes back
        restore_plan: flag = true, "A at second hand: docs/sources/claude-code.md §1.4";
        /// rules with paths and CLAUDE.md of a folder are shown once a matching file was read, and
        /// lost with a compaction until the next; false = shown like any memory file
        scoped_rules: flag = true, "A: docs/sources/claude-code.md §1.4";
        /// newest messages that stay verbatim after the summary
        keep_messages: count = 0,
            "A: docs/sources/claude-code.md §1.4 says that recent exchanges are kept when a \
             session is resumed from a summary; no number is given, and measured sizes after a \
             compaction (B, §1.3) leave room for few";
        /// notes kept up to date in the background take the summary's place
        session_memory: flag = false,
            "C: docs/sources/claude-code.md §1.5; off on the four machines surveyed";
        /// context from which notes are taken (session_memory)
        memory_start_tokens: tokens = 10_000, "C: docs/sources/claude-code.md §1.5";
        /// growth after which notes are brought up to date (session_memory)
        memory_growth_tokens: tokens = 5_000, "C: docs/sources/claude-code.md §1.5";
        /// minimum of tokens that stay verbatim after the notes (session_memory)
        memory_keep_tokens: tokens = 10_000,
            "C: docs/sources/claude-code.md §1.5; a remote configuration said 2,000 (B)";
        /// minimum of messages with text that stay verbatim after the notes (session_memory)
        memory_keep_texts: count = 5, "C: docs/sources/claude-code.md §1.5";
        /// tokens up to which messages that the notes know stay (session_memory)
        memory_keep_most_tokens: tokens = 40_000,
            "C: docs/sources/claude-code.md §1.5; a remote configuration said 20,000 (B)";
        /// failures in a row after which nothing is compacted by itself
        max_failures: count = 3, "A: docs/sources/claude-code.md §1.5, changelog 2.1.76";
        /// times in a row that the context may be full again right after a compaction
        max_refills: count = 3, "A: docs/sources/claude-code.md §1.5, changelog 2.1.89";
        /// attempts after an overflow, more left out each time
        overflow_retries: count = 3, "C: docs/sources/claude-code.md §1.5";
        /// groups that a too long summary request leaves out: the oldest, or the newest, which
        /// keeps the cached prefix and leaves them verbatim after the summary
        trim: choice Trim {
            /// The oldest groups, which the summary replaces unread.
            Oldest = "oldest",
            /// The newest groups; the cached prefix stays, and these groups stay in the view after
            /// the summary.
            Tail = "tail",
        } = Oldest,
            "C: docs/sources/claude-code.md §1.5, oldest; tail after docs/sources/login-bug.md §3, \
             to be compared";
        /// output of a PreCompact hook, added to the instructions of every summary of the whole
        /// conversation; a summary prepared in the background is not used then; auto = no such hook
        hook_before: text = auto,
            "A that the hook exists, B that what it prints becomes instructions: \
             docs/sources/claude-code.md §1.5";
        /// compactions that a PreCompact hook blocks; the session continues unchanged, and a prompt
        /// that the provider refuses fails the turn
        hook_blocks: choice HookBlocks {
            Nothing = "nothing",
            /// Those that the user asks for.
            ManualCompaction = "manual",
            /// Those that come by themselves.
            Auto = "automatic",
            Both = "both",
        } = Nothing, "A: docs/sources/claude-code.md §1.5, changelog 2.1.105";
        /// output of a SessionStart hook with the source compact, shown after the summary until the
        /// next compaction; auto = no such hook
        hook_after: text = auto, "A: docs/sources/claude-code.md §1.5";
        /// write the summary in the background from the warning level on; later messages stay after
        /// it
        precompute: flag = false,
            "A: docs/sources/claude-code.md §1.5, precomputeCompactionEnabled, default not stated; \
             that it begins at the warning level is ours";
        /// compact a large session that idles, shortly before the one-hour cache lets it go
        /// (cache_ttl=1h)
        idle_compaction: flag = true,
            "A: docs/sources/claude-code.md §1.5, idleCompaction, default true";
        /// context from which a session that idles is compacted (idle_compaction)
        idle_min_tokens: tokens = 200_000,
            "A: docs/sources/claude-code.md §1.5, CLAUDE_CODE_IDLE_COMPACT_MIN_TOKENS";
        /// share of the cache's lifetime that passes first (idle_compaction): 54 minutes of the
        /// hour
        idle_share: share = 0.9,
            "B: docs/sources/claude-code.md §1.5, 13 events after 54.7 to 55.7 minutes";
        /// the user's choice in the dialog when a large session resumes after a long pause
        resume: choice Resume {
            Full = "full",
            /// A summary of it and the newest exchanges.
            Summary = "summary",
        } = Full,
            "A: docs/sources/claude-code.md §1.5; what users take is not published";
        /// pause after the last reply from which it is shown (resume)
        resume_idle_ms: millis = 3_600_000, "A: docs/sources/claude-code.md §1.5, about an hour";
        /// context from which it is shown (resume)
        resume_min_tokens: tokens = 100_000, "A: docs/sources/claude-code.md §1.5";
        /// newest messages that stay verbatim after a summary chosen there (resume)
        resume_keep_messages: count = 2,
            "A that the most recent exchanges stay: docs/sources/claude-code.md §1.4; that it is \
             one exchange is ours";
        /// compact at the threshold, or only when the provider refuses the prompt
        trigger: choice Trigger { Threshold = "threshold", Limit = "limit" } = Threshold,
            "A: docs/sources/claude-code.md §1.1: 200k windows and Sonnet 5 at the threshold, \
             other models with 1M at their limit";
        /// cache lifetime asked for; auto = that of the recording, else five minutes
        cache_ttl: choice CacheTtl { Auto = "auto", FiveMinutes = "5m", OneHour = "1h" } = Auto,
            "A: docs/sources/claude-code.md §1.5: five minutes with an API key, one hour on a \
             subscription";
    }
}
