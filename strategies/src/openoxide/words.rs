//! OpenOxide's prompt texts.

crate::words::words! {
    pub(crate) struct OxideWords {
        history_system = HISTORY_SYSTEM;
        session_prompt = SESSION_PROMPT;
        session_wishes = "\n\nThe user asks for this in particular: ";
        session_from = "sum up only what comes from the message on that begins with ";
        summary_prefix = "Summary of the conversation so far:\n";
        before_prefix = "Summary of the session before this one:\n";
        placeholder = "[tool result cleared to make room]";
        budget = "[context: {window} tokens in all]";
        usage = "[context: {used} of {window} tokens used, {left} left]";
    }
}

const HISTORY_SYSTEM: &str = "You shorten the older part of a coding conversation that is still \
    going on. Write brief notes from which it can be \
continued: little about what is long past, more about what is recent. Keep names of files, \
functions, libraries and exact values, decisions with \
their reasons, errors and how they were solved, and everything the user ruled out. Write as the \
user addressing the assistant. No code blocks, no closing words.";

const SESSION_PROMPT: &str = "Do not go on with the task now. The conversation above will be \
    replaced by what you write. Note under these headings:\n\
## Goal\n## Constraints and wishes of the user\n## Decisions and why\n## Done so far\n## Files and \
what is in them\n## Errors and how they were solved\n\
## Exact values to keep\n## Next steps\nCopy paths, commands, numbers and error texts exactly. \
Leave a heading empty rather than inventing something. Text only, no tools.";

/// Sections of a session summary that outlast the session: wishes, decisions, files and open tasks
/// (docs/sources/opencode-vs-claude-code.md §10.3).
pub(super) const DURABLE: [&str; 4] = [
    "Constraints and wishes of the user",
    "Decisions and why",
    "Files and what is in them",
    "Next steps",
];
