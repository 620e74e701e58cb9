//! Prompt texts of Claude Code, rewritten.

crate::words::words! {
    pub(crate) struct ClaudeCodeWords {
        summary_prompt = PROMPT;
        lead_in = "The conversation before this point did not fit any longer. This is what it held:";
        go_on = "Carry on with the work where it was left, without asking the user about it first.";
        cleared = "[Old tool result content cleared]";
        left_out = "(The beginning of the conversation is left out here.)";
        memory_prompt = NOTES;
        memory_so_far = "Notes of this session so far:";
        notes_lead_in = "The conversation before this point was replaced by the notes taken of it; the newest \
            messages follow.";
        wu2_prompt = WU2;
        cut = "[… cut to keep the prompt within its limit …]";
    }
}

const PROMPT: &str = "Write a summary of this conversation that holds everything needed to \
    continue without it. Answer with text only and call \
no tools.\nFirst go through the conversation in order inside <analysis> tags and note what each \
part contributes. Then write the summary inside \
<summary> tags under these headings:\n\
1. Primary Request and Intent: what the user wants, in full\n\
2. Key Technical Concepts: technologies and ideas that matter here\n\
3. Files and Code Sections: files read, changed or made, why each matters, with the important \
code\n\
4. Errors and Fixes: what went wrong, how it was solved, what the user said about it\n\
5. Problem Solving: what is solved and what is being looked into\n\
6. All User Messages: every message of the user that is not a tool result; keep rules and limits \
that the user set\n\
7. Pending Tasks: what was asked for and is not done\n\
8. Current Work: exactly what was being done just before this, with files and code\n\
9. Optional Next Step: the next step, only if it follows from the last request\n\
Quote the words of the last request and of the current work exactly, so that nothing shifts. Copy \
paths, names, numbers and error texts as they are.";

const NOTES: &str = "Bring the notes of this session up to date. They may have to stand for the \
    conversation, so keep what is still true of the \
notes so far and add what is new. Answer with text only and call no tools. Write under these \
headings:\n\
## Task: what the user asked for and every rule that was set\n\
## State: what is done and what is being worked on\n\
## Files: paths that matter and why\n\
## Errors: what failed, and how it was corrected\n\
## Findings: decisions, values and commands worth knowing\n\
## Open: what is still to be done\n\
Copy paths, names, numbers and error texts as they are.";

const WU2: &str = "Summarise this conversation so that the work can go on without its older part. \
    Answer with text only and call no tools. \
Write under these headings:\n\
## Goal: what the user wants\n\
## Done: what was accomplished, with the files\n\
## In Progress: what is being worked on\n\
## Next Steps: what comes next\n\
## Project Memory: decisions, rules and wishes of the user, conventions, paths, commands and \
values that must never be lost\n\
Copy paths, names, numbers and error texts as they are.";
