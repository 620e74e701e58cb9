//! Prompt texts of Codex CLI, rewritten.

crate::words::words! {
    pub(crate) struct CodexWords {
        summary_prompt = PROMPT;
        summary_prefix = PREFIX;
    }
}

const PROMPT: &str = "Stop working on the task for a moment and write a handoff note. Another \
    assistant will take over from it without \
seeing this conversation.\nCover:\n- Progress so far and the decisions that were made\n- Context \
that matters: constraints and what the user prefers\n\
- What is left to do, as clear next steps\n- Data, examples and references that are needed to go \
on\nBe brief and well ordered, and write only what helps the work to continue.";

const PREFIX: &str = "An assistant before you began this task and left the note below. The tools \
    are in the state it left them in. \
Use what it found out instead of doing the same work twice. Its note:";
