//! Settings of OpenOxide.

ctxbench_core::settings! {
    /// Settings of OpenOxide, with the source of each default.
    pub(crate) struct OpenOxideSettings {
        /// three = the tiers of docs/sources/openoxide.md §2.4; two = clear after each turn, then
        /// summarise the session, both if the prompt exceeds window - compaction_buffer
        phases: choice Phases { Three = "three", Two = "two" } = Three,
            "docs/sources/openoxide.md §2.4; §1.3";
        /// newest tool results that are not cleared
        prune_protect: tokens = 40_000, "docs/sources/openoxide.md §1.3, \
            PruneConfig.protect_threshold";
        /// clearing must free at least this much
        prune_minimum: tokens = 20_000, "docs/sources/openoxide.md §1.3, \
            PruneConfig.minimum_savings";
        /// newest user turns with tool results that are never cleared
        keep_turns: count = 2, "docs/sources/openoxide.md §1.3, PruneConfig.keep_recent_turns";
        /// old results that are cleared last: age = the newest; importance = errors, then results
        /// that later messages refer to, then the newest
        prune_order: choice PruneOrder { Age = "age", Importance = "importance" } = Age,
            "docs/sources/openoxide.md §1.3; docs/sources/opencode-vs-claude-code.md §10.8; how \
             importance is seen is ours";
        /// room for the reply, at most the model's largest; also that of a session summary
        output_reserve: tokens = 32_000, "docs/sources/openoxide.md §2.2, \
            BudgetConfig.output_reserve";
        /// share of the rest kept free for errors of counting; phases=three
        safety_margin: share = 0.05, "docs/sources/openoxide.md §2.2, \
            BudgetConfig.safety_margin_fraction";
        /// share of the space left by the system prompt that the repository map may use
        repo_map_fraction: share = 0.125, "docs/sources/openoxide.md §2.2, \
            BudgetConfig.repo_map_fraction";
        /// lower bound of the map's budget
        repo_map_min: tokens = 1_024, "docs/sources/openoxide.md §2.2, BudgetConfig.repo_map_min";
        /// upper bound of the map's budget; the rest of the map is not shown
        repo_map_max: tokens = 8_192, "docs/sources/openoxide.md §2.2, BudgetConfig.repo_map_max";
        /// share of the window that finished turns may take
        chat_history_fraction: share = 0.0625, "docs/sources/openoxide.md §2.2, \
            BudgetConfig.chat_history_fraction";
        /// finished turns beyond this are summarised; half of it stays verbatim; phases=three
        chat_history_max: tokens = 8_192, "docs/sources/openoxide.md §2.2, \
            BudgetConfig.chat_history_max";
        /// free part of the window below which phases=two acts
        compaction_buffer: tokens = 20_000, "docs/sources/openoxide.md §1.3, COMPACTION_BUFFER, \
            docs/sources/opencode.md §2";
        /// model that summarises old history; auto = the cheaper model of the same provider
        weak_model: model = auto, "docs/sources/openoxide.md §2.4, tier 2: weak/editor model";
        /// bytes of each tool result that the weak model reads
        transcript_output: bytes = 2_000,
            "ours: the blueprint is silent; OpenCode's 2,000 characters (docs/sources/opencode.md \
             §3.2)";
        /// prompt size at which the provider clears tool results
        clear_trigger: limit = 100_000, "docs/sources/openoxide.md §2.6, \
            ToolClearingConfig.trigger_tokens";
        /// newest tool uses that the provider does not clear
        clear_keep: count = 3, "docs/sources/openoxide.md §2.6, ToolClearingConfig.keep_tool_uses";
        /// minimum tokens for the provider to clear; auto = any amount
        clear_at_least: tokens = auto, "docs/sources/openoxide.md §2.6, \
            ToolClearingConfig.clear_at_least: none";
        /// prompt size at which the provider summarises; values below its minimum of 50,000 count
        /// as 50,000
        compact_trigger: tokens = 150_000,
            "docs/sources/openoxide.md §2.6, ServerCompactionConfig.trigger_tokens; \
             docs/sources/anthropic-api.md §2.3";
        /// report the window at the start and the remaining tokens after tool results, to models
        /// that do not get this from their provider
        awareness: flag = false, "docs/sources/openoxide.md §2.7: optional there";
        /// merge the wishes, decisions, files and next steps of a session summary into the
        /// project's memory file, each line once; the next session reads it
        migration: flag = true, "docs/sources/opencode-vs-claude-code.md §10.3; ours that it is \
            the default: docs/sources/openoxide.md §1.7 has a memory and does not say who writes it";
        /// start a new session with a summary of the previous one, written when that one ends
        cross_session: flag = false, "docs/sources/opencode-vs-claude-code.md §10.9; the form is \
            ours";
        /// lines of the agent's own memory index (…/memory/MEMORY.md) that are loaded; other memory
        /// files are shown whole
        memory_index_lines: count = 200,
            "docs/sources/openoxide.md §1.7, AutoMemoryConfig.index_line_limit";
    }
}
