//! Pitfalls described by the sources, by code. Scenarios cite them, and the built-in scenarios must
//! cover all of them.

use ctxbench_util::nearest;

/// All pitfalls, in the order of the sources: the pitfalls of the two surveys, the edge cases and
/// success figures of docs/sources/opencode-vs-claude-code.md, and the failure modes of
/// docs/sources/failure-modes.md §6. The code of a pitfall is the name of its list and its number
/// there, such as `token-budgeting pitfall 7`.
const ALL: &[(&str, &[&str])] = &[
    (
        "chat-history pitfall",
        &[
            "summaries of summaries drift",
            "pruning against summarising: tool output is the bulk",
            "a Markdown history breaks on headings",
            "a background summary races the user",
            "counting errors move the trigger",
            "what a resumed session shows",
            "deleting a session deletes everything below it",
            "server-side compaction is billed too",
            "checkpoints do not see shell commands",
            "a memory index is cut off silently",
            "a pause after compaction must be handled",
        ],
    ),
    (
        "token-budgeting pitfall",
        &[
            "bytes / 4 is wrong for other scripts, base64 and punctuation",
            "output is cut in the middle without a word to the user",
            "the summary call fails and the full history goes out",
            "compaction comes after the reply, the next one may be larger",
            "replacing the history throws the prompt cache away",
            "the repository map is squeezed",
            "nothing checks the size before sending",
            "a cleared result leaves a call that returned \"something\"",
            "top-level usage leaves out compaction iterations",
            "the counting endpoint only estimates",
            "clearing results invalidates the cache behind them",
            "only some models know how full their window is",
            "a shared rate limit breaks when everybody starts at once",
            "teams of agents multiply the cost",
        ],
    ),
    (
        "opencode-vs-claude-code edge case",
        &[
            "sessions of more than a million tokens",
            "the compaction itself fails",
            "limits of subagents",
        ],
    ),
    (
        "opencode-vs-claude-code success figure",
        &[
            "users do not notice that context was lost",
            "sessions of more than 500 turns",
            "summaries hold what is critical",
            "a compaction takes less than 5 s",
            "more than 95 % of restorations succeed",
        ],
    ),
    (
        "failure mode",
        &[
            "compaction loop",
            "task state lost in the middle of a task",
            "the compaction call overflows or times out",
            "finished work is done again",
            "prohibitions are broken afterwards",
            "pruning busts the cache: fewer tokens, more money",
            "a call without its result, or the reverse",
            "fires too early, or for the wrong window",
            "never fires, or does not recognise an overflow",
            "results of subagents are lost",
            "the last request is dropped at the boundary",
            "a tool result that is still needed is cleared silently",
            "state of modes and skills is lost",
            "bytes and not tokens: images",
            "a result larger than its input",
        ],
    ),
];

/// Returns the name of the pitfall with this code.
pub fn find(code: &str) -> Option<&'static str> {
    let (list, number) = code.rsplit_once(' ')?;
    let (_, names) = ALL.iter().find(|(known, _)| *known == list)?;
    names.get(number.parse::<usize>().ok()?.checked_sub(1)?).copied()
}

fn codes() -> impl Iterator<Item = String> {
    ALL.iter().flat_map(|(list, names)| (1..=names.len()).map(move |n| format!("{list} {n}")))
}

/// Returns the problem and the advice for a citation that looks like a code but is not one. Other
/// citations, such as a ticket, are allowed.
pub(crate) fn wrong(code: &str) -> Option<(String, String)> {
    if code.trim().is_empty() {
        let fix = "cite the mistake that the scenario shows, or leave it out";
        return Some(("an empty citation".into(), fix.into()));
    }
    if !ALL.iter().any(|(list, _)| code.starts_with(list)) || find(code).is_some() {
        return None;
    }
    let codes: Vec<String> = codes().collect();
    let codes: Vec<&str> = codes.iter().map(String::as_str).collect();
    Some((format!("unknown citation {code:?}"), nearest::hint(code, &codes)))
}

#[cfg(test)]
#[path = "pitfalls_tests.rs"]
mod tests;
