//! OpenOxide: descriptor, settings and prompt texts.

use crate::conform::Conformance;
use crate::descriptor::{
    Descriptor, Factory, ManualCompaction, Matrix, MemoryFiles, PlotColor, Rewind, SnapshotKind,
    Standing,
};
use crate::persist::OURS;

/// Descriptor of the strategy.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "openoxide",
    summary: "OpenOxide blueprint: checked before every request; prune, then summarise old \
        history, then the whole session",
    sources: &[
        "docs/sources/openoxide.md: a design, not a program; where it is silent the choice is ours \
         and says so",
    ],
    matrix: Matrix {
        layers: "3: clear old tool results, summarise old history in the background, summarise the \
            session; `provider-side`: the provider's own two first",
        llm_calls: "1 by the weak model whenever finished turns outgrow their budget; 1 by the \
            session's model for the whole session",
        user_messages: "in the summaries, except the newest half of the history budget and, for \
            the whole session, the last one",
        tool_results: "cleared beyond the newest 40k tokens, the last two turns left alone; cut in \
            the weak model's transcript",
        cache: "stable parts first; summaries replace the middle, so system prompt and map stay \
            cached; clearing needs 20k tokens to be worth it",
        afterwards: "the conversation continues; a summary that is not ready does not hold it up",
        token_counting: "bytes / 4 while assembling; the provider's count or the exact one at the \
            gate",
        pre_send_check: "every request: window - output reserve - 5 %",
        overflow_response: "the tiers in order, then the request again; if nothing helps the user \
            is told what to drop",
        thinking: "kept until the compaction; not in the weak model's transcript",
        memory: "memory files shown in every request; rules and files of folders as long as a call \
            that touches them; lasting facts of a session summary are merged into the project's \
            file",
        undo: "nothing is deleted: going back behind a compaction brings the verbatim history back",
    },
    standing: Standing::Contender,
    manual: ManualCompaction::WithInstructions,
    // docs/sources/openoxide.md §1.8: files changed by edit tools, and a summary from a message on.
    // The summary up to a message is our addition.
    rewind: Rewind { conversation: true, code: Some(SnapshotKind::EditTools), summaries: true },
    formats: OURS,
    conform: Conformance::Unrecorded,
    color: PlotColor::Palette(5),
    files: MemoryFiles::Read { load: crate::openoxide::files::load, follows: true },
    settings_file: None,
    knobs: &[],
    page: "docs/systems/openoxide.md",
    factory: Factory::of::<crate::openoxide::OpenOxide>(),
};

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
