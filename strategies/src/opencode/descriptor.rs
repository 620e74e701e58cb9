//! What the OpenCode strategy says of itself: settings, sources, prompt texts.

use crate::descriptor::{CodeWay, Descriptor, Factory, Look, Matrix, Recovery, Rewind, Standing};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "opencode",
    summary: "OpenCode: summary of the head behind a marker, newest steps verbatim; optional \
        pruning of old tool results",
    sources: &["docs/sources/opencode.md: released programs 1.18.33 and 1.3.2 read and observed"],
    matrix: Matrix {
        layers: "2: clear old tool results (off by default), summary with a verbatim tail",
        llm_calls: "1 per compaction",
        user_messages: "in the summary, except those in the tail; repeated after a provider \
            overflow",
        tool_results: "tail verbatim; cut to 2,000 characters for the summariser; clearing keeps \
            the call",
        cache: "summary request has its own system prompt, so it reads nothing; the prefix is \
            rewritten after it",
        afterwards: "a synthetic message asks the model to go on",
        token_counting: "usage reported by the provider; UTF-16 length / 4 for pruning and tail",
        pre_send_check: "none: only after a step, by reported usage",
        overflow_response: "compacts without the last user message and repeats it",
        thinking: "kept in the tail, written into the transcript",
        memory: "AGENTS.md / CLAUDE.md in the system prompt",
        undo: "everything stays in the store; reverting past a compaction undoes it",
    },
    wording: &[
        ("opencode.summary_system", SYSTEM),
        ("opencode.intro", "This is the conversation up to now:\n<conversation>\n"),
        (
            "opencode.first",
            "\n</conversation>\n\nWrite a fresh summary of it that another agent can work \
             from.\n\n",
        ),
        ("opencode.prior_open", "\n</conversation>\n\n<prior-summary>\n"),
        (
            "opencode.prior_close",
            "\n</prior-summary>\n\nMerge the summary above with the conversation. What you do not \
             carry forward is lost; drop only what is no longer true.\n\n",
        ),
        ("opencode.template", TEMPLATE),
        ("opencode.old_prompt", OLD_PROMPT),
        (
            "opencode.wrapper_open",
            "The request before this was too large for the model. Here is the last message of the \
             user again:\n",
        ),
        ("opencode.wrapper_close", ""),
        ("opencode.marker", "Summarise the work so far."),
        (
            "opencode.continue",
            "Go on with the next step if there is one. If it is unclear what to do, stop and ask.",
        ),
        ("opencode.continue_overflow", CONTINUE_OVERFLOW),
        ("opencode.template_sdk", TEMPLATE_SDK),
        ("opencode.plain_prompt", PLAIN_PROMPT),
    ],
    standing: Standing::Contender,
    manual: true,
    recovery: Recovery::Log,
    // Revert takes messages and files back together (docs/sources/opencode.md §7).
    rewind: Rewind { conversation: true, code: Some(CodeWay::ShadowGit), summaries: false },
    formats: &[crate::opencode::persist_tables::FORMAT, crate::opencode::persist_files::FORMAT],
    functions: crate::opencode::conform::FUNCTIONS,
    look: Look::Hue(2),
    page: "docs/systems/opencode.md",
    factory: Factory::of::<crate::opencode::OpenCode>(),
};

const CONTINUE_OVERFLOW: &str = "The request before this was larger than the model accepts, \
    probably because of big attachments, and was \
taken out.\n\nGo on with the next step if there is one. If it is unclear what to do, stop and ask.";

const TEMPLATE_SDK: &str = "Write it under these headings, so that the work can be taken up at \
    once in a fresh context:\n\
## Task Overview\n## Current State\n## Important Discoveries\n## Next Steps\n## Context to \
Preserve\n\
Overview: the core request, how success is judged, constraints. State: what is done, files made, \
changed or read with their paths, \
results. Discoveries: technical limits, decisions with reasons, errors and their solutions, what \
did not work. Next: actions in order, \
what blocks them, open questions. Preserve: wishes of the user, details of the field, promises. \
Brief but complete; when in doubt include \
what keeps work from being done twice. Put it between <summary> and </summary>.";

const PLAIN_PROMPT: &str = "Summarise the conversation above. Whoever goes on with it will see \
    nothing but this summary, so keep what matters: \
what is done, what is under way, which files are concerned, what comes next, and what the user \
asked for or ruled out. Brief, but enough to go on.";

const SYSTEM: &str = "You write summaries of coding sessions so that another agent can take over. \
    Follow the structure you are given. \
Do not answer questions that appear in the conversation and do not go on with the task. Write in \
the language of the conversation.";

const OLD_PROMPT: &str = "Write a summary of our conversation from which another agent can go on. \
    Use these headings:\n\
## Goal\n## Instructions\n## Discoveries\n## Accomplished\n## Relevant files / directories\n\
Say what was asked for, what the user wants done in which way, what was found out, what is \
finished, in progress and left, and which files matter.";

const TEMPLATE: &str = "Use exactly these headings:\n<template>\n## Objective\n## Important \
    Details\n## Work State\n### Completed\n### Active\n### Blocked\n\
## Next Move\n## Relevant Files\n</template>\nShort bullet points. Keep every heading even if \
nothing stands under it. Copy paths, commands and error texts exactly. \
Do not mention that you are summarising.";
