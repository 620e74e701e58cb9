//! Settings of OpenCode.

ctxbench_core::settings! {
    /// Settings, each with the source of its default.
    pub(crate) struct OpenCodeSettings {
        /// compact automatically
        auto: flag = true, "docs/sources/opencode.md §2, compaction.auto";
        /// clear old tool results after a turn; auto = off in 1.18, on in 1.3
        prune: flag = auto, "docs/sources/opencode.md §1: off unless set in 1.18";
        /// newest tool results that are not pruned
        prune_protect: tokens = 40_000, "docs/sources/opencode.md §1, PRUNE_PROTECT";
        /// pruning must free more than this
        prune_minimum: tokens = 20_000, "docs/sources/opencode.md §1, PRUNE_MINIMUM";
        /// unit of results for pruning: UTF-16 length / 4, or tokens of the o200k vocabulary
        count: choice Count { Characters = "characters", Tokens = "tokens" } = Characters,
            "docs/sources/opencode.md §1; tokens: docs/sources/opencode-vs-claude-code.md §10.6, a \
             proposal, no release has it";
        /// kept free where the model has an input limit; auto = min(20k, largest reply)
        reserved: tokens = auto, "docs/sources/opencode.md §2";
        /// newest turns that may stay verbatim; auto = no limit, 0 or less = none
        tail_turns: whole = auto, "docs/sources/opencode.md §3.2, compaction.tail_turns";
        /// budget of the verbatim tail; auto = a quarter of the usable window within bounds
        preserve_recent_tokens: tokens = auto, "docs/sources/opencode.md §3.2";
        /// lower bound of that budget
        tail_least: tokens = 2_000, "docs/sources/opencode.md §3.2";
        /// upper bound of that budget
        tail_most: tokens = 15_000, "docs/sources/opencode.md §3.2";
        /// model of the summary; auto = the session's
        model: model = auto, "docs/sources/opencode.md §3.2, agent.compaction.model";
        /// window of that model; auto = from the catalogue
        model_context: tokens = auto,
            "docs/sources/opencode.md §3.2: the tail budget is that of the summary model";
        /// largest reply of that model; auto = from the catalogue
        model_output: tokens = auto,
            "docs/sources/opencode.md §3.2: the tail budget is that of the summary model";
        /// separate input limit of that model; auto = from the catalogue
        model_input: tokens = auto,
            "docs/sources/opencode.md §2, §3.2: limit.input of the summary model sets the tail \
             budget where it has one";
        /// text of a plugin after the template of the summary request; without effect with
        /// hook_prompt
        hook_context: text = auto,
            "docs/sources/opencode.md §3.2.5, experimental.session.compacting: context";
        /// prompt of a plugin instead of the built-in one; the previous summary is then not passed
        /// on
        hook_prompt: text = auto,
            "docs/sources/opencode.md §3.2.5, experimental.session.compacting: prompt";
        /// ask the model to continue after an automatic compaction, unless a plugin switches that
        /// off: the turn then ends with the summary
        autocontinue: flag = true,
            "docs/sources/opencode.md §3.3, experimental.compaction.autocontinue";
        /// compact before sending when more than this share of the usable window (window less the
        /// largest reply) is filled, by the last count and an estimate of the later messages; auto
        /// = off, as in the program, which only checks the usage that was reported
        proactive: share = auto,
            "docs/sources/opencode-vs-claude-code.md §10.5, shouldCompact: 0.92 of usable, \
             strictly more; a proposal, no release has it";
        /// headings of the summary: the program's own, or the five sections of Anthropic's SDK
        prompt: choice Prompt { Own = "own", Sdk = "sdk" } = Own,
            "docs/sources/opencode.md §0; sdk: docs/sources/opencode-vs-claude-code.md §10.1, a \
             proposal, no release has it";
    }
}
