//! OpenOxide: what the strategy says of itself, its settings and its prompt texts.

use ctxbench_core::descriptor::{Descriptor, Matrix, Recovery, Standing, fits_any};
use ctxbench_core::settings::{Default, Kind, Setting};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "openoxide",
    summary: "OpenOxide blueprint: checked before every request; prune, then summarise old history, then the whole session",
    versions: &["blueprint"],
    sources: &["seeds/003 and seeds/000, OpenOxide Blueprint: a design, not a program; where it is silent the choice is ours and says so"],
    settings: SETTINGS,
    matrix: Matrix {
        layers: "3: clear old tool results, summarise old history in the background, summarise the session; or the provider's own two",
        llm_calls: "1 by the weak model whenever finished turns outgrow their budget; 1 by the session's model for the whole session",
        user_messages: "in the summaries, except the newest half of the history budget and, for the whole session, the last one",
        tool_results: "cleared beyond the newest 40k tokens, the last two turns left alone; cut in the weak model's transcript",
        cache: "stable parts first; summaries replace the middle, so system prompt and map stay cached; clearing needs 20k tokens to be worth it",
        afterwards: "the conversation goes on; a summary that is not ready does not hold it up",
        token_counting: "bytes / 4 while assembling; the provider's count or the exact one at the gate",
        pre_send_check: "every request: window - output reserve - 5 %",
        overflow_response: "the tiers in order, then the request again; if nothing helps the user is told what to drop",
        thinking: "kept until the compaction; not in the weak model's transcript",
        memory: "memory files shown in every request",
        undo: "nothing is deleted: going back behind a compaction brings the verbatim history back",
    },
    wording: &[
        ("openoxide.history_system", HISTORY_SYSTEM),
        ("openoxide.session_prompt", SESSION_PROMPT),
        ("openoxide.session_wishes", "\n\nThe user asks for this in particular: "),
        ("openoxide.summary_prefix", "Summary of the conversation so far:\n"),
        ("openoxide.placeholder", "[tool result cleared to make room]"),
        ("openoxide.budget", "[context: {window} tokens in all]"),
        ("openoxide.usage", "[context: {used} of {window} tokens used, {left} left]"),
    ],
    standing: Standing::Contender,
    manual: true,
    recovery: Recovery::Log,
    unfit: fits_any,
    build: crate::openoxide::build,
};

const HISTORY_SYSTEM: &str = "You shorten the older part of a coding conversation that is still going on. Write brief notes from which it can be \
continued: little about what is long past, more about what is recent. Keep names of files, functions, libraries and exact values, decisions with \
their reasons, errors and how they were solved, and everything the user ruled out. Write as the user addressing the assistant. No code blocks, no closing words.";

const SESSION_PROMPT: &str = "Do not go on with the task now. The conversation above will be replaced by what you write. Note under these headings:\n\
## Goal\n## Constraints and wishes of the user\n## Decisions and why\n## Done so far\n## Files and what is in them\n## Errors and how they were solved\n\
## Exact values to keep\n## Next steps\nCopy paths, commands, numbers and error texts exactly. Leave a heading empty rather than inventing something. Text only, no tools.";

const fn tokens(name: &'static str, default: u64, help: &'static str, source: &'static str) -> Setting {
    Setting { name, kind: Kind::Tokens, default: Default::Int(default), help, source }
}

