//! Prompt texts of pi, rewritten. Tags and marks that the program searches for are the originals.

crate::words::words! {
    pub(crate) struct PiWords {
        summary_system = SYSTEM;
        open = "<conversation>\n";
        close = "\n</conversation>\n\n";
        prior_open = "<previous-summary>\n";
        prior_close = "\n</previous-summary>\n\n";
        initial = INITIAL;
        update = UPDATE;
        prefix_open = "# Transcript\n";
        prefix_close = "\n\n# Task\n";
        prefix = PREFIX;
        focus = "\n\nGive most room to: ";
        no_history = "Nothing before it";
        split_join = "\n\n---\n\n**Beginning of the turn:**\n\n";
        summary_head = "What was said before this point is no longer shown. This summary stands \
            for it:\n\n<summary>\n";
        summary_tail = "\n</summary>";
    }
}

const SYSTEM: &str = "You write summaries of conversations between a user and a coding agent. You \
    are given one as text, and you answer with a summary in the form that is asked for. Do not go \
    on with the conversation and do not answer what is asked in it: write the summary and nothing \
    else.";

const INITIAL: &str = "Another model will take this work over and see nothing but your summary. \
    Write it in this form:\n\n\
## Goal\n[what the user wants; several points if the session has several tasks]\n\n\
## Constraints & Preferences\n- [what the user demanded or ruled out, or \"(none)\"]\n\n\
## Progress\n### Done\n- [x] [what is finished]\n\n### In Progress\n- [ ] [what is under way]\n\n\
### Blocked\n- [what stands in the way, if anything]\n\n\
## Key Decisions\n- **[decision]**: [why, in short]\n\n\
## Next Steps\n1. [what comes next, in order]\n\n\
## Critical Context\n- [data, examples, references without which the work cannot go on, or \
\"(none)\"]\n\n\
Be brief in every section. Copy names of files and functions and the text of errors exactly.";

const UPDATE: &str = "The conversation above is new. Bring the summary in <previous-summary> up to \
    date with it.\n\n\
- Keep what the old summary holds.\n- Add what is new: progress, decisions, context.\n\
- Move points from In Progress to Done when they are finished.\n\
- Write Next Steps anew from what has been reached.\n\
- Copy names of files and functions and the text of errors exactly.\n\
- What no longer matters may go.\n\n\
Write it in this form:\n\n\
## Goal\n[the goals, with those that came in]\n\n\
## Constraints & Preferences\n- [the old ones and the new ones]\n\n\
## Progress\n### Done\n- [x] [what is finished, now and before]\n\n\
### In Progress\n- [ ] [what is under way]\n\n### Blocked\n- [what stands in the way; leave out what \
is solved]\n\n\
## Key Decisions\n- **[decision]**: [why, in short] (the old ones too)\n\n\
## Next Steps\n1. [from where the work stands now]\n\n\
## Critical Context\n- [what matters, with what was there before]\n\n\
Be brief in every section.";

const PREFIX: &str = "Above is the beginning of a turn that was too long to keep. Its rest is \
    stored apart and will be shown behind what you write; you need not make it up. Sum the \
    beginning up so that the rest can be understood:\n\n\
## Original Request\n[what the user asked for]\n\n\
## Progress So Far\n- [decisions taken and work done in this part]\n\n\
## Context Needed to Continue\n- [what one must know from here to follow what comes later]\n\n\
Say only what stands above. Do not guess at later messages.";
