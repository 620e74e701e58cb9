//! Prompt texts of OpenCode, rewritten.

use std::sync::Arc;

use ctxbench_core::block::BlockKind;
use ctxbench_core::compaction::Transcript;

use super::settings::{OpenCodeSettings, Prompt};

crate::words::words! {
    pub(crate) struct OpenCodeWords {
        summary_system = SYSTEM;
        intro = "This is the conversation up to now:\n<conversation>\n";
        first = "\n</conversation>\n\nWrite a fresh summary of it that another agent can work \
            from.\n\n";
        prior_open = "\n</conversation>\n\n<prior-summary>\n";
        prior_close = "\n</prior-summary>\n\nMerge the summary above with the conversation. What you do not \
            carry forward is lost; drop only what is no longer true.\n\n";
        template = TEMPLATE;
        hook_history = "\n\nThis is the conversation to summarise:\n";
        old_prompt = OLD_PROMPT;
        wrapper_open = "The request before this was too large for the model. Here is the last message of the \
            user again:\n";
        wrapper_close = "";
        marker = "Summarise the work so far.";
        go_on = "Go on with the next step if there is one. If it is unclear what to do, stop and ask.";
        go_on_overflow = CONTINUE_OVERFLOW;
        template_sdk = TEMPLATE_SDK;
        plain_prompt = PLAIN_PROMPT;
    }
}

impl OpenCodeWords {
    /// Selects the headings: the program's own, or the five sections of
    /// docs/sources/opencode-vs-claude-code.md §8.
    pub(crate) fn headed(self, prompt: Prompt) -> Self {
        match prompt {
            Prompt::Own => self,
            Prompt::Sdk => OpenCodeWords {
                template: self.template_sdk.clone(),
                old_prompt: self.template_sdk.clone(),
                plain_prompt: self.template_sdk.clone(),
                ..self
            },
        }
    }

    /// Applies a plugin's additions to, or replacement of, the prompt (docs/sources/opencode.md
    /// §3.2.5).
    pub(crate) fn hooked(self, s: &OpenCodeSettings) -> Self {
        let with = |words: &Arc<str>| match (&s.hook_prompt, &s.hook_context) {
            (Some(prompt), _) => prompt.clone(),
            (None, Some(context)) => format!("{words}\n\n{context}").into(),
            (None, None) => words.clone(),
        };
        OpenCodeWords { template: with(&self.template), old_prompt: with(&self.old_prompt), ..self }
    }

    /// Builds the summary request of a plugin with its own prompt. The conversation follows the
    /// prompt; the previous summary is not included.
    pub(crate) fn prompt_of_plugin(&self, transcript: &Transcript) -> Transcript {
        let mut out = Transcript::default();
        out.instruct(&self.template);
        out.instruct(&self.hook_history);
        out.append(transcript);
        out
    }

    /// Builds the summary request around a transcript and the previous summary
    /// (docs/sources/opencode.md §3.2.7).
    pub(crate) fn prompt(&self, transcript: &Transcript, prior: Option<&str>) -> Transcript {
        let mut out = Transcript::default();
        out.instruct(&self.intro);
        out.append(transcript);
        match prior {
            None => out.instruct(&self.first),
            Some(p) => {
                out.instruct(&self.prior_open);
                out.recall(&Transcript::quoted(BlockKind::Summary, p));
                out.instruct(&self.prior_close);
            }
        }
        out.instruct(&self.template);
        out
    }
}

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
