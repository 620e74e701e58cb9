//! Pitfalls described by the sources, by code. Scenarios cite them, and the built-in scenarios must
//! cover all of them.

use ctxbench_util::nearest;

/// Mistake that a scenario can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pitfall {
    /// Code for use in `cites`, such as `token-budgeting pitfall 7`.
    pub code: &'static str,
    pub name: &'static str,
}

const fn pitfall(code: &'static str, name: &'static str) -> Pitfall {
    Pitfall { code, name }
}

/// Prefixes of codes. A citation with such a prefix must be in [`ALL`].
const FAMILIES: &[&str] =
    &["chat-history ", "token-budgeting ", "opencode-vs-claude-code ", "failure mode "];

/// All pitfalls, in the order of the sources: the pitfalls of the two surveys, the edge cases and
/// success figures of docs/sources/opencode-vs-claude-code.md, and the failure modes of
/// docs/sources/failure-modes.md §6.
pub const ALL: &[Pitfall] = &[
    pitfall("chat-history pitfall 1", "summaries of summaries drift"),
    pitfall("chat-history pitfall 2", "pruning against summarising: tool output is the bulk"),
    pitfall("chat-history pitfall 3", "a Markdown history breaks on headings"),
    pitfall("chat-history pitfall 4", "a background summary races the user"),
    pitfall("chat-history pitfall 5", "counting errors move the trigger"),
    pitfall("chat-history pitfall 6", "what a resumed session shows"),
    pitfall("chat-history pitfall 7", "deleting a session deletes everything below it"),
    pitfall("chat-history pitfall 8", "server-side compaction is billed too"),
    pitfall("chat-history pitfall 9", "checkpoints do not see shell commands"),
    pitfall("chat-history pitfall 10", "a memory index is cut off silently"),
    pitfall("chat-history pitfall 11", "a pause after compaction must be handled"),
    pitfall(
        "token-budgeting pitfall 1",
        "bytes / 4 is wrong for other scripts, base64 and punctuation",
    ),
    pitfall("token-budgeting pitfall 2", "output is cut in the middle without a word to the user"),
    pitfall("token-budgeting pitfall 3", "the summary call fails and the full history goes out"),
    pitfall(
        "token-budgeting pitfall 4",
        "compaction comes after the reply, the next one may be larger",
    ),
    pitfall("token-budgeting pitfall 5", "replacing the history throws the prompt cache away"),
    pitfall("token-budgeting pitfall 6", "the repository map is squeezed"),
    pitfall("token-budgeting pitfall 7", "nothing checks the size before sending"),
    pitfall(
        "token-budgeting pitfall 8",
        "a cleared result leaves a call that returned \"something\"",
    ),
    pitfall("token-budgeting pitfall 9", "top-level usage leaves out compaction iterations"),
    pitfall("token-budgeting pitfall 10", "the counting endpoint only estimates"),
    pitfall("token-budgeting pitfall 11", "clearing results invalidates the cache behind them"),
    pitfall("token-budgeting pitfall 12", "only some models know how full their window is"),
    pitfall(
        "token-budgeting pitfall 13",
        "a shared rate limit breaks when everybody starts at once",
    ),
    pitfall("token-budgeting pitfall 14", "teams of agents multiply the cost"),
    pitfall("opencode-vs-claude-code edge case 1", "sessions of more than a million tokens"),
    pitfall("opencode-vs-claude-code edge case 2", "the compaction itself fails"),
    pitfall("opencode-vs-claude-code edge case 3", "limits of subagents"),
    pitfall(
        "opencode-vs-claude-code success figure 1",
        "users do not notice that context was lost",
    ),
    pitfall("opencode-vs-claude-code success figure 2", "sessions of more than 500 turns"),
    pitfall("opencode-vs-claude-code success figure 3", "summaries hold what is critical"),
    pitfall("opencode-vs-claude-code success figure 4", "a compaction takes less than 5 s"),
    pitfall("opencode-vs-claude-code success figure 5", "more than 95 % of restorations succeed"),
    pitfall("failure mode 1", "compaction loop"),
    pitfall("failure mode 2", "task state lost in the middle of a task"),
    pitfall("failure mode 3", "the compaction call overflows or times out"),
    pitfall("failure mode 4", "finished work is done again"),
    pitfall("failure mode 5", "prohibitions are broken afterwards"),
    pitfall("failure mode 6", "pruning busts the cache: fewer tokens, more money"),
    pitfall("failure mode 7", "a call without its result, or the reverse"),
    pitfall("failure mode 8", "fires too early, or for the wrong window"),
    pitfall("failure mode 9", "never fires, or does not recognise an overflow"),
    pitfall("failure mode 10", "results of subagents are lost"),
    pitfall("failure mode 11", "the last request is dropped at the boundary"),
    pitfall("failure mode 12", "a tool result that is still needed is cleared silently"),
    pitfall("failure mode 13", "state of modes and skills is lost"),
    pitfall("failure mode 14", "bytes and not tokens: images"),
    pitfall("failure mode 15", "a result larger than its input"),
];

/// Returns the pitfall with this code.
pub fn find(code: &str) -> Option<&'static Pitfall> {
    ALL.iter().find(|p| p.code == code)
}

/// Returns the problem and the advice for a citation that looks like a code but is not one. Other
/// citations, such as a ticket, are allowed.
pub(crate) fn wrong(code: &str) -> Option<(String, String)> {
    if code.trim().is_empty() {
        return Some((
            "an empty citation".to_string(),
            "cite the mistake that the scenario shows, or leave it out".to_string(),
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
