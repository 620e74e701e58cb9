//! What Claude Code's strategy says of itself, and its prompt texts.

use ctxbench_core::descriptor::{Descriptor, Matrix, Recovery, Standing};
use ctxbench_core::provider::{Model, Wire};
use ctxbench_core::settings::{Default, Kind, Setting, Settings};

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
            Kind::Choice(&["off", "count", "time", "cache-edits"]),
            Default::Word("count"),
            "what clears old tool results: their number above the warning level, a long pause, or the provider within its cached prefix \
             (where it edits contexts at all)",
            "C: facts/claude-code-and-apis.md §1.2; that results are cleared first is A; the count rule is the one reported as on for everybody \
             (≤ early 2026), the time rule is reported off and the server-side rule gated; that the latter leaves the cache whole is B against B",
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
            "micro_active",
            Kind::Count,
            Default::Int(12),
            "clearable results that stand at most (cache-edits); the oldest beyond go",
            "C: facts/claude-code-and-apis.md §1.2, path 2; that exactly the excess goes is ours",
        ),
        setting(
            "output_chars",
            Kind::Bytes,
            Default::Int(50_000),
            "tool output longer than this goes to a file and leaves a note; 0 = never",
            "A: facts/claude-code-and-apis.md §1.2, changelog 2.1.51",
        ),
        setting(
            "shell_chars",
            Kind::Bytes,
            Default::Int(30_000),
            "the same for output of a shell; 0 = only output_chars counts",
            "B: facts/claude-code-and-apis.md §1.2, remote flags of 2026-04",
        ),
        setting(
            "search_chars",
            Kind::Bytes,
            Default::Int(20_000),
            "the same for a search in files; 0 = only output_chars counts",
            "B: facts/claude-code-and-apis.md §1.2, remote flags of 2026-04",
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
            "restore_skill_tokens",
            Kind::Tokens,
            Default::Int(5_000),
            "beginning of each invoked skill that comes back",
            "A: facts/claude-code-and-apis.md §1.4",
        ),
        setting(
            "restore_skills_tokens",
            Kind::Tokens,
            Default::Int(25_000),
            "budget of all skills, the newest first",
            "A: facts/claude-code-and-apis.md §1.4",
        ),
        setting(
            "restore_plan",
            Kind::Flag,
            Default::Flag(true),
            "the newest plan of plan mode comes back",
            "A at second hand: facts/claude-code-and-apis.md §1.4",
        ),
        setting(
            "scoped_rules",
            Kind::Flag,
            Default::Flag(true),
            "rules with paths and CLAUDE.md of a folder are shown once a matching file was read, and lost with a compaction until the next; \
             false = shown like any memory file",
            "A: facts/claude-code-and-apis.md §1.4",
        ),
        setting(
            "keep_messages",
            Kind::Count,
            Default::Int(0),
            "newest messages that stay verbatim behind the summary",
            "A: facts/claude-code-and-apis.md §1.4 says that recent exchanges are kept when a session is resumed from a summary; no number is \
             given, and measured sizes after a compaction (B, §1.3) leave room for few",
        ),
        setting(
            "session_memory",
            Kind::Flag,
            Default::Flag(false),
            "notes kept up to date in the background take the summary's place",
            "C: facts/claude-code-and-apis.md §1.5; off on the four machines surveyed",
        ),
        setting(
            "memory_start_tokens",
            Kind::Tokens,
            Default::Int(10_000),
            "context from which notes are taken (session_memory)",
            "C: facts/claude-code-and-apis.md §1.5",
        ),
        setting(
            "memory_growth_tokens",
            Kind::Tokens,
            Default::Int(5_000),
            "growth after which notes are brought up to date (session_memory)",
            "C: facts/claude-code-and-apis.md §1.5",
        ),
        setting(
            "memory_keep_tokens",
            Kind::Tokens,
            Default::Int(10_000),
            "tokens that stay verbatim behind the notes at least (session_memory)",
            "C: facts/claude-code-and-apis.md §1.5; a remote configuration said 2,000 (B)",
        ),
        setting(
            "memory_keep_texts",
            Kind::Count,
            Default::Int(5),
            "messages with words that stay verbatim behind the notes at least (session_memory)",
            "C: facts/claude-code-and-apis.md §1.5",
        ),
        setting(
            "memory_keep_most_tokens",
            Kind::Tokens,
            Default::Int(40_000),
            "tokens up to which messages that the notes know stay (session_memory)",
            "C: facts/claude-code-and-apis.md §1.5; a remote configuration said 20,000 (B)",
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
            "attempts after an overflow, more left out each time",
            "C: facts/claude-code-and-apis.md §1.5",
        ),
        setting(
            "trim",
            Kind::Choice(&["oldest", "tail"]),
            Default::Word("oldest"),
            "what a summary request that is too long leaves out: the oldest groups, or the newest, which keeps the cached prefix and leaves \
             them verbatim behind the summary",
            "C: facts/claude-code-and-apis.md §1.5, oldest; tail after seeds/002, to be compared",
        ),
        setting(
            "precompute",
            Kind::Flag,
            Default::Flag(false),
            "write the summary in the background from the warning level on; what is said meanwhile stays behind it",
            "A: facts/claude-code-and-apis.md §1.5, precomputeCompactionEnabled, default not stated; that it begins at the warning level is ours",
        ),
        setting(
            "idle_compaction",
            Kind::Flag,
            Default::Flag(true),
            "compact a large session that idles, shortly before the one-hour cache lets it go (cache_ttl=1h)",
            "A: facts/claude-code-and-apis.md §1.5, idleCompaction, default true",
        ),
        setting(
            "idle_min_tokens",
            Kind::Tokens,
            Default::Int(200_000),
            "context from which a session that idles is compacted (idle_compaction)",
            "A: facts/claude-code-and-apis.md §1.5, CLAUDE_CODE_IDLE_COMPACT_MIN_TOKENS",
        ),
        setting(
            "idle_share",
            Kind::Share,
            Default::Real(0.9),
            "share of the cache's lifetime that passes first (idle_compaction): 54 minutes of the hour",
            "B: facts/claude-code-and-apis.md §1.5, 13 events after 54.7 to 55.7 minutes",
        ),
        setting(
            "trigger",
            Kind::Choice(&["threshold", "limit"]),
            Default::Word("threshold"),
            "compact at the threshold, or only when the provider refuses the prompt",
            "A: facts/claude-code-and-apis.md §1.1: 200k windows and Sonnet 5 at the threshold, other models with 1M at their limit",
        ),
        setting(
            "as_described",
            Kind::Choice(&["off", "001", "002"]),
            Default::Word("off"),
            "follow a description instead of the facts. 001: from 92 % of the window one summary, the last ten messages verbatim, at most half \
             the window full, key facts moved to CLAUDE.md; in fact 83.5 % of 200k (with the reply's room), no such tail and nothing written to \
             CLAUDE.md. 002: old results cleared before every request, then only the unsent end cut, then notes before a summary; in fact \
             clearing waits for a level, nothing cuts the end, and notes are off",
            "seeds/001-opencode-vs-claude-code.md §2, seeds/002-login-bug-article.md; against facts/claude-code-and-apis.md §1.1, §1.2, §1.5",
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
        layers: "2: clear old tool results, summary; notes in its place where session memory is on",
        llm_calls: "1 per compaction (more when the summary request itself overflows); with session memory 1 per update of the notes",
        user_messages: "in the summary, which has a section for all of them",
        tool_results: "oldest cleared above the warning level; large ones go to a file on arrival",
        cache: "summary request reads the whole warm prefix; afterwards system and memory stay cached and the rest is rewritten",
        afterwards: "summary with a lead-in, recent files, skills, the plan; the turn goes on",
        token_counting: "last usage reported + bytes / 4 of what is new",
        pre_send_check: "before every request: window - min(largest reply, 20k) - 13k",
        overflow_response: "compacts, the oldest part left out, and sends again; three refills or failures in a row end it",
        thinking: "goes with the conversation",
        memory: "CLAUDE.md stays; rules for some paths come back with a matching file",
        undo: "going back behind a compaction brings the messages back",
    },
    wording: &[
        ("claude-code.summary_prompt", PROMPT),
        ("claude-code.lead_in", "The conversation before this point did not fit any longer. This is what it held:"),
        ("claude-code.go_on", "Carry on with the work where it was left, without asking the user about it first."),
        ("claude-code.cleared", "[Old tool result content cleared]"),
        ("claude-code.left_out", "(The beginning of the conversation is left out here.)"),
        ("claude-code.memory_prompt", NOTES),
        ("claude-code.memory_so_far", "Notes of this session so far:"),
        (
            "claude-code.notes_lead_in",
            "The conversation before this point was replaced by the notes taken of it; the newest messages follow.",
        ),
        ("claude-code.wu2_prompt", WU2),
        ("claude-code.cut", "[… cut to keep the prompt within its limit …]"),
    ],
    standing: Standing::Contender,
    manual: true,
    recovery: Recovery::Log,
    unfit,
    build: crate::claude_code::build,
};

fn unfit(_version: &str, settings: &Settings, model: &Model) -> Option<&'static str> {
    let edits = settings.word("microcompact") == Some("cache-edits");
    (edits && model.wire != Wire::AnthropicMessages).then_some("edits of a cached prefix exist on the Anthropic API only")
}

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

const NOTES: &str = "Bring the notes of this session up to date. They may have to stand for the conversation, so keep what is still true of the \
notes so far and add what is new. Answer with text only and call no tools. Write under these headings:\n\
## Task: what the user asked for and every rule that was set\n\
## State: what is done and what is being worked on\n\
## Files: paths that matter and why\n\
## Errors: what failed, and how it was corrected\n\
## Findings: decisions, values and commands worth knowing\n\
## Open: what is still to be done\n\
Copy paths, names, numbers and error texts as they are.";

const WU2: &str = "Summarise this conversation so that the work can go on without its older part. Answer with text only and call no tools. \
Write under these headings:\n\
## Goal: what the user wants\n\
## Done: what was accomplished, with the files\n\
## In Progress: what is being worked on\n\
## Next Steps: what comes next\n\
## Project Memory: decisions, rules and wishes of the user, conventions, paths, commands and values that must never be lost\n\
Copy paths, names, numbers and error texts as they are.";
