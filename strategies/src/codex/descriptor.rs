//! What the Codex strategy says of itself: settings, sources, prompt texts.

use crate::descriptor::{Descriptor, Factory, Look, Matrix, Recovery, Rewind, Standing};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "codex",
    summary: "Codex CLI: user messages verbatim, everything else becomes one handoff summary",
    sources: &[
        "docs/sources/codex.md §1-3: released programs 0.169, 0.104 and 0.63 observed, source at \
         6c0c6759 and 54d22e3f read",
    ],
    matrix: Matrix {
        layers: "1: handoff summary",
        llm_calls: "1 per compaction (more when the summary request itself overflows)",
        user_messages: "kept verbatim, newest first, 20k tokens; the oldest that fits partly is \
            cut in the middle",
        tool_results: "dropped with the rest; long ones cut in the middle on arrival",
        cache: "summary request repeats the conversation but offers no tools: read from the cache \
            only where tools are not its beginning; rewritten after it",
        afterwards: "context rebuilt, the turn goes on from the summary",
        token_counting: "last usage reported + bytes / 4 of what is new",
        pre_send_check: "before a turn and between steps, >= 90 % of the window",
        overflow_response: "turn fails, the next turn compacts; in a compaction the oldest item \
            goes and it tries again",
        thinking: "encrypted reasoning is kept until the compaction and counted",
        memory: "AGENTS.md shown again",
        undo: "whole turns of the user; going back past a compaction brings the old history back \
            from the rollout",
    },
    wording: &[("codex.summary_prompt", PROMPT), ("codex.summary_prefix", PREFIX)],
    standing: Standing::Contender,
    manual: true,
    recovery: Recovery::Log,
    // Turns of the conversation; its undo of files is gone in era 3 (docs/sources/codex.md §1).
    rewind: Rewind { conversation: true, ..Rewind::NONE },
    formats: &[crate::codex::persist::FORMAT],
    functions: crate::codex::conform::FUNCTIONS,
    look: Look::Hue(1),
    page: "docs/systems/codex.md",
    factory: Factory::of::<crate::codex::Codex>(),
};

const PROMPT: &str = "Stop working on the task for a moment and write a handoff note. Another \
    assistant will take over from it without \
seeing this conversation.\nCover:\n- Progress so far and the decisions that were made\n- Context \
that matters: constraints and what the user prefers\n\
- What is left to do, as clear next steps\n- Data, examples and references that are needed to go \
on\nBe brief and well ordered, and write only what helps the work to continue.";

const PREFIX: &str = "An assistant before you began this task and left the note below. The tools \
    are in the state it left them in. \
Use what it found out instead of doing the same work twice. Its note:";
