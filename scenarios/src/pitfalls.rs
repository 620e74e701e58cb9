//! What the sources warn of, by code: the mistakes that scenarios cite and that the built-in ones
//! have to cover.

use ctxbench_core::nearest;

/// One thing that a scenario can stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pitfall {
    /// How `cites` names it, such as `token-budgeting pitfall 7`.
    pub code: &'static str,
    /// A few words for people.
    pub name: &'static str,
    /// Test functions that show it where a session cannot: file from the root of the repository and
    /// name.
    pub tests: &'static [(&'static str, &'static str)],
}

const fn shown(code: &'static str, name: &'static str) -> Pitfall {
    Pitfall { code, name, tests: &[] }
}

const fn tested(
    code: &'static str,
    name: &'static str,
    tests: &'static [(&'static str, &'static str)],
) -> Pitfall {
    Pitfall { code, name, tests }
}

/// Beginnings of codes: what begins so has to be one of [`ALL`].
const FAMILIES: &[&str] =
    &["chat-history ", "token-budgeting ", "opencode-vs-claude-code ", "failure mode "];

/// Everything citable, in the order of the sources: the pitfalls of the two surveys, the edge cases
/// and success figures of docs/sources/opencode-vs-claude-code.md, and the failure modes of
/// docs/sources/failure-modes.md §6.
pub const ALL: &[Pitfall] = &[
    shown("chat-history pitfall 1", "summaries of summaries drift"),
    shown("chat-history pitfall 2", "pruning against summarising: tool output is the bulk"),
    tested(
        "chat-history pitfall 3",
        "a Markdown history breaks on headings",
        &[("strategies/src/aider/tests.rs", "restored_history_has_the_damage_of_its_file")],
    ),
    shown("chat-history pitfall 4", "a background summary races the user"),
    shown("chat-history pitfall 5", "counting errors move the trigger"),
    shown("chat-history pitfall 6", "what a resumed session shows"),
    tested(
        "chat-history pitfall 7",
        "deleting a session deletes everything below it",
        &[
            (
                "core/kit/src/store/tests.rs",
                "deleting_a_session_can_be_taken_back_and_takes_no_fork_with_it",
            ),
            ("strategies/src/persist/tests.rs", "opencodes_keys_cascade"),
        ],
    ),
    tested(
        "chat-history pitfall 8",
        "server-side compaction is billed too",
        &[("core/provider/src/wire/tests.rs", "anthropic_bills_the_sum_of_iterations")],
    ),
    shown("chat-history pitfall 9", "checkpoints do not see shell commands"),
    tested(
        "chat-history pitfall 10",
        "a memory index is cut off silently",
        &[(
            "strategies/src/openoxide/figures_tests.rs",
            "blueprint_hierarchical_memory_index_of_200_lines",
        )],
    ),
    tested(
        "chat-history pitfall 11",
        "a pause after compaction must be handled",
        &[("strategies/src/openoxide/tests.rs", "a_pause_after_the_providers_compaction_goes_on")],
    ),
    shown(
        "token-budgeting pitfall 1",
        "bytes / 4 is wrong for other scripts, base64 and punctuation",
    ),
    shown("token-budgeting pitfall 2", "output is cut in the middle without a word to the user"),
    shown("token-budgeting pitfall 3", "the summary call fails and the full history goes out"),
    shown(
        "token-budgeting pitfall 4",
        "compaction comes after the reply, the next one may be larger",
    ),
    shown("token-budgeting pitfall 5", "replacing the history throws the prompt cache away"),
    shown("token-budgeting pitfall 6", "the repository map is squeezed"),
    shown("token-budgeting pitfall 7", "nothing checks the size before sending"),
    shown(
        "token-budgeting pitfall 8",
        "a cleared result leaves a call that returned \"something\"",
    ),
    tested(
        "token-budgeting pitfall 9",
        "top-level usage leaves out compaction iterations",
        &[("core/provider/src/wire/tests.rs", "anthropic_bills_the_sum_of_iterations")],
    ),
    shown("token-budgeting pitfall 10", "the counting endpoint only estimates"),
    shown("token-budgeting pitfall 11", "clearing results invalidates the cache behind them"),
    tested(
        "token-budgeting pitfall 12",
        "only some models know how full their window is",
        &[(
            "strategies/src/openoxide/figures_tests.rs",
            "blueprint_context_awareness_once_and_after_tool_calls",
        )],
    ),
    shown("token-budgeting pitfall 13", "a shared rate limit breaks when everybody starts at once"),
    shown("token-budgeting pitfall 14", "teams of agents multiply the cost"),
    shown("opencode-vs-claude-code edge case 1", "sessions of more than a million tokens"),
    shown("opencode-vs-claude-code edge case 2", "the compaction itself fails"),
    shown("opencode-vs-claude-code edge case 3", "limits of subagents"),
    shown("opencode-vs-claude-code success figure 1", "users do not notice that context was lost"),
    shown("opencode-vs-claude-code success figure 2", "sessions of more than 500 turns"),
    shown("opencode-vs-claude-code success figure 3", "summaries hold what is critical"),
    shown("opencode-vs-claude-code success figure 4", "a compaction takes less than 5 s"),
    tested(
        "opencode-vs-claude-code success figure 5",
        "more than 95 % of restorations succeed",
        &[
            ("strategies/src/opencode/tests.rs", "going_back_behind_a_compaction_undoes_it"),
            ("strategies/src/aider/tests.rs", "a_rewind_takes_later_messages_out_of_both_lists"),
            (
                "core/kit/src/checkpoint/tests.rs",
                "with_edit_tools_alone_a_restoration_brings_everything_back",
            ),
        ],
    ),
    shown("failure mode 1", "compaction loop"),
    shown("failure mode 2", "task state lost in the middle of a task"),
    shown("failure mode 3", "the compaction call overflows or times out"),
    shown("failure mode 4", "finished work is done again"),
    shown("failure mode 5", "prohibitions are broken afterwards"),
    shown("failure mode 6", "pruning busts the cache: fewer tokens, more money"),
    shown("failure mode 7", "a call without its result, or the reverse"),
    shown("failure mode 8", "fires too early, or for the wrong window"),
    shown("failure mode 9", "never fires, or does not recognise an overflow"),
    shown("failure mode 10", "results of subagents are lost"),
    shown("failure mode 11", "the last request is dropped at the boundary"),
    shown("failure mode 12", "a tool result that is still needed is cleared silently"),
    shown("failure mode 13", "state of modes and skills is lost"),
    shown("failure mode 14", "bytes and not tokens: images"),
    shown("failure mode 15", "a result larger than its input"),
];

/// The entry of a code.
pub fn find(code: &str) -> Option<&'static Pitfall> {
    ALL.iter().find(|p| p.code == code)
}

/// What is wrong with a citation: something that looks like a code and is none. Anything else, such
/// as a ticket, is free.
pub(crate) fn wrong(code: &str) -> Option<(String, String)> {
    if code.trim().is_empty() {
        return Some((
            "an empty citation".to_string(),
            "name what the scenario stands for, or leave it out".to_string(),
        ));
    }
    if !FAMILIES.iter().any(|f| code.starts_with(f)) || find(code).is_some() {
        return None;
    }
    let codes: Vec<&str> = ALL.iter().map(|p| p.code).collect();
    Some((format!("unknown citation {code:?}"), nearest::hint(code, &codes)))
}

#[cfg(test)]
#[path = "pitfalls_tests.rs"]
mod tests;
