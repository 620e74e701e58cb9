//! What Claude Code's strategy says of itself, and its prompt texts.

use ctxbench_core::descriptor::{Descriptor, Matrix, Standing, fits_any};
use ctxbench_core::settings::{Default, Kind, Setting};

const fn setting(name: &'static str, kind: Kind, default: Default, help: &'static str, source: &'static str) -> Setting {
    Setting { name, kind, default, help, source }
}

/// What the strategy says of itself. Grades in the sources: A documented, B measured, C reported.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "claude-code",
    summary: "Claude Code: clears old tool results, then one summary on the warm prefix; up to five recent files come back",
    versions: &["2.1"],
    sources: &[
        "facts/claude-code-and-apis.md §1: documentation and changelog to 2.1.240 (A), measurements (B), reports (C); the program itself was not read",
    ],
    settings: &[
        setting(
            "auto",
            Kind::Flag,
            Default::Flag(true),
            "compact automatically",
            "A: facts/claude-code-and-apis.md §1.1, autoCompactEnabled",
        ),
        setting(
            "auto_compact_window",
            Kind::Tokens,
            Default::Auto,
            "window to compact within; auto = the model's",
            "A: facts/claude-code-and-apis.md §1.1, autoCompactWindow; measured triggers vary (B)",
        ),
        setting(
            "output_reserve",
            Kind::Tokens,
            Default::Int(20_000),
            "largest room kept for a reply",
            "C: facts/claude-code-and-apis.md §1.1; 967k of 1M agrees (A)",
        ),
        setting(
            "buffer",
            Kind::Tokens,
            Default::Int(13_000),
            "room below the effective window at which it compacts",
            "C: facts/claude-code-and-apis.md §1.1; preTokens 167,189 agrees (A)",
        ),
        setting(
            "threshold_percent",
            Kind::Count,
            Default::Int(100),
            "per cent of the effective window that may lower the threshold, never raise it",
            "A: facts/claude-code-and-apis.md §1.1, CLAUDE_AUTOCOMPACT_PCT_OVERRIDE; 100 = not set",
        ),
        setting(
            "warning_distance",
            Kind::Tokens,
            Default::Int(20_000),
            "distance of the warning level below the threshold",
            "C: facts/claude-code-and-apis.md §1.1",
        ),
        setting(
            "blocking_buffer",
            Kind::Tokens,
            Default::Int(3_000),
            "room below the effective window at which the user is stopped when nothing compacts by itself",
            "C: facts/claude-code-and-apis.md §1.1",
        ),
        setting(
            "microcompact",
            Kind::Choice(&["off", "count", "time"]),
            Default::Word("count"),
            "what clears old tool results: their number above the warning level, or a long pause",
            "C: facts/claude-code-and-apis.md §1.2; that results are cleared first is A; the count rule is the one reported as on for everybody \
             (≤ early 2026), the time rule is reported off and the server-side rule gated",
        ),
        setting(
            "micro_keep",
            Kind::Count,
            Default::Int(3),
            "newest clearable results that stay (count)",
            "C: facts/claude-code-and-apis.md §1.2, path 3",
        ),
        setting(
            "micro_minimum",
            Kind::Tokens,
            Default::Int(20_000),
            "least tokens that must go (count)",
            "C: facts/claude-code-and-apis.md §1.2, path 3",
        ),
        setting(
            "micro_gap_ms",
            Kind::Millis,
            Default::Int(3_600_000),
            "pause after the last reply from which results go (time)",
            "C: facts/claude-code-and-apis.md §1.2, path 1",
        ),
        setting(
            "micro_gap_keep",
            Kind::Count,
            Default::Int(5),
            "newest clearable results that stay (time)",
            "C: facts/claude-code-and-apis.md §1.2, path 1",
        ),
        setting(
            "output_chars",
            Kind::Bytes,
            Default::Int(50_000),
            "tool output longer than this goes to a file and leaves a note; 0 = never",
            "A: facts/claude-code-and-apis.md §1.2, changelog 2.1.51",
        ),
        setting("summary_max_tokens", Kind::Tokens, Default::Int(20_000), "largest summary", "C: facts/claude-code-and-apis.md §1.3"),
        setting(
            "restore_files",
            Kind::Count,
            Default::Int(5),
            "most recently read or edited files that come back",
            "A: facts/claude-code-and-apis.md §1.4, up to five",
        ),
        setting(
            "restore_file_tokens",
            Kind::Tokens,
            Default::Int(5_000),
            "a larger file comes back as its path",
            "A at second hand: facts/claude-code-and-apis.md §1.4",
        ),
        setting(
            "restore_total_tokens",
            Kind::Tokens,
            Default::Int(50_000),
            "budget of all restored files",
            "C: facts/claude-code-and-apis.md §1.4",
        ),
        setting(
            "max_failures",
            Kind::Count,
            Default::Int(3),
            "failures in a row after which nothing is compacted by itself",
            "A: facts/claude-code-and-apis.md §1.5, changelog 2.1.76",
        ),
        setting(
            "max_refills",
            Kind::Count,
            Default::Int(3),
            "times in a row that the context may be full again right after a compaction",
            "A: facts/claude-code-and-apis.md §1.5, changelog 2.1.89",
        ),
        setting(
            "overflow_retries",
            Kind::Count,
            Default::Int(3),
            "attempts after an overflow, the oldest part left out each time",
            "C: facts/claude-code-and-apis.md §1.5",
        ),
        setting(
            "cache_ttl",
            Kind::Choice(&["5m", "1h"]),
            Default::Word("5m"),
            "cache lifetime asked for",
            "A: facts/claude-code-and-apis.md §1.5: five minutes with an API key, one hour on a subscription",
        ),
    ],
    matrix: Matrix {
        layers: "2: clear old tool results, summary",
        llm_calls: "1 per compaction (more when the summary request itself overflows)",
        user_messages: "in the summary, which has a section for all of them",
        tool_results: "oldest cleared above the warning level; large ones go to a file on arrival",
        cache: "summary request reads the whole warm prefix; afterwards system and memory stay cached and the rest is rewritten",
        afterwards: "summary with a lead-in, recent files; the turn goes on",
        token_counting: "last usage reported + bytes / 4 of what is new",
        pre_send_check: "before every request: window - min(largest reply, 20k) - 13k",
        overflow_response: "compacts without the oldest part and sends again",
        thinking: "goes with the conversation",
        memory: "CLAUDE.md shown again",
        undo: "going back behind a compaction brings the messages back",
    },
    wording: &[
        ("claude-code.summary_prompt", PROMPT),
        ("claude-code.lead_in", "The conversation before this point did not fit any longer. This is what it held:"),
        ("claude-code.go_on", "Carry on with the work where it was left, without asking the user about it first."),
        ("claude-code.cleared", "[Old tool result content cleared]"),
        ("claude-code.left_out", "(The beginning of the conversation is left out here.)"),
    ],
    standing: Standing::Contender,
    manual: true,
    unfit: fits_any,
    build: crate::claude_code::build,
};

const PROMPT: &str = "Write a summary of this conversation that holds everything needed to continue without it. Answer with text only and call \
no tools.\nFirst go through the conversation in order inside <analysis> tags and note what each part contributes. Then write the summary inside \
<summary> tags under these headings:\n\
1. Primary Request and Intent: what the user wants, in full\n\
2. Key Technical Concepts: technologies and ideas that matter here\n\
3. Files and Code Sections: files read, changed or made, why each matters, with the important code\n\
4. Errors and Fixes: what went wrong, how it was solved, what the user said about it\n\
5. Problem Solving: what is solved and what is being looked into\n\
6. All User Messages: every message of the user that is not a tool result; keep rules and limits that the user set\n\
7. Pending Tasks: what was asked for and is not done\n\
8. Current Work: exactly what was being done just before this, with files and code\n\
9. Optional Next Step: the next step, only if it follows from the last request\n\
Quote the words of the last request and of the current work exactly, so that nothing shifts. Copy paths, names, numbers and error texts as they are.";
