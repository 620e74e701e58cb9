//! What the OpenCode strategy says of itself: settings, sources, prompt texts.

use ctxbench_core::descriptor::{Descriptor, Matrix, Recovery, Standing, fits_any};
use ctxbench_core::settings::{Default, Kind, Setting};

/// What the strategy says of itself.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "opencode",
    summary: "OpenCode: summary of the head behind a marker, newest steps verbatim; optional pruning of old tool results",
    versions: &["1.18", "1.3"],
    sources: &["facts/opencode.md: released programs 1.18.33 and 1.3.2 read and observed"],
    settings: &[
        Setting {
            name: "auto",
            kind: Kind::Flag,
            default: Default::Flag(true),
            help: "compact automatically",
            source: "facts/opencode.md §2, compaction.auto",
        },
        Setting {
            name: "prune",
            kind: Kind::Flag,
            default: Default::Auto,
            help: "clear old tool results after a turn; auto = off in 1.18, on in 1.3",
            source: "facts/opencode.md §1: off unless set in 1.18",
        },
        Setting {
            name: "prune_protect",
            kind: Kind::Tokens,
            default: Default::Int(40_000),
            help: "newest tool results that pruning leaves",
            source: "facts/opencode.md §1, PRUNE_PROTECT",
        },
        Setting {
            name: "prune_minimum",
            kind: Kind::Tokens,
            default: Default::Int(20_000),
            help: "pruning must free more than this",
            source: "facts/opencode.md §1, PRUNE_MINIMUM",
        },
        Setting {
            name: "reserved",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "kept free where the model has an input limit; auto = min(20k, largest reply)",
            source: "facts/opencode.md §2",
        },
        Setting {
            name: "tail_turns",
            kind: Kind::Whole,
            default: Default::Auto,
            help: "newest turns that may stay verbatim; auto = no limit, 0 or less = none",
            source: "facts/opencode.md §3.2, compaction.tail_turns",
        },
        Setting {
            name: "preserve_recent_tokens",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "budget of the verbatim tail; auto = a quarter of the usable window within bounds",
            source: "facts/opencode.md §3.2",
        },
        Setting {
            name: "tail_least",
            kind: Kind::Tokens,
            default: Default::Int(2_000),
            help: "lower bound of that budget",
            source: "facts/opencode.md §3.2",
        },
        Setting {
            name: "tail_most",
            kind: Kind::Tokens,
            default: Default::Int(15_000),
            help: "upper bound of that budget",
            source: "facts/opencode.md §3.2",
        },
        Setting {
            name: "model",
            kind: Kind::Model,
            default: Default::Auto,
            help: "model of the summary; auto = the session's",
            source: "facts/opencode.md §3.2, agent.compaction.model",
        },
        Setting {
            name: "model_context",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "window of that model; auto = from the catalogue",
            source: "facts/opencode.md §3.2: the tail budget is that of the summary model",
        },
        Setting {
            name: "model_output",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "largest reply of that model; auto = from the catalogue",
            source: "facts/opencode.md §3.2: the tail budget is that of the summary model",
        },
        Setting {
            name: "model_input",
            kind: Kind::Tokens,
            default: Default::Auto,
            help: "separate input limit of that model; auto = from the catalogue",
            source: "facts/opencode.md §2, §3.2: limit.input of the summary model sets the tail budget where it has one",
        },
        Setting {
            name: "proactive",
            kind: Kind::Share,
            default: Default::Auto,
            help: "compact before sending when more than this share of the usable window (window less the largest reply) is filled, \
by the last count and an estimate of what came since; auto = off, as in the program, which only looks back at reported usage",
            source: "seeds/001 §10.5, shouldCompact: 0.92 of usable, strictly more; a proposal, no release has it",
        },
        Setting {
            name: "prompt",
            kind: Kind::Choice(&["own", "sdk"]),
            default: Default::Word("own"),
            help: "headings of the summary: the program's own, or the five sections of Anthropic's SDK",
            source: "facts/opencode.md §0; sdk: seeds/001 §10.1, a proposal, no release has it",
        },
        Setting {
            name: "as_described",
            kind: Kind::Choice(&["off", "001", "002"]),
            default: Default::Word("off"),
            help: "behave as a published description says, with auto, prune, prune_*, prompt (002 also reserved) and no other setting. \
001: everything summarised by a plain prompt beyond the window less the reply, judged before the next request; no tail, no message \
afterwards, pruning on, no tool exempt. 002: old results vanish with their calls, then a summary under five headings and always the \
last user message again. In fact (1.18) pruning is off and leaves placeholders, a tail stays verbatim, and only a refused prompt is repeated",
            source: "seeds/001 §2 and §7; seeds/002, Stepped Governance",
        },
    ],
    matrix: Matrix {
        layers: "2: clear old tool results (off by default), summary with a verbatim tail",
        llm_calls: "1 per compaction",
        user_messages: "in the summary, except those in the tail; repeated after a provider overflow",
        tool_results: "tail verbatim; cut to 2,000 characters for the summariser; clearing keeps the call",
        cache: "summary request has its own system prompt, so it reads nothing; the prefix is rewritten after it",
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
        ("opencode.first", "\n</conversation>\n\nWrite a fresh summary of it that another agent can work from.\n\n"),
        ("opencode.prior_open", "\n</conversation>\n\n<prior-summary>\n"),
        (
            "opencode.prior_close",
            "\n</prior-summary>\n\nMerge the summary above with the conversation. What you do not carry forward is lost; drop only what is no longer true.\n\n",
        ),
        ("opencode.template", TEMPLATE),
        ("opencode.old_prompt", OLD_PROMPT),
        ("opencode.wrapper_open", "The request before this was too large for the model. Here is the last message of the user again:\n"),
        ("opencode.wrapper_close", ""),
        ("opencode.marker", "Summarise the work so far."),
        ("opencode.continue", "Go on with the next step if there is one. If it is unclear what to do, stop and ask."),
        ("opencode.continue_overflow", CONTINUE_OVERFLOW),
        ("opencode.template_sdk", TEMPLATE_SDK),
        ("opencode.plain_prompt", PLAIN_PROMPT),
    ],
    standing: Standing::Contender,
    manual: true,
    recovery: Recovery::Log,
    unfit: fits_any,
    build: crate::opencode::build,
};