const fn share(name: &'static str, default: f64, help: &'static str, source: &'static str) -> Setting {
    Setting { name, kind: Kind::Share, default: Default::Real(default), help, source }
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "management",
        kind: Kind::Choice(&["auto", "server", "client", "off"]),
        default: Default::Word("auto"),
        help: "who makes room: the provider, the tiers here, or nobody; auto = the provider where it can clear and compact, else here",
        source: "seeds/003 ContextManagementStrategy, seeds/000 CompactionStrategy: server-side is preferred",
    },
    Setting {
        name: "phases",
        kind: Kind::Choice(&["three", "two"]),
        default: Default::Word("three"),
        help: "three = the tiers of seeds/003; two = clear after each turn, then summarise the session, both judged by window - compaction_buffer",
        source: "seeds/003 Compaction Strategy; seeds/000 Compaction Algorithm",
    },
    tokens("prune_protect", 40_000, "newest tool results that clearing leaves", "seeds/000 PruneConfig.protect_threshold"),
    tokens("prune_minimum", 20_000, "clearing must free at least this much", "seeds/000 PruneConfig.minimum_savings"),
    Setting {
        name: "keep_turns",
        kind: Kind::Count,
        default: Default::Int(2),
        help: "newest user turns whose tool results are never cleared",
        source: "seeds/000 PruneConfig.keep_recent_turns",
    },
    tokens(
        "output_reserve",
        32_000,
        "room for the reply, at most the model's largest; also that of a session summary",
        "seeds/003 BudgetConfig.output_reserve",
    ),
    share(
        "safety_margin",
        0.05,
        "share of the rest kept free for errors of counting; phases=three",
        "seeds/003 BudgetConfig.safety_margin_fraction",
    ),
    share(
        "repo_map_fraction",
        0.125,
        "share of the space beside the system prompt for the repository map",
        "seeds/003 BudgetConfig.repo_map_fraction",
    ),
    tokens("repo_map_min", 1_024, "lower bound of the map's budget", "seeds/003 BudgetConfig.repo_map_min"),
    tokens("repo_map_max", 8_192, "upper bound of the map's budget; what is beyond it is not shown", "seeds/003 BudgetConfig.repo_map_max"),
    share(
        "chat_history_fraction",
        0.0625,
        "share of the window that finished turns may take",
        "seeds/003 BudgetConfig.chat_history_fraction",
    ),
    tokens(
        "chat_history_max",
        8_192,
        "finished turns beyond this are summarised; half of it stays verbatim; phases=three",
        "seeds/003 BudgetConfig.chat_history_max",
    ),
    tokens(
        "compaction_buffer",
        20_000,
        "free part of the window from which phases=two acts",
        "seeds/000 COMPACTION_BUFFER, facts/opencode.md §2",
    ),
    Setting {
        name: "weak_model",
        kind: Kind::Model,
        default: Default::Auto,
        help: "model that summarises old history; auto = the session model's cheaper sibling",
        source: "seeds/003 Compaction Strategy, tier 2: weak/editor model",
    },
    Setting {
        name: "transcript_output",
        kind: Kind::Bytes,
        default: Default::Int(2_000),
        help: "bytes of each tool result that the weak model reads",
        source: "ours: the blueprint is silent; OpenCode's 2,000 characters (facts/opencode.md §3.2)",
    },
    tokens(
        "clear_trigger",
        100_000,
        "prompt size from which the provider clears tool results",
        "seeds/003 ToolClearingConfig.trigger_tokens",
    ),
    Setting {
        name: "clear_keep",
        kind: Kind::Count,
        default: Default::Int(3),
        help: "newest tool uses that the provider leaves",
        source: "seeds/003 ToolClearingConfig.keep_tool_uses",
    },
    Setting {
        name: "clear_at_least",
        kind: Kind::Tokens,
        default: Default::Auto,
        help: "the provider clears only if this much goes; auto = any amount",
        source: "seeds/003 ToolClearingConfig.clear_at_least: none",
    },
    tokens(
        "compact_trigger",
        150_000,
        "prompt size from which the provider summarises; less than its minimum of 50,000 counts as that",
        "seeds/003 ServerCompactionConfig.trigger_tokens; facts/claude-code-and-apis.md §2.3",
    ),
    Setting {
        name: "awareness",
        kind: Kind::Flag,
        default: Default::Flag(false),
        help: "tell a model that is not told by its provider its window, once at the start, and what is left, after tool results",
        source: "seeds/003 Context Awareness Support: optional there",
    },
    Setting {
        name: "memory_index_lines",
        kind: Kind::Count,
        default: Default::Int(200),
        help: "lines of the agent's own memory index (…/memory/MEMORY.md) that are loaded; other memory files are shown whole",
        source: "seeds/000 Hierarchical Memory System, AutoMemoryConfig.index_line_limit",
    },
];