const CONTINUE_OVERFLOW: &str = "The request before this was larger than the model accepts, probably because of big attachments, and was \
taken out.\n\nGo on with the next step if there is one. If it is unclear what to do, stop and ask.";

const TEMPLATE_SDK: &str = "Write it under these headings, so that the work can be taken up at once in a fresh context:\n\
## Task Overview\n## Current State\n## Important Discoveries\n## Next Steps\n## Context to Preserve\n\
Overview: the core request, how success is judged, constraints. State: what is done, files made, changed or read with their paths, \
results. Discoveries: technical limits, decisions with reasons, errors and their solutions, what did not work. Next: actions in order, \
what blocks them, open questions. Preserve: wishes of the user, details of the field, promises. Brief but complete; when in doubt include \
what keeps work from being done twice. Put it between <summary> and </summary>.";

const PLAIN_PROMPT: &str = "Summarise the conversation above. Whoever goes on with it will see nothing but this summary, so keep what matters: \
what is done, what is under way, which files are concerned, what comes next, and what the user asked for or ruled out. Brief, but enough to go on.";

const SYSTEM: &str = "You write summaries of coding sessions so that another agent can take over. Follow the structure you are given. \
Do not answer questions that appear in the conversation and do not go on with the task. Write in the language of the conversation.";

const OLD_PROMPT: &str = "Write a summary of our conversation from which another agent can go on. Use these headings:\n\
## Goal\n## Instructions\n## Discoveries\n## Accomplished\n## Relevant files / directories\n\
Say what was asked for, what the user wants done in which way, what was found out, what is finished, in progress and left, and which files matter.";

const TEMPLATE: &str = "Use exactly these headings:\n<template>\n## Objective\n## Important Details\n## Work State\n### Completed\n### Active\n### Blocked\n\
## Next Move\n## Relevant Files\n</template>\nShort bullet points. Keep every heading even if nothing stands under it. Copy paths, commands and error texts exactly. \
Do not mention that you are summarising.";
